"""Waiting on the loop for what nothing tells of: in turns of the loop, and not for ever."""

import asyncio
import inspect
from collections.abc import Callable

SECONDS_MAX = 10.0


async def until(is_so: Callable[[], object]) -> None:
    """Let the loop turn until `is_so`.  Raises AssertionError: it was not so in time."""
    loop = asyncio.get_running_loop()
    end = loop.time() + SECONDS_MAX
    while not is_so():
        assert loop.time() < end, f"not so within {SECONDS_MAX:g} s: {inspect.getsource(is_so)}"
        await asyncio.sleep(0)
