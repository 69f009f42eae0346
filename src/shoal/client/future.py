"""A future: one reference to a result that exists, is being made, or will never be.

A future owns nothing but its place in the count of its record.  It may be dropped at any moment,
even by a garbage collection in the middle of something else, so `__del__` takes no lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from html import escape
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol
from uuid import uuid4
from weakref import WeakSet

from dask._task_spec import TaskRef

from shoal.client.blocking import shorten
from shoal.client.current import find_client
from shoal.client.errors import UnboundFuture
from shoal.client.machine import CANCELLED, ERROR, FINISHED, LOST, PENDING, Record
from shoal.client.standins import StandIn
from shoal.protocol.exceptions import from_failure
from shoal.protocol.keys import from_canonical, to_canonical
from shoal.protocol.payload import kind_of, load

if TYPE_CHECKING:
    from shoal.ids import Key


ACTORS: Final = "shoal.client.actors.proxy"
"""Who knows of actors; few programs have any."""


class _Pickling(threading.local):
    """What becomes of the futures that a thread pickles or tokenizes.  The defaults are the
    class's, as what a thread has not set is slow to ask for."""

    as_references = False
    tokens_by_key = False
    noted: list[Future] | None = None


_pickling = _Pickling()


class Session(Protocol):
    """What a future needs of a session."""

    def want(self, key: Key) -> Record:
        """The record of a key, with one more future."""

    def drop(self, record: Record) -> None:
        """One future less; takes no lock, and may be called anywhere."""

    def collect(self, record: Record) -> None:
        """One future less, said some milliseconds later; takes no lock, as `drop`."""

    def watch(self, record: Record, watcher: Callable[[Record], None]) -> bool:
        """Call `watcher` on the loop once the record ends; False: it has ended already."""


class Face(Protocol):
    """What a future needs of the client that its user holds."""

    session: Session

    def future_result(self, future: Future, timeout: Any) -> Any:
        """The result, or a coroutine of it."""

    def future_exception(self, future: Future, timeout: Any) -> Any:
        """The exception or None, or a coroutine of it."""

    def future_traceback(self, future: Future, timeout: Any) -> Any:
        """The traceback or None, or a coroutine of it."""

    def cancel(self, futures: Any, *, force: bool, reason: str | None, msg: str | None) -> Any:
        """Cancel futures."""

    def retry(self, futures: Any) -> Any:
        """Run failed tasks again."""


class Future(TaskRef):
    """The result of a task, wherever and whenever it may be.

    Args:
        key: name of the task, in the user's form.
        client: whom to ask; None: the client of this context, once there is one.
    """

    __slots__ = ("__dict__", "__weakref__", "_client", "_is_held", "_record")

    key: Any

    def __init__(self, key: Any, client: Any = None, state: Any = None, _id: Any = None) -> None:
        self.key = key
        self._client: Any = None
        self._record: Record | None = None
        self._is_held = False  # whether it is counted in the record
        if _id is not None:  # names that were made of its token are its names here, too
            self.__dict__["_token"] = _id
        client = client if client is not None else find_client()
        if client is not None:
            self.bind_client(client)
        else:
            with _strays_change:
                _strays.add(self)

    @classmethod
    def of_record(cls, key: Any, client: Any, record: Record) -> Future:
        """A future for a place that was counted in `record` already.  Cost: 0.3 us."""
        future: Future = cls.__new__(cls)
        future.key = key
        future._client = client
        future._record = record
        future._is_held = True
        return future

    def bind_client(self, client: Any) -> None:
        """Ask `client` for the result from now on; nothing happens if another was bound."""
        if self._client is None:
            self._record = client.session.want(to_canonical(self.key))
            self._is_held = True
            self._client = client

    def __del__(self) -> None:
        try:
            if self._is_held:
                self._is_held = False
                self._client.session.collect(self._record)
        except AttributeError:
            pass  # never initialised, or the interpreter is taking modules apart

    def release(self) -> None:
        """Let go of the result now; a second call does nothing."""
        if self._is_held:
            self._is_held = False
            self._client.session.drop(self._record)

    # --- what is known now -------------------------------------------------------------------

    @property
    def record(self) -> Record:
        """What the client knows of the result; wants it again if the future was released.

        Raises:
            RuntimeError: the future came from elsewhere, and there is no client.
        """
        record = self._record
        if self._is_held and record is not None:
            return record
        if self._client is None:
            client = find_client()
            if client is None:
                raise UnboundFuture(self.key)
            self.bind_client(client)
        else:  # released, and wanted after all
            self._record = self._client.session.want(to_canonical(self.key))
            self._is_held = True
        assert self._record is not None
        return self._record

    @property
    def client(self) -> Any:
        """The client that made it or that it was bound to; None if neither."""
        if self._client is None:
            client = find_client()
            if client is not None:
                self.bind_client(client)
        return self._client

    executor = client

    @property
    def face(self) -> Any:
        """As `client`, but there must be one; raises RuntimeError otherwise."""
        client = self.client
        if client is None:
            raise UnboundFuture(self.key)
        return client

    @property
    def status(self) -> str | None:
        """`pending`, `finished`, `error`, `cancelled` or `lost`; None without a client.

        What was scattered, and is held by nobody any more, is cancelled, and what needed it.
        """
        if self._record is None and self.client is None:
            return None
        record = self._record
        assert record is not None  # bound by now
        return CANCELLED if record.status == ERROR and record.is_gone else record.status

    def done(self) -> bool:
        """Whether it finished, failed or was cancelled."""
        return self.status not in (PENDING, LOST, None)

    def cancelled(self) -> bool:
        """Whether there will be no result."""
        return self.status == CANCELLED

    @property
    def type(self) -> type | None:
        """The type of the result, once known and importable here; else None."""
        record = self._record
        if record is None or record.status != FINISHED:
            return None
        module, _, name = record.kind.rpartition(".")
        try:
            if record.value is not None:
                value = load(record.value)
                return import_module(ACTORS).class_of(value) if record.kind else type(value)
            found = getattr(import_module(module), name) if module else None
        except KeyboardInterrupt:
            raise
        except BaseException:
            return None  # of a module that only the workers have, a local class, or unreadable
        return found if isinstance(found, type) else None

    # --- what may take time ------------------------------------------------------------------

    def result(self, timeout: Any = None) -> Any:
        """Wait for the result and return it; each call gives a fresh object.

        Args:
            timeout: seconds, or a text such as "10s"; None: no limit.

        Raises:
            BaseException: what the task raised, with its traceback.
            FutureCancelledError: it was cancelled, or the scheduler was lost.
            TimeoutError: it is not there in time.

        A coroutine with an asynchronous client.
        """
        try:
            return self.face.future_result(self, timeout)
        except BaseException as error:
            shorten(error)
            raise

    def exception(self, timeout: Any = None, **_ignored: Any) -> Any:
        """Wait, and return what `result` would raise; None if the task went well.

        Raises:
            TimeoutError: it has not ended in time.
        """
        return self.face.future_exception(self, timeout)

    def traceback(self, timeout: Any = None, **_ignored: Any) -> Any:
        """Wait, and return where the task raised; None if it went well.  As `exception`."""
        return self.face.future_traceback(self, timeout)

    def __await__(self) -> Generator[Any, Any, Any]:
        waiting: Generator[Any, Any, Any] = self.face.await_future(self).__await__()
        return waiting

    def cancel(self, reason: str | None = None, msg: str | None = None, **options: Any) -> Any:
        """See `Client.cancel`."""
        return self.face.cancel([self], reason=reason, msg=msg, **options)

    def retry(self, **options: Any) -> Any:
        """See `Client.retry`."""
        return self.face.retry([self], **options)

    def add_done_callback(self, fn: Callable[[Future], object]) -> None:
        """Call `fn(future)` once it is done, in a thread that all callbacks share.

        An exception that it raises is logged.
        """
        self.face.add_done_callback(self, fn)

    # --- for `concurrent.futures.wait` and `as_completed` -------------------------------------

    @property
    def _as_foreign(self) -> Any:
        """What those look at; made when they first do."""
        found = self.__dict__.get("_foreign")
        if found is None:
            from shoal.client.foreign import ForeignFace  # few programs need it

            found = self.__dict__.setdefault("_foreign", ForeignFace(self))
        return found

    @property
    def _state(self) -> str:
        return str(self._as_foreign.state)

    @property
    def _condition(self) -> Any:
        return self._as_foreign.condition

    @property
    def _waiters(self) -> Any:
        return self._as_foreign.waiters

    # --- identity ----------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return object.__hash__(self)

    def __dask_tokenize__(self) -> tuple[str, Any]:
        """Another one for each future: what its key means may change with who uses it.

        Calls of this client count futures by their keys; see `tokenized_by_key`.
        """
        if _pickling.tokens_by_key:
            return ("Future", self.key)
        return ("Future", self.__dict__.setdefault("_token", uuid4().hex))

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        noted = _pickling.noted
        if noted is not None:
            noted.append(self)
        if _pickling.as_references:
            return TaskRef, (self.key,)
        token = self.__dict__.get("_token")
        return Future, (self.key,) if token is None else (self.key, None, None, token)

    def __str__(self) -> str:
        return self.__repr__()

    def __repr__(self) -> str:
        kind = self._kind_name()
        return f"<Future: {self.status}{f', type: {kind}' if kind else ''}, key: {self.key}>"

    def _repr_html_(self) -> str:
        kind = self._kind_name()
        return (
            f"<b>Future</b> <code>{escape(str(self.key))}</code>: {escape(str(self.status))}"
            f"{f', type {escape(kind)}' if kind else ''}"
        )

    def _kind_name(self) -> str:
        record = self._record
        if record is None or record.status != FINISHED:
            return ""
        if record.value is not None and not record.kind:
            try:
                return kind_of(load(record.value)).removeprefix("builtins.")
            except KeyboardInterrupt:
                raise
            except BaseException:
                return ""  # a repr must not fail, whatever the value does
        return record.kind.removeprefix("builtins.")


def note_pickled(future: Future) -> None:
    """What is pickled stands for the result of this future; see `pickled_are_noted`."""
    noted = _pickling.noted
    if noted is not None:
        noted.append(future)


def pickles_as_references() -> bool:
    """Whether this thread is inside of `pickled_as_references`."""
    return _pickling.as_references


@contextmanager
def pickled_as_references() -> Iterator[None]:
    """Inside, a future pickles as the reference that a graph's task looks up by its key."""
    _pickling.as_references = True
    try:
        yield
    finally:
        _pickling.as_references = False


@contextmanager
def tokenized_by_key() -> Iterator[None]:
    """Inside, futures of one key have one token."""
    _pickling.tokens_by_key = True
    try:
        yield
    finally:
        _pickling.tokens_by_key = False


@contextmanager
def pickled_are_noted() -> Iterator[list[Future]]:
    """Inside, the futures that this thread pickles are added to the list, some more than once."""
    noted: list[Future] = []
    before, _pickling.noted = _pickling.noted, noted
    try:
        yield noted
    finally:
        _pickling.noted = before


def exception_of(record: Record) -> BaseException | None:
    """What the task raised, a new one at each call; None if it did not."""
    return from_failure(record.failure) if record.status == ERROR and record.failure else None


def traceback_of(record: Record) -> TracebackType | None:
    """Where the task raised."""
    exception = exception_of(record)
    return None if exception is None else exception.__traceback__


def futures_of(o: Any, client: Any = None) -> list[Future]:
    """All futures inside nested builtin containers and dask collections, each once, in order.

    Args:
        client: if given, cancelled ones raise.

    Raises:
        CancelledError: `client` is given, and a future was cancelled.
    """
    found: dict[Future, None] = {}
    seen: set[int] = set()
    stack = [o]
    while stack:
        x = stack.pop()
        if isinstance(x, Future):
            found[x] = None
            continue
        if isinstance(x, StandIn) and x.bound_future is not None:
            found[x.bound_future] = None
        if isinstance(x, TaskRef) or id(x) in seen:
            continue
        if isinstance(x, (list, tuple, set, frozenset)):
            seen.add(id(x))
            stack.extend(reversed(list(x)))
        elif isinstance(x, dict):
            seen.add(id(x))
            stack.extend(reversed(list(x.values())))
        elif hasattr(x, "__dask_graph__") and not isinstance(x, type):
            seen.add(id(x))
            graph = x.__dask_graph__()
            if graph is not None:
                stack.extend(reversed(list(dict(graph).values())))
    futures = list(found)
    if client is not None:
        client.refuse_cancelled(futures)
    return futures


def bind_strays(graph: Mapping[Any, Any]) -> None:
    """Have the futures of a graph that came from elsewhere, when there was no client, find the one
    of this context.

    Cost: nothing while there are none; else O(those in this process), or O(tasks) if that is less.
    """
    if not _strays:
        return
    with _strays_change:
        if len(_strays) <= len(graph):
            found = [future for future in _strays if graph.get(future.key) is future]
        else:
            found = [task for task in graph.values() if isinstance(task, Future)]
        for future in found:
            _strays.discard(future)
    for future in found:
        if future.client is None:
            with _strays_change:
                _strays.add(future)


_strays: Final[WeakSet[Future]] = WeakSet()
"""Those that found no client when they came."""

_strays_change: Final = threading.RLock()  # as for anything that collections may interrupt


def user_key(record: Record) -> Any:
    """The key of a record in the user's form."""
    return from_canonical(record.key)
