"""Whose CancelledError it is: what users call may raise one of its own."""

from __future__ import annotations

import asyncio


def is_our_cancellation(error: BaseException) -> bool:
    """Whether it is the calling coroutine that is cancelled, and not what it called or read.

    False where nothing could be cancelled: in a thread without a loop.
    """
    if not isinstance(error, asyncio.CancelledError):
        return False
    try:
        ours = asyncio.current_task()
    except RuntimeError:  # no loop runs here
        return False
    return ours is not None and ours.cancelling() > 0
