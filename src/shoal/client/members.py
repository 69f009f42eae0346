"""The workers that there are, as the scheduler keeps a client told."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Protocol, TypeVar

import msgspec

from shoal.observe.facts import FactsOfScheduler, facts_of_identity
from shoal.protocol.looking import MemberJoined, MemberLeft
from shoal.protocol.looking import Members as MembersNow
from shoal.protocol.questions import Identity, WorkerIdentity

P = TypeVar("P")


class Listening(Protocol):
    """What is needed of a session."""

    def state_of(self, kind: type[P]) -> P:
        """The session's one `kind`."""


class Members:
    """The workers by address; nobody, for a client that does not watch."""

    def __init__(self) -> None:
        self.by_address: dict[str, WorkerIdentity] = {}


class LiveFacts(FactsOfScheduler):
    """As much as is known here, at once; awaited, the scheduler is asked for the latest."""

    fresh: Callable[[], Coroutine[Any, Any, FactsOfScheduler]]
    """Asks."""

    def __await__(self) -> Generator[Any, Any, FactsOfScheduler]:
        return self.fresh().__await__()


def facts_known(identity: Identity, nworkers: int) -> LiveFacts:
    """What `identity` says, with `nworkers` of its workers; -1: with all."""
    shown = identity.workers[: nworkers if nworkers >= 0 else None]
    total = msgspec.structs.replace(
        identity,
        workers=shown,
        nworkers=len(identity.workers),
        total_nthreads=sum(worker.nthreads for worker in identity.workers),
        total_memory=sum(worker.memory_limit for worker in identity.workers),
    )
    return LiveFacts(facts_of_identity(total))


def on_members(session: Listening, message: MembersNow, buffers: list[Any]) -> None:
    """These are there, and no others."""
    session.state_of(Members).by_address = {w.address: _seen_now(w) for w in message.workers}


def on_member_joined(session: Listening, message: MemberJoined, buffers: list[Any]) -> None:
    """One more, or one anew."""
    worker = message.worker
    session.state_of(Members).by_address[worker.address] = _seen_now(worker)


def on_member_left(session: Listening, message: MemberLeft, buffers: list[Any]) -> None:
    """One less."""
    session.state_of(Members).by_address.pop(message.address, None)


def _seen_now(worker: WorkerIdentity) -> WorkerIdentity:
    """By our clock: the scheduler's machine has none."""
    return msgspec.structs.replace(worker, heard_at=time.time())
