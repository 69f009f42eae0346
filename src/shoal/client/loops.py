"""The event loops of blocking clients: uvloop's where it is installed, else asyncio's.

They have `add_callback`, by which libraries such as joblib hand a client's loop something to do.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from functools import cache, partial
from typing import Any


class _WithCallbacks:
    """Adds to a loop what those of `distributed` have."""

    def add_callback(self, callback: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        """Call `callback` soon, on the loop, and await what it returns; from any thread.

        What it raises goes to the loop's exception handler.
        """
        assert isinstance(self, asyncio.AbstractEventLoop)
        self.call_soon_threadsafe(_begin, partial(callback, *args, **kwargs))

    @property
    def asyncio_loop(self) -> asyncio.AbstractEventLoop:
        """The loop that a loop of tornado's would have inside: this one."""
        assert isinstance(self, asyncio.AbstractEventLoop)
        return self


def _begin(callback: Callable[[], Any]) -> None:
    result = callback()
    if inspect.isawaitable(result):
        awaiting = asyncio.get_running_loop().create_task(_awaited(result))
        _awaiting.add(awaiting)
        awaiting.add_done_callback(_awaiting.discard)


_awaiting: set[asyncio.Task[Any]] = set()  # since a loop itself refers to its tasks weakly only


async def _awaited(result: Awaitable[Any]) -> None:
    await result


def new_loop() -> asyncio.AbstractEventLoop:
    """A loop that nobody runs yet."""
    return _kind_of_loops()()


@cache
def _kind_of_loops() -> Callable[[], asyncio.AbstractEventLoop]:
    kind: type = asyncio.SelectorEventLoop  # our sockets are watched by readiness
    try:
        import uvloop
    except ImportError:
        pass  # it is quicker, and not needed
    else:
        kind = uvloop.Loop
    return type(f"{kind.__name__}WithCallbacks", (_WithCallbacks, kind), {})
