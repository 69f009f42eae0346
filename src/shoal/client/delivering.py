"""Results of tasks as futures of `concurrent.futures`, which whoever knows nothing of us takes."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Iterable
from typing import Any, Final

from shoal.client.blocking import CALLBACKS
from shoal.client.future import Future
from shoal.client.gathering import FAILED, load_near, outcome_error
from shoal.client.machine import CANCELLED, ERROR, FINISHED, Record

_underway: Final[set[asyncio.Future[None]]] = set()


class ExecutorFuture(concurrent.futures.Future[Any]):
    """What an executor's `submit` gives.

    Args:
        task: whose result it gets; wanted as long as somebody refers to this.
    """

    def __init__(self, task: Future) -> None:
        super().__init__()
        self.key = task.key
        self._task = task
        self._is_cancelled = False

    def cancel(self) -> bool:
        """Cancel the task; False: its result is here.  A function that runs is not interrupted."""
        cancelled = super().cancel()
        if cancelled and self.is_first_cancel():
            cancel_now([self._task])
            self.set_running_or_notify_cancel()
        return cancelled

    def add_done_callback(self, fn: Callable[[Any], object]) -> None:
        """Call `fn(future)` once it is done, in a thread that all callbacks share."""
        super().add_done_callback(lambda done: CALLBACKS.put(fn, done))

    def is_first_cancel(self) -> bool:
        """Whether nobody has seen to its cancellation yet; the caller does."""
        with self._condition:
            was_cancelled, self._is_cancelled = self._is_cancelled, True
        return not was_cancelled


class Fetching:
    """Large results on their way to a session's executor futures, each round of them together."""

    def __init__(self) -> None:
        self.waiting: list[tuple[ExecutorFuture, Future]] = []
        self.is_busy = False


def deliver_when_ended(
    future: ExecutorFuture, task: Future, on_end: Callable[[ExecutorFuture], object]
) -> None:
    """Give `future` what its task ends with, then call `on_end(future)`."""
    session = task.face.session
    tell: Any = on_end  # it is given the future itself, whatever its class says
    concurrent.futures.Future.add_done_callback(future, tell)

    def ended(record: Record) -> None:  # on the loop
        if record.status == FINISHED and record.value is None:
            fetching = session.state_of(Fetching)
            fetching.waiting.append((future, task))
            if not fetching.is_busy:
                fetching.is_busy = True
                fetch = asyncio.ensure_future(_fetch(fetching, session))
                _underway.add(fetch)  # the loop itself refers to its tasks weakly
                fetch.add_done_callback(_underway.discard)
        else:
            _end(future, record)

    record = task.record
    if not session.watch(record, ended):
        try:
            session.loop.call_soon_threadsafe(ended, record)
        except RuntimeError:
            _end(future, record)  # the client was closed


def cancel_now(tasks: Iterable[Future]) -> None:
    """As `Client.cancel`, from any thread, without waiting; nothing happens once it is closed."""
    for task in tasks:
        session = task.face.session
        with session.lock:
            session.machine.cancel([task.record])
        session.wake()


async def _fetch(fetching: Fetching, session: Any) -> None:
    """Fetch what has ended, and what ends meanwhile, until nothing is left."""
    while fetching.waiting:
        waiting, fetching.waiting = fetching.waiting, []
        face = waiting[0][1].face
        records = [task.record for _, task in waiting]
        try:
            values = await face.await_results(records)
        except Exception:  # none of them can be had: each says why, below
            values = {}
        for (future, task), record in zip(waiting, records, strict=True):
            value = values.get(record, FAILED)
            if value is not FAILED:
                _set(future, value, None)
                continue
            try:
                _set(future, await face.await_future(task), None)
            except Exception as error:
                _set(future, None, error)
    fetching.is_busy = False


def _end(future: ExecutorFuture, record: Record) -> None:
    """A task has ended, and what it ended with is here."""
    if record.status == CANCELLED:
        if future.is_first_cancel() and concurrent.futures.Future.cancel(future):
            future.set_running_or_notify_cancel()
    elif record.status == ERROR:
        _set(future, None, outcome_error(record))
    else:
        try:
            value = load_near(record)
        except BaseException as error:
            _set(future, None, error)
        else:
            _set(future, value, None)


def _set(future: ExecutorFuture, value: Any, error: BaseException | None) -> None:
    """Its result or exception, unless it was cancelled just now."""
    try:
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)
    except concurrent.futures.InvalidStateError:
        pass  # whoever cancelled it does not wait for this
