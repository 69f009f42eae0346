"""Waiting for futures: for all, for the first, or for each as it ends."""

from __future__ import annotations

import asyncio
import threading
import time
import weakref
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any, NamedTuple

from shoal.client.errors import BlockingCall
from shoal.client.future import Future, futures_of
from shoal.client.gathering import outcome_error
from shoal.client.machine import CANCELLED, ERROR, UNRESOLVED, Record
from shoal.observe.inside import waiting_for_tasks
from shoal.units import to_seconds

ALL_COMPLETED = "ALL_COMPLETED"
FIRST_COMPLETED = "FIRST_COMPLETED"


class DoneAndNotDone(NamedTuple):
    """What `wait` returns."""

    done: set[Future]
    not_done: set[Future]


def wait(fs: Any, timeout: Any = None, return_when: str = ALL_COMPLETED) -> Any:
    """Wait until all futures, or one of them, have ended; errors of tasks don't raise.

    Args:
        fs: a future, or futures in containers or collections.
        timeout: seconds, or a text such as "10s"; None: no limit.
        return_when: `ALL_COMPLETED` or `FIRST_COMPLETED`.

    Raises:
        TimeoutError: they did not end in time.
        CancelledError: one of them was cancelled.

    A coroutine with an asynchronous client.
    """
    if timeout is not None and not isinstance(timeout, (int, float, str)):
        raise TypeError(
            f"timeout= is a number of seconds or a text such as '10s', not {timeout!r}; "
            "several futures go into one list: wait([x, y])"
        )
    if return_when not in (ALL_COMPLETED, FIRST_COMPLETED):
        raise ValueError(
            f"return_when is {ALL_COMPLETED!r} or {FIRST_COMPLETED!r}, not {return_when!r}"
        )
    futures = futures_of(fs)
    if not futures:
        return DoneAndNotDone(set(), set())
    face = futures[0].face
    return face.finish(wait_for(futures, timeout, return_when))


async def wait_for(futures: list[Future], timeout: Any, return_when: str) -> DoneAndNotDone:
    """As `wait`, on the loop of the futures' client."""
    session = futures[0].face.session
    records = [future.record for future in futures]
    seconds = None if timeout is None else to_seconds(timeout)
    waiting = (
        session.wait_any(records) if return_when == FIRST_COMPLETED else session.wait_all(records)
    )
    try:
        async with asyncio.timeout(seconds):
            await waiting
    except TimeoutError:
        nleft = sum(record.status in UNRESOLVED for record in records)
        raise TimeoutError(
            f"{nleft} of {len(records)} futures have not ended within {seconds:g} s"
        ) from None
    for record in records:
        if record.status == CANCELLED:
            raise outcome_error(record)
    done = {f for f, r in zip(futures, records, strict=True) if r.status not in UNRESOLVED}
    return DoneAndNotDone(done, set(futures) - done)


class EndedFutures(deque[Future]):
    """Futures that have ended; with the methods by which joblib empties such a queue."""

    def empty(self) -> bool:
        """Whether there is none."""
        return not self

    def get(self) -> Future:
        """Take the first.  Raises IndexError: there is none."""
        return self.popleft()


class as_completed:  # noqa: N801  # known by this name
    """Futures in the order in which they end; `for` and `async for` both work.

    Args:
        futures: those to begin with.
        loop: not used.
        with_results: give pairs of a future and its result.
        raise_errors: with results: raise what a task raised; False: the result is a triple of
            type, exception and traceback.
        timeout: seconds until the iteration raises TimeoutError; counted from now.
    """

    def __init__(
        self,
        futures: Iterable[Future] | None = None,
        loop: Any = None,
        with_results: bool = False,
        raise_errors: bool = True,
        *,
        timeout: Any = None,
    ) -> None:
        self.futures: Counter[Future] = Counter()  # still to end, and how often they were added
        self.queue = EndedFutures()  # not given yet
        self.lock = threading.Lock()
        self.with_results = with_results
        self.raise_errors = raise_errors
        self._changed = threading.Condition(self.lock)
        self._watcher = _watcher_of(self)
        self._waiters: list[asyncio.Future[None]] = []
        self._by_record: dict[Record, list[Future]] = {}
        self._face: Any = None
        self._end = None if timeout is None else time.monotonic() + to_seconds(timeout)
        if futures is not None:
            self.update(futures)

    @property
    def loop(self) -> Any:
        """The loop of the futures' client; None while there are no futures."""
        return None if self._face is None else self._face.loop

    # --- what is waited for ------------------------------------------------------------------

    def add(self, future: Future) -> None:
        """Wait for one more future."""
        self.update([future])

    def update(self, futures: Iterable[Future]) -> None:
        """Wait for more futures.

        Raises:
            TypeError: one of them is none.
        """
        new = list(futures)
        for future in new:
            if not isinstance(future, Future):
                raise TypeError(f"as_completed takes futures, not {type(future).__name__}")
        if not new:
            return
        self._face = self._face or new[0].face
        session = self._face.session
        records = [future.record for future in new]
        with self.lock:
            for future, record in zip(new, records, strict=True):
                self.futures[future] += 1
                self._by_record.setdefault(record, []).append(future)
        watched = set(session.watch_all(records, self._watcher))
        for record in dict.fromkeys(records):
            if record not in watched:
                self._on_end(record)

    def count(self) -> int:
        """How many are still to be given."""
        with self.lock:
            return sum(self.futures.values()) + len(self.queue)

    def is_empty(self) -> bool:
        """Whether all were given."""
        return not self.count()

    def has_ready(self) -> bool:
        """Whether one can be given at once."""
        with self.lock:
            return bool(self.queue)

    def clear(self) -> None:
        """Forget them all."""
        with self.lock:
            records = list(self._by_record)
            self._by_record.clear()
            self.futures.clear()
            self.queue.clear()
            self._changed.notify_all()
            waiters, self._waiters = self._waiters, []
        _wake(waiters)
        if self._face is not None:
            self._face.session.unwatch(records, self._watcher)

    def _on_end(self, record: Record) -> None:
        """On the loop, or in the thread that added a future that had ended."""
        with self.lock:
            for future in self._by_record.pop(record, ()):
                self.futures[future] -= 1
                if not self.futures[future]:
                    del self.futures[future]
                self.queue.append(future)
            self._changed.notify_all()
            waiters, self._waiters = self._waiters, []
        _wake(waiters)

    # --- one after another, blocking ---------------------------------------------------------

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return self._with_result(self._take())

    def next(self) -> Any:
        """As `next(self)`."""
        return self.__next__()

    def next_batch(self, block: bool = True) -> list[Any]:
        """All that have ended; if none has and `block`, wait for one."""
        if not block and not self.has_ready():
            return []
        batch = [self._take()]
        with self.lock:
            batch.extend(self.queue)
            self.queue.clear()
        return [self._with_result(future) for future in batch]

    def batches(self) -> Iterator[list[Any]]:
        """All of them, in lists of those that ended since the last one."""
        while True:
            try:
                yield self.next_batch(block=True)
            except StopIteration:
                return

    def _take(self) -> Future:
        with self._changed:
            while not self.queue:
                if not self.futures:
                    raise StopIteration
                if self._face.is_on_loop:
                    raise BlockingCall
                left = None if self._end is None else self._end - time.monotonic()
                if left is not None and left <= 0:
                    raise TimeoutError(self._text_of_timeout())
                with waiting_for_tasks():
                    self._changed.wait(left)
            return self.queue.popleft()

    def _with_result(self, future: Future) -> Any:
        if not self.with_results:
            return future
        if self._failed(future):
            return future, self._error(future)
        return future, future.result()

    # --- one after another, asynchronous -----------------------------------------------------

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        while True:
            with self.lock:
                if self.queue:
                    future = self.queue.popleft()
                    break
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
                raise TimeoutError(self._text_of_timeout()) from None
        if not self.with_results:
            return future
        if self._failed(future):
            return future, self._error(future)
        return future, await self._face.await_future(future)

    # --- outcomes ----------------------------------------------------------------------------

    def _text_of_timeout(self) -> str:
        return f"{sum(self.futures.values())} futures have not ended in time"

    def _failed(self, future: Future) -> bool:
        return future.record.status in (ERROR, CANCELLED)

    def _error(self, future: Future) -> Any:
        """The outcome of a future without a result, or raise it."""
        record = future.record
        error = outcome_error(record)
        if record.status == CANCELLED:
            return error
        if self.raise_errors:
            try:
                raise error
            finally:
                del error  # it holds this frame, which would hold it
        return type(error), error, error.__traceback__


def _watcher_of(completed: as_completed) -> Callable[[Record], None]:
    """Tells `completed` of records that ended, as long as somebody else refers to it."""
    reference = weakref.ref(completed)

    def watcher(record: Record) -> None:
        found = reference()
        if found is not None:
            found._on_end(record)

    return watcher


def _wake(waiters: Iterable[asyncio.Future[None]]) -> None:
    """Have those look again who iterate on loops; from any thread."""
    for waiter in waiters:
        waiter.get_loop().call_soon_threadsafe(_resolve, waiter)


def _resolve(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
