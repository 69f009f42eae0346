"""What stands for an actor wherever that is known: its methods call it, and attributes are read."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Final
from uuid import uuid4

from dask._task_spec import TaskRef

from shoal.client.actors.calling import Call, ClientWay, Way, WorkerWay
from shoal.client.actors.errors import AttributeStays, NoActorAttribute, NobodyCalls
from shoal.client.actors.futures import (
    ActorFuture,
    BaseActorFuture,
    EagerActorFuture,
)
from shoal.client.current import find_client
from shoal.client.future import (
    Future,
    exception_of,
    note_pickled,
    pickles_as_references,
)
from shoal.client.machine import ERROR
from shoal.client.standins import StandIn
from shoal.ids import RunId
from shoal.observe.inside import current_task
from shoal.protocol.keys import to_canonical
from shoal.protocol.payload import dump, load

_ANY: Final = RunId(0)


class Actor(StandIn):
    """Stands for an object that lives on a worker.

    Methods return futures of their results; attributes are read at once (with an asynchronous
    client, or in a coroutine, they are to be awaited).  What the class does not name is not there.
    On a client it keeps the actor alive; in tasks and in other actors it doesn't.

    Args:
        cls: the class of the object.
        address: of its worker.
        key: of the task that has made it.
        worker: by way of which it is called; None: by a client, or by the worker of the task.
    """

    __slots__ = ("__weakref__", "_address", "_cls", "_future", "_run", "_tie", "_worker")

    key: Any
    _cls: type
    _address: str
    _future: Future | None
    _run: RunId
    _worker: Any

    def __init__(self, cls: type, address: str, key: Any, worker: Any = None) -> None:
        self._start(cls, address, key, _ANY, worker)
        client = _loading.face
        if client is None and worker is None and current_task.get() is None:
            client = find_client()
        if client is not None and client.session.is_open:
            self.bind_client(client)

    @classmethod
    def of_run(cls, kind: type, address: str, key: Any, run: RunId) -> Actor:
        """The proxy of the actor that this run has made; it keeps nothing alive."""
        proxy = cls.__new__(cls)
        proxy._start(kind, address, key, run, None)
        return proxy

    def _start(self, cls: type, address: str, key: Any, run: RunId, worker: Any) -> None:
        for name, value in (
            ("key", key),
            ("_cls", cls),
            ("_address", address),
            ("_run", run),
            ("_worker", worker),
            ("_future", None),
            ("_tie", None),  # on its own worker: the actor itself, for as long as this is kept
        ):
            object.__setattr__(self, name, value)

    def bind_client(self, client: Any) -> None:
        """Keep the actor alive, and call it by way of `client`."""
        if self._future is None:
            object.__setattr__(self, "_future", Future(self.key, client))

    @property
    def bound_future(self) -> Future | None:
        """That by which it keeps the actor alive."""
        return self._future

    def future_for(self, face: Any) -> Future:
        """A future of the actor, for tasks that depend on it."""
        future = self._future
        if future is not None and future.client is face:
            return future
        return Future(self.key, face)

    # --- what it is --------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"<Actor: {self._cls.__name__}, key={self.key}>"

    def __str__(self) -> str:
        return repr(self)

    def __eq__(self, other: object) -> bool:
        return type(other) is Actor and other.key == self.key and other._address == self._address

    def __hash__(self) -> int:
        return hash(("Actor", self.key))

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        if self._future is not None:
            note_pickled(self._future)  # a queue, or a data set, keeps the actor then
        if pickles_as_references():
            return TaskRef, (self.key,)
        return _restored, (self._cls, self._address, self.key, self._run)

    def __dask_tokenize__(self) -> tuple[str, Any, str]:
        return "Actor", self.key, self._address

    def __dir__(self) -> list[str]:
        shown = {name for name in dir(self._cls) if not name.startswith("_")}
        return sorted(shown | set(_annotated(self._cls)) | set(object.__dir__(self)))

    # --- what it does ------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise NoActorAttribute(name, "Actor")
        kind = self._cls
        found = getattr(kind, name, _MISSING)
        if found is _MISSING and name not in _annotated(kind):
            raise NoActorAttribute(name, kind.__name__)
        if found is not _MISSING and callable(found):
            return self._method(name, found)
        return self._read(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            object.__setattr__(self, name, value)
        else:
            raise AttributeStays(name, self._cls.__name__)

    def _method(self, name: str, function: Any) -> Callable[..., BaseActorFuture]:
        def method(*args: Any, **kwargs: Any) -> BaseActorFuture:
            return self._call(name, args, kwargs)

        if not inspect.isclass(function):
            update_wrapper(method, function)
        return method

    def _call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> BaseActorFuture:
        separate_thread = kwargs.pop("separate_thread", True)
        nearby = self._nearby()
        if nearby is not None:
            return _called_at_once(nearby, name, args, kwargs)
        arguments, buffers = dump((args, kwargs))
        # As they are now: what the caller changes from here on must not arrive.
        copied = [bytearray(buffer) for buffer in buffers]
        return self._begin(name, arguments, copied, separate_thread=bool(separate_thread))

    def _read(self, name: str) -> Any:
        nearby = self._nearby()
        if nearby is not None:
            return nearby.read(name)
        future = self._begin(name, None, [])
        return future if self._way().is_awaited else future.result()

    def _begin(
        self,
        name: str,
        arguments: bytes | None,
        buffers: list[bytearray],
        *,
        separate_thread: bool = True,
    ) -> ActorFuture:
        call = Call(
            self,
            name,
            arguments,
            buffers,
            key=to_canonical(self.key),
            run=self._run,
            separate_thread=separate_thread,
        )
        key = f"{name}-{uuid4().hex}"
        way = self._way()
        bound = self._future
        if bound is not None and bound.record.status == ERROR and isinstance(way, ClientWay):
            failed = ActorFuture(key, None, bound.client)
            failed.end(error=exception_of(bound.record))
            return failed
        return way.begin(call, key)

    def _nearby(self) -> Any:
        """The actor itself, if it is an actor of the same worker that asks in its thread."""
        task: Any = current_task.get()
        if task is None or task.worker.address != self._address:
            return None
        return task.worker.actor_nearby(to_canonical(self.key), self._run)

    def _way(self) -> Way:
        task: Any = current_task.get()
        worker = self._worker if task is None else task.worker
        if worker is not None:
            return WorkerWay(worker, self._address)
        bound = self._future
        client = find_client() if bound is None else bound.client
        if client is None:
            raise NobodyCalls(str(self.key))
        return ClientWay(client, self._address)


_MISSING: Final = object()


class _Loading(threading.local):
    """For which client a thread loads proxies, if for any."""

    face: Any = None


_loading: Final = _Loading()


def loaded_for(face: Any, pickled: bytes) -> object:
    """A value as this client loads it: proxies in it keep their actors alive by way of it."""
    before, _loading.face = _loading.face, face
    try:
        return load(pickled)
    finally:
        _loading.face = before


def class_of(value: object) -> type:
    """The class of an object, or of the actor that it stands for."""
    return value._cls if type(value) is Actor else type(value)


def _restored(cls: type, address: str, key: Any, run: RunId) -> Actor:
    """What a pickled proxy is loaded as."""
    proxy = Actor(cls, address, key)
    object.__setattr__(proxy, "_run", run)
    return proxy


def _annotated(kind: type) -> dict[str, Any]:
    """The names that a class and its bases annotate."""
    names: dict[str, Any] = {}
    for base in kind.__mro__:
        names.update(inspect.get_annotations(base))
    return {name: None for name in names if not name.startswith("_")}


def _called_at_once(
    nearby: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> BaseActorFuture:
    """Of a call that another actor of the same worker has made in its own thread."""
    try:
        value = nearby.call(name, args, kwargs)
    except Exception as error:
        return EagerActorFuture(error=error)
    if inspect.iscoroutine(value):
        future = ActorFuture(f"{name}-{uuid4().hex}", nearby.loop)
        nearby.begin(value, future.end)
        return future
    return EagerActorFuture(value)
