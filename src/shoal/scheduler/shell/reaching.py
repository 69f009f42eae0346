"""What the scheduler asks of a worker, though it be held, and by way of it of its nanny."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from shoal.protocol.answers import Refusal
from shoal.protocol.directions import answered
from shoal.protocol.messages import Message
from shoal.protocol.plugins import AskNanny
from shoal.protocol.running import Outcome
from shoal.scheduler.shell.host import Asker


async def ask_nanny(
    peer: Asker,
    operation: str,
    argument: bytes = b"",
    *,
    turn: asyncio.Semaphore | None = None,
) -> Outcome:
    """Have the nanny of a worker do something.

    Raises:
        OSError: the worker has gone.
    """
    outcome: Outcome = await ask(peer, lambda n: AskNanny(n, operation, argument), turn=turn)
    return outcome


async def ask(
    peer: Asker, make: Callable[[int], Message], *, turn: asyncio.Semaphore | None = None
) -> Any:
    """Ask a worker, though it be held; what it refuses is an Outcome with a failure.

    Args:
        turn: waited for before it is asked, and held until the question is on its way.

    Raises:
        OSError: the worker has gone.
    """
    if turn is None:
        kind, reply = _question(peer, make)
    else:
        async with turn:
            kind, reply = _question(peer, make)
            with contextlib.suppress(OSError):  # `reply` has it, too
                await peer.connection.drain()
    answer = await reply
    if isinstance(answer, Refusal):
        return Outcome(failure=answer.failure)
    return answered(kind, answer)


def _question(
    peer: Asker, make: Callable[[int], Message]
) -> tuple[type[Message], asyncio.Future[Any]]:
    request, reply = peer.calls.open("a request")
    message = make(request)
    say(peer, message)
    return type(message), reply


def say(peer: Asker, message: Message) -> None:
    """Send a message, though the worker be held, unless the connection has ended."""
    if not peer.connection.closed:
        peer.connection.send([message])
