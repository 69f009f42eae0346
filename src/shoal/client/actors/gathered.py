"""Results of calls to actors, gathered together with those of tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any

from shoal.client.gathering import FAILED
from shoal.comms.cancellation import is_our_cancellation


class _Failed(Exception):
    """Carries what a call raised: a SystemExit would end the loop."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


async def gather_together(
    calls: Sequence[Any], values: Awaitable[Any], *, skip: bool
) -> tuple[dict[Any, Any], Any]:
    """What each call has returned, and what `values` come to; whichever fails first is raised.

    Args:
        skip: calls that fail are `FAILED`.

    Raises:
        BaseException: what a call raised, or `values` did; the others are not waited for any more.
    """
    waiting = [asyncio.ensure_future(_ending(call, skip=skip)) for call in calls]
    waiting.append(asyncio.ensure_future(_ending(values, skip=False)))
    failed: _Failed | None = None
    try:
        *returned, result = await asyncio.gather(*waiting)
    except _Failed as error:
        failed = error
    finally:
        for task in waiting:
            task.cancel()  # nothing happens to one that has ended
    if failed is None:
        return dict(zip(calls, returned, strict=True)), result
    await asyncio.gather(*waiting, return_exceptions=True)
    try:
        raise failed.error
    finally:
        del failed  # what it raises holds this frame, which would hold it


async def _ending(work: Awaitable[Any], *, skip: bool) -> Any:
    try:
        return await work
    except BaseException as error:
        if is_our_cancellation(error):
            raise
        if skip:
            return FAILED
        raise _Failed(error) from None
