"""Futures in the order in which they end."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
import weakref
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any, Final

from shoal.client.ended_futures import EndedFutures
from shoal.client.errors import BlockingCall
from shoal.client.future import Future
from shoal.client.gathering import FAILED, load_near, outcome_error
from shoal.client.lateness import why_late
from shoal.client.machine import CANCELLED, ERROR, FINISHED, Record
from shoal.comms.cancellation import is_our_cancellation
from shoal.observe.inside import waiting_for_tasks
from shoal.units import to_seconds

AHEAD_BYTES_MAX: Final = 16 * 2**20
"""Results that are fetched together with the next one, if they have ended as well."""


class as_completed:  # noqa: N801  # known by this name
    """Futures in the order in which they end; `for` and `async for` both work.

    Each is given once for each time that it was added, however it ended.  More may be added at
    any time, from any thread, also while one iterates.

    Args:
        futures: those to begin with; those of actors' calls and of `concurrent.futures`, too.
        loop: what the attribute `loop` says; nothing else depends on it.
        with_results: give pairs of a future and its result; in place of the result, for one that
            was cancelled, the error.
        raise_errors: with results: raise what a task raised; False: the result is a triple of
            type, exception and traceback.
        timeout: seconds until the iteration raises TimeoutError; counted from now.
    """

    def __init__(
        self,
        futures: Iterable[Any] | None = None,
        loop: Any = None,
        with_results: bool = False,
        raise_errors: bool = True,
        *,
        timeout: Any = None,
    ) -> None:
        self.futures: Counter[Any] = Counter()  # still to end, and how often they were added
        self.lock = threading.Lock()
        self.condition = self.thread_condition = threading.Condition(self.lock)
        self.queue = EndedFutures(self.condition)  # not given yet
        self.with_results = with_results
        self.raise_errors = raise_errors
        self._loop = loop
        self._watcher = _watcher_of(self)
        self._waiters: list[asyncio.Future[None]] = []
        self._by_record: dict[Record, list[Future]] = {}
        self._ahead: dict[Record, Any] = {}  # results that were fetched with others
        self._faces: dict[Any, None] = {}  # clients, in the order in which they came
        self._seconds = None if timeout is None else to_seconds(timeout)
        self._end = None if self._seconds is None else time.monotonic() + self._seconds
        forget = weakref.finalize(self, _forget, self._by_record, self._watcher)
        forget.atexit = False
        if futures is not None:
            self.update(futures)

    def __repr__(self) -> str:
        with self.lock:
            nwaiting, nended = self.futures.total(), len(self.queue)
        return f"<as_completed: waiting={nwaiting} done={nended}>"

    @property
    def loop(self) -> Any:
        """As given, or else the loop of the futures' client; None while there are no futures."""
        if self._loop is not None:
            return self._loop
        return next((face.loop for face in list(self._faces)), None)

    # --- what is waited for ------------------------------------------------------------------

    def add(self, future: Any) -> None:
        """Wait for one more future."""
        self.update([future])

    def update(self, futures: Iterable[Any]) -> None:
        """Wait for more futures.

        Raises:
            TypeError: one of them is none.
        """
        new = list(futures)
        by_session: dict[Any, list[Record]] = {}
        others: list[Any] = []
        for future in new:
            if isinstance(future, Future):
                face = future.face
                self._faces[face] = None
                by_session.setdefault(face.session, []).append(future.record)
            elif _is_other_future(future):
                others.append(future)
            else:
                raise TypeError(f"as_completed takes futures, not {type(future).__name__}")
        with self.lock:
            for future in new:
                self.futures[future] += 1
                if isinstance(future, Future):
                    self._by_record.setdefault(future.record, []).append(future)
        for session, records in by_session.items():
            watched = set(session.watch_all(records, self._watcher))
            for record in dict.fromkeys(records):
                if record not in watched:
                    self._on_end(record)
        for future in others:
            future.add_done_callback(_ender_of(self))

    def count(self) -> int:
        """How many are still to be given."""
        with self.lock:
            return self.futures.total() + len(self.queue)

    def is_empty(self) -> bool:
        """Whether all were given."""
        return not self.count()

    def has_ready(self) -> bool:
        """Whether one can be given at once."""
        with self.lock:
            return bool(self.queue)

    def clear(self) -> None:
        """Forget them all; whoever iterates comes to the end."""
        with self.lock:
            by_record = dict(self._by_record)
            self._by_record.clear()
            self._ahead.clear()
            self.futures.clear()
            self.queue.clear()
            waiters = self._changed()
        _wake(waiters)
        for record, futures in by_record.items():
            futures[0].face.session.unwatch([record], self._watcher)

    def _on_end(self, record: Record) -> None:
        """On the loop, or in the thread that added a future that had ended."""
        with self.lock:
            for future in self._by_record.pop(record, ()):
                self._give(future)
            waiters = self._changed()
        _wake(waiters)

    def _on_other_end(self, future: Any) -> None:
        """Of a future that is not ours; in any thread."""
        with self.lock:
            self._give(future)
            waiters = self._changed()
        _wake(waiters)

    def _give(self, future: Any) -> None:
        """One time less to wait for it; to be called under the lock."""
        if future in self.futures:  # else somebody has emptied what is waited for
            self.futures[future] -= 1
            if not self.futures[future]:
                del self.futures[future]
            self.queue.append(future)

    def _changed(self) -> list[asyncio.Future[None]]:
        """Wake threads; those to wake on loops.  To be called under the lock."""
        self.condition.notify_all()
        waiters, self._waiters = self._waiters, []
        return waiters

    # --- one after another, blocking ---------------------------------------------------------

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        future = self._take()
        try:
            return self._with_result(future)
        except BaseException as error:
            if not _is_outcome(future, error):
                self._put_back([future])
            raise

    def next(self) -> Any:
        """As `next(self)`."""
        return self.__next__()

    def next_batch(self, block: bool = True) -> list[Any]:
        """All that have ended; if none has and `block`, wait for one.

        Raises:
            StopIteration: all were given.
            BaseException: what a task raised, as for `next`; the rest of the batch is given later.
        """
        if not block and not self.has_ready():
            return []
        batch = self._with_rest(self._take())
        given: list[Any] = []
        try:
            for future in batch:
                given.append(self._with_result(future, batch))
        except BaseException as error:
            raised = len(given)
            if _is_outcome(batch[raised], error):  # it was its turn, and the others' comes later
                del batch[raised]
            self._put_back(batch)
            raise
        return given

    def batches(self) -> Batches:
        """All of them, in lists of those that ended since the last one; also for `async for`."""
        return Batches(self)

    def _take(self) -> Any:
        with self.condition:
            while not self.queue:
                if not self.futures:
                    raise StopIteration
                if any(face.is_on_loop for face in self._faces):
                    raise BlockingCall
                left = None if self._end is None else self._end - time.monotonic()
                if left is not None and left <= 0:
                    break
                with waiting_for_tasks():
                    self.condition.wait(left)
            else:
                return self.queue.popleft()
        face = next((face for face in list(self._faces) if face.is_blocking), None)
        why = "" if face is None else face.finish(self._why_late(face.session))
        raise TimeoutError(self._text_of_timeout() + why)

    def _with_result(self, future: Any, batch: list[Any] | None = None) -> Any:
        if not self.with_results:
            return future
        if not isinstance(future, Future):
            return future, self._other_result(future)
        if self._failed(future):
            return future, self._error(future)
        record = future.record
        if record.value is not None:
            return future, load_near(record, future.face)
        if record not in self._ahead:
            work = future.face.await_results(self._with_some_more(future, batch))
            if not future.face.is_blocking:
                work.close()
                raise BlockingCall
            self._ahead.update(future.face.finish(work))
        value = self._ahead.pop(record, FAILED)
        return future, future.result() if value is FAILED else value

    # --- one after another, asynchronous -----------------------------------------------------

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        future = await self._awaited()
        try:
            return await self._awaited_with_result(future)
        except BaseException as error:
            if not _is_outcome(future, error):
                self._put_back([future])
            raise

    async def _awaited(self) -> Any:
        """The next that has ended."""
        while True:
            with self.lock:
                if self.queue:
                    return self.queue.popleft()
                if not self.futures:
                    raise StopAsyncIteration
                waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._waiters.append(waiter)
            left = None if self._end is None else max(0.0, self._end - time.monotonic())
            try:
                with waiting_for_tasks():
                    async with asyncio.timeout(left):
                        await waiter
            except TimeoutError:
                here = asyncio.get_running_loop()
                sessions = (face.session for face in list(self._faces))
                session = next((one for one in sessions if one.loop is here), None)
                why = "" if session is None else await self._why_late(session)
                raise TimeoutError(self._text_of_timeout() + why) from None

    async def _awaited_with_result(self, future: Any, batch: list[Any] | None = None) -> Any:
        if not self.with_results:
            return future
        if not isinstance(future, Future):
            return future, await self._awaited_other_result(future)
        if self._failed(future):
            return future, self._error(future)
        record, face = future.record, future.face
        if record.value is not None:
            return future, load_near(record, future.face)
        if record not in self._ahead:
            self._ahead.update(await face.await_results(self._with_some_more(future, batch)))
        value = self._ahead.pop(record, FAILED)
        return future, await face.await_future(future) if value is FAILED else value

    async def awaited_batch(self) -> list[Any]:
        """As `next_batch`, on a loop.  Raises StopAsyncIteration: all were given."""
        batch = self._with_rest(await self._awaited())
        given: list[Any] = []
        try:
            for future in batch:
                given.append(await self._awaited_with_result(future, batch))
        except BaseException as error:
            raised = len(given)
            if _is_outcome(batch[raised], error):  # it was its turn, and the others' comes later
                del batch[raised]
            self._put_back(batch)
            raise
        return given

    # --- outcomes ----------------------------------------------------------------------------

    def _with_rest(self, future: Any) -> list[Any]:
        with self.lock:
            batch = [future, *self.queue]
            self.queue.clear()
        return batch

    def _put_back(self, batch: list[Any]) -> None:
        """Somebody who took these was not given them: they are the next again."""
        with self.lock:
            self.queue.extendleft(reversed(batch))
            waiters = self._changed()
        _wake(waiters)

    def _text_of_timeout(self) -> str:
        nleft = self.futures.total()
        return f"{nleft} future{'s have' if nleft > 1 else ' has'} not ended in time"

    async def _why_late(self, session: Any) -> str:
        """What those wait for that this session knows."""
        with self.lock:
            ours = [future for future in self.futures if isinstance(future, Future)]
        records = [future.record for future in ours if future.face.session is session]
        return await why_late(session, records, self._seconds) if records else ""

    def _with_some_more(self, first: Future, batch: list[Any] | None) -> list[Record]:
        """`first`, and those whose results are given with it, or next unless they are large."""
        records = {first.record: None}
        nbytes = first.record.nbytes
        with self.lock:
            following = list(self.queue) if batch is None else batch
        for future in following:
            record = future.record if isinstance(future, Future) else None
            if record is None or record.status != FINISHED or record.value is not None:
                continue
            if record in self._ahead or future.face is not first.face:
                continue
            nbytes += record.nbytes
            if batch is None and nbytes > AHEAD_BYTES_MAX:
                break
            records[record] = None
        return list(records)

    def _failed(self, future: Future) -> bool:
        return future.record.status in (ERROR, CANCELLED)

    def _error(self, future: Future) -> Any:
        """The outcome of a future without a result, or raise it."""
        record = future.record
        if record.is_gone:
            return outcome_error(record)
        return self._told(outcome_error(record))  # held by no name here: see `_told`

    def _other_result(self, future: Any) -> Any:
        """The result of a future that is not ours, or raise what it raises."""
        try:
            return future.result()
        except Exception as error:
            return self._told(error)

    async def _awaited_other_result(self, future: Any) -> Any:
        """As `_other_result`, of one that may have to be awaited."""
        if not inspect.isawaitable(future):
            return self._other_result(future)
        try:
            return await future
        except Exception as error:
            return self._told(error)

    def _told(self, error: BaseException) -> Any:
        """Raise an error, or give it as a triple."""
        if self.raise_errors:
            try:
                raise error
            finally:
                del error  # it holds this frame, which would hold it
        return type(error), error, error.__traceback__


class Batches:
    """What `as_completed.batches` gives: lists, one after the other."""

    def __init__(self, completed: as_completed) -> None:
        self._completed = completed

    def __iter__(self) -> Iterator[list[Any]]:
        return self

    def __next__(self) -> list[Any]:
        return self._completed.next_batch()

    def __aiter__(self) -> AsyncIterator[list[Any]]:
        return self

    async def __anext__(self) -> list[Any]:
        return await self._completed.awaited_batch()


def _is_other_future(found: Any) -> bool:
    """Whether it is a future of another kind: of a call of an actor, or of a thread pool."""
    return all(hasattr(found, name) for name in ("add_done_callback", "done", "result"))


def _is_outcome(future: Any, error: BaseException) -> bool:
    """Whether that is what the future ended with; else whoever took it was interrupted."""
    if isinstance(future, Future) and future.record.status in (ERROR, CANCELLED):
        return True
    return not (isinstance(error, KeyboardInterrupt | BlockingCall) or is_our_cancellation(error))


def _forget(by_record: dict[Record, list[Future]], watcher: Callable[[Record], None]) -> None:
    """Whoever waited was collected, in whatever thread and under whatever lock: the loops see to
    it that records are no longer watched."""
    by_session: dict[Any, list[Record]] = {}
    for record, futures in by_record.items():
        by_session.setdefault(futures[0].face.session, []).append(record)
    for session, records in by_session.items():
        try:
            session.loop.call_soon_threadsafe(session.unwatch, records, watcher)
        except (AttributeError, RuntimeError):
            pass  # the client is closed, and nobody is told anything


def _watcher_of(completed: as_completed) -> Callable[[Record], None]:
    """Tells `completed` of records that ended, as long as somebody else refers to it."""
    reference = weakref.ref(completed)

    def watcher(record: Record) -> None:
        found = reference()
        if found is not None:
            found._on_end(record)

    return watcher


def _ender_of(completed: as_completed) -> Callable[[Any], None]:
    """As `_watcher_of`, of futures that are not ours."""
    reference = weakref.ref(completed)

    def ended(future: Any) -> None:
        found = reference()
        if found is not None:
            found._on_other_end(future)

    return ended


def _wake(waiters: Iterable[asyncio.Future[None]]) -> None:
    """Have those look again who iterate on loops; from any thread."""
    for waiter in waiters:
        try:
            waiter.get_loop().call_soon_threadsafe(_resolve, waiter)
        except RuntimeError:
            pass  # its loop was closed, so nobody waits there


def _resolve(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
