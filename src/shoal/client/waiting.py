"""Waiting for futures: for all, for the first, or for the first that fails."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from shoal.client.completing import as_completed
from shoal.client.current import current_client
from shoal.client.errors import UnknownWait, WaitedTooLong
from shoal.client.future import Future, futures_of
from shoal.client.gathering import cancelled_errors
from shoal.client.lateness import why_late
from shoal.client.machine import CANCELLED, ERROR
from shoal.client.standins import calls_in
from shoal.units import to_seconds

ALL_COMPLETED = "ALL_COMPLETED"
FIRST_COMPLETED = "FIRST_COMPLETED"
FIRST_EXCEPTION = "FIRST_EXCEPTION"
CHOICES = (ALL_COMPLETED, FIRST_COMPLETED, FIRST_EXCEPTION)


class DoneAndNotDone(NamedTuple):
    """What `wait` returns."""

    done: set[Future]
    not_done: set[Future]


def wait(fs: Any, timeout: Any = None, return_when: str = ALL_COMPLETED) -> Any:
    """Wait until all futures, or one of them, have ended; errors of tasks don't raise.

    Args:
        fs: a future, or futures in containers or collections; those of calls to actors, too.
        timeout: seconds, or a text such as "10s"; None: no limit.
        return_when: `ALL_COMPLETED`, `FIRST_COMPLETED`, or `FIRST_EXCEPTION`: as soon as one has
            failed, and else when all have ended.

    Returns:
        The futures that have ended, and those that have not.

    Raises:
        TimeoutError: they did not end in time; its `done` and `not_done` say which.
        FuturesCancelledError: some were cancelled; a CancelledError.

    A coroutine with an asynchronous client.
    """
    if timeout is not None and not isinstance(timeout, (int, float, str)):
        raise TypeError(
            f"timeout= is a number of seconds or a text such as '10s', not {timeout!r}. "
            "Several futures go into one list: wait([x, y]), not wait(x, y)."
        )
    if return_when not in CHOICES:
        raise UnknownWait(return_when, CHOICES)
    futures = futures_of(fs)
    calls = calls_in(fs)
    if not futures and not calls:
        return DoneAndNotDone(set(), set())
    if futures:
        face = futures[0].face
    else:
        face = getattr(calls[0], "client", None) or current_client()
    return face.finish(wait_for([*futures, *calls], timeout, return_when))


async def wait_for(
    fs: list[Any], timeout: Any = None, return_when: str = ALL_COMPLETED
) -> DoneAndNotDone:
    """As `wait`, on the loop of the futures' client."""
    ours = [future for future in fs if isinstance(future, Future)]
    session: Any = ours[0].face.session if ours else None
    is_mixed = len(ours) < len(fs) or any(f.face.session is not session for f in ours)
    records = [future.record for future in ours]
    seconds = None if timeout is None else to_seconds(timeout)
    try:
        async with asyncio.timeout(seconds):
            if is_mixed:
                await _wait_for_mixed(fs, return_when)
            elif return_when == FIRST_COMPLETED:
                await session.wait_any(records)
            else:
                await session.wait_all(records, until_failed=return_when == FIRST_EXCEPTION)
    except TimeoutError:
        done, not_done = _sorted(fs)
        why = await _why_late(ours, seconds)
        raise WaitedTooLong(done, not_done, to_seconds(timeout), why) from None
    cancelled = cancelled_errors(records)
    if cancelled is not None:
        raise cancelled
    return _sorted(fs)


async def _why_late(futures: list[Future], seconds: float | None) -> str:
    """What the first of those that have not ended waits for, and others of its client."""
    waiting = [future for future in futures if not future.done()]
    if not waiting:
        return ""
    session = waiting[0].face.session
    if session.loop is not asyncio.get_running_loop():
        return ""
    records = [future.record for future in waiting if future.face.session is session]
    return await why_late(session, records, seconds)


async def _wait_for_mixed(futures: list[Any], return_when: str) -> None:
    """Wait for futures of several clients, whose loops may be several, too."""
    completed = as_completed(futures)
    try:
        async for future in completed:
            has_failed = future.status in (ERROR, CANCELLED)
            if return_when == FIRST_COMPLETED or (return_when == FIRST_EXCEPTION and has_failed):
                return
    finally:
        completed.clear()


def _sorted(futures: list[Any]) -> DoneAndNotDone:
    """Which have ended, and which have not."""
    done = {future for future in futures if future.done()}
    return DoneAndNotDone(done, set(futures) - done)
