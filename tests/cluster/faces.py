"""One scenario, two faces: the blocking and the asynchronous client run the very same lines.

A scenario is a coroutine function that is given a client and awaits `ask(...)` of whatever a call
returned.  With the blocking client nothing in it ever suspends, so it needs no loop at all.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from shoal import BaseActorFuture, Client, Future

Scenario = Callable[..., Awaitable[None]]

GIVEN = (Future, BaseActorFuture)
"""Types of what a call gives that could be awaited itself."""


async def ask(value: Any) -> Any:
    """What a call gives in the end, on either face."""
    waits = inspect.isawaitable(value) and not isinstance(value, GIVEN)
    return await value if waits else value


def play_blocking(scenario: Scenario, **cluster: Any) -> None:
    """Play `scenario` with the blocking client of a new cluster."""
    with Client(**cluster) as client:
        playing = scenario(client)
        try:
            playing.send(None)  # type: ignore[attr-defined]
        except StopIteration:
            return
        raise AssertionError("the blocking client suspended a coroutine")


def play_asynchronous(scenario: Scenario, **cluster: Any) -> None:
    """Play `scenario` with the asynchronous client of a new cluster, on a loop of its own."""

    async def play() -> None:
        async with Client(asynchronous=True, **cluster) as client:
            await scenario(client)

    asyncio.run(play())


FACES = {"blocking": play_blocking, "asynchronous": play_asynchronous}
