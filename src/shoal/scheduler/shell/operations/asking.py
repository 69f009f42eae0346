"""Asking several workers one thing, all at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Final

from shoal.protocol.answers import Refusal
from shoal.protocol.directions import answered
from shoal.protocol.exceptions import from_failure, to_failure
from shoal.protocol.messages import Failure, Message
from shoal.scheduler.model.entities import Worker
from shoal.scheduler.shell.host import Host

SECONDS_MAX: Final = 12.0
"""So long a worker may take: a cluster is looked at when something is wrong with it.

Less than what ends a scheduler waits for, so that a last dump is written without such a worker.
"""


async def ask(
    host: Host,
    worker: Worker,
    make: Callable[[int], Message],
    seconds_max: float = SECONDS_MAX,
) -> Any:
    """What a worker answers, or the Failure of it: as it can't, is too late, or was lost meanwhile.

    Args:
        make: the call, given its number.
    """
    try:
        peer = host.peer_of(worker)
        request, reply = peer.calls.open("a look", seconds_max)
        call = make(request)
        peer.send([call])
        said = await reply
    except OSError as error:
        return to_failure(error, worker=worker.address)
    return said.failure if isinstance(said, Refusal) else answered(type(call), said)


async def ask_all(
    host: Host,
    workers: Iterable[Worker],
    make: Callable[[int], Message],
    seconds_max: float = SECONDS_MAX,
) -> dict[str, Any]:
    """What each worker answers, or the Failure of it, by address."""
    asked = list(workers)
    answers = await asyncio.gather(*(ask(host, worker, make, seconds_max) for worker in asked))
    return {worker.address: said for worker, said in zip(asked, answers, strict=True)}


def those_that_answered(answers: dict[str, Any]) -> dict[str, Any]:
    """Without the workers that failed to."""
    return {address: said for address, said in answers.items() if not isinstance(said, Failure)}


def all_answered(answers: dict[str, Any]) -> dict[str, Any]:
    """The answers; raises what the first worker failed with, if one did."""
    for said in answers.values():
        if isinstance(said, Failure):
            raise from_failure(said)
    return answers
