"""Results of tasks as futures of `concurrent.futures`, which whoever knows nothing of us takes."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

from shoal.client.blocking import CALLBACKS
from shoal.client.future import Future
from shoal.client.gathering import FAILED, load_near, outcome_error
from shoal.client.machine import CANCELLED, ERROR, FINISHED, UNRESOLVED, Record
from shoal.comms.cancellation import is_our_cancellation
from shoal.errors import FutureCancelledError

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


Awaited = list[tuple[ExecutorFuture, Future]]
"""Futures, and the tasks whose results they get."""


class Fetching:
    """Large results on their way to a session's executor futures, each round of them together."""

    def __init__(self) -> None:
        self.waiting: Awaited = []
        self.underway: Awaited = []
        self.is_busy = False

    def take_all(self) -> Awaited:
        """What has not been given; nobody sees to it any more."""
        left = [*self.underway, *self.waiting]
        self.underway, self.waiting, self.is_busy = [], [], False
        return left


def deliver_when_ended(
    future: ExecutorFuture, task: Future, on_end: Callable[[ExecutorFuture], object]
) -> None:
    """Give `future` what its task ends with, then call `on_end(future)`."""
    tell: Any = on_end  # it is given the future itself, whatever its class says
    concurrent.futures.Future.add_done_callback(future, tell)
    _watch(future, task)


def cancel_now(tasks: Iterable[Future]) -> None:
    """As `Client.cancel`, from any thread, without waiting; nothing happens once it is closed."""
    for task in tasks:
        session = task.face.session
        with session.lock:
            session.machine.cancel([task.record])
        session.wake()


def cancel_unshared(tasks: Iterable[Future]) -> list[Future]:
    """As `cancel_now`, of those that nobody else holds a future of; returns the others."""
    mine = list(tasks)
    counts = Counter(task.record for task in mine)
    shared = []
    for task in mine:
        session, record = task.face.session, task.record
        with session.lock:
            is_shared = record.nfutures > counts[record]
            if not is_shared:
                session.machine.cancel([record])
        session.wake()
        if is_shared:
            shared.append(task)
    return shared


def _watch(future: ExecutorFuture, task: Future) -> None:
    session, record = task.face.session, task.record
    ended = partial(_on_end, future, task)
    if not session.watch(record, ended):
        try:
            session.loop.call_soon_threadsafe(ended, record)
        except RuntimeError:
            _end(future, record)  # the client was closed


def _on_end(future: ExecutorFuture, task: Future, record: Record) -> None:
    """On the loop."""
    if record.status in UNRESOLVED:
        _watch(future, task)  # its result was lost before it was its turn
    elif record.status == FINISHED and record.value is None:
        _fetch_soon(future, task)
    else:
        _end(future, record)


def _fetch_soon(future: ExecutorFuture, task: Future) -> None:
    session = task.face.session
    fetching = session.state_of(Fetching)
    fetching.waiting.append((future, task))
    if not fetching.is_busy:
        fetching.is_busy = True
        fetch = asyncio.ensure_future(_fetch(fetching))
        _underway.add(fetch)  # the loop itself refers to its tasks weakly
        fetch.add_done_callback(partial(_after_fetch, fetching))


async def _fetch(fetching: Fetching) -> None:
    """Fetch what has ended, and what ends meanwhile, until nothing is left."""
    while fetching.waiting:
        waiting, fetching.waiting = fetching.waiting, []
        fetching.underway = waiting
        face = waiting[0][1].face
        records = [task.record for _, task in waiting]
        try:
            values = await face.await_results(records)
        except BaseException as error:  # none of them can be had: each says why, below
            if is_our_cancellation(error):
                raise
            values = {}
        for (future, task), record in zip(waiting, records, strict=True):
            value = values.get(record, FAILED)
            if value is not FAILED:
                _set(future, value, None)
                continue
            try:
                _set(future, await face.await_future(task), None)
            except BaseException as error:  # a SystemExit of a value must not end the loop
                if is_our_cancellation(error):
                    raise
                _set(future, None, error)
        fetching.underway = []
    fetching.is_busy = False


def _after_fetch(fetching: Fetching, fetch: asyncio.Future[None]) -> None:
    """If it was cancelled, as the loop ends with its last client, nothing more will come."""
    _underway.discard(fetch)
    if fetch.cancelled():
        for future, task in fetching.take_all():
            _set(future, None, FutureCancelledError(task.key, "client-closed"))


def _end(future: ExecutorFuture, record: Record) -> None:
    """A task has ended, and what it ended with is here, or will never be."""
    if record.status == CANCELLED:
        if future.is_first_cancel() and concurrent.futures.Future.cancel(future):
            future.set_running_or_notify_cancel()
    elif record.status == ERROR:
        _set(future, None, outcome_error(record))
    elif record.value is None:
        _set(future, None, FutureCancelledError(future.key, "client-closed"))
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
