"""Whose CancelledError it is: what users call may raise one of its own."""

from __future__ import annotations

import asyncio


def is_our_cancellation(error: BaseException) -> bool:
    """Whether it is the calling coroutine that is cancelled, and not what it called or read."""
    ours = asyncio.current_task()
    is_cancelled = isinstance(error, asyncio.CancelledError)
    return is_cancelled and ours is not None and ours.cancelling() > 0
