"""What modules about processes had: waiting for signals, and functions as bytes."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from typing import Any

from shoal.compat.pickling import dumps


def dumps_function(func: Callable[..., Any]) -> bytes:
    """A function as bytes."""
    return dumps(func)


async def wait_for_signals() -> int:
    """Wait for SIGINT or SIGTERM, which have no other effect meanwhile; its number."""
    loop = asyncio.get_running_loop()
    caught: asyncio.Future[int] = loop.create_future()

    def catch(number: int) -> None:
        if not caught.done():
            caught.set_result(number)

    wanted = (signal.SIGINT, signal.SIGTERM)
    for number in wanted:
        loop.add_signal_handler(number, catch, int(number))
    try:
        return await caught
    finally:
        for number in wanted:
            loop.remove_signal_handler(number)
