"""Locks: who holds each, and who waits for it, first come, first served.

A claim ends with the connection of its client, so that whoever dies holding a lock lets go of it.
"""

from collections.abc import Iterator

from shoal.protocol.answers import answer
from shoal.protocol.coordination import AcquireLock, IsLocked, ReleaseLock
from shoal.protocol.framing import ProtocolError
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.model.entities import Client
from shoal.scheduler.model.locks import Claim, Lock
from shoal.scheduler.model.state import SchedulerState


def on_acquire_lock(core: Core, client: Client, call: AcquireLock) -> None:
    """Grant the lock now if it is free, or later if the caller waits for it.

    Raises:
        ProtocolError: the client uses the number of a claim to it that has not ended.
    """
    locks = core.state.locks
    claim = Claim(client, call.claim)
    lock = locks.get(call.name)
    if lock is not None and (claim == lock.holder or claim in lock.waiting):
        raise ProtocolError("AcquireLock uses the number of a claim that has not ended")
    if lock is None:
        locks[call.name] = Lock(claim)
        core.to_client(client, answer(call.request, True))
    elif call.waits:
        lock.waiting[claim] = call.request
    else:
        core.to_client(client, answer(call.request, False))


def on_is_locked(core: Core, client: Client, call: IsLocked) -> None:
    """Whether somebody holds the lock."""
    core.to_client(client, answer(call.request, call.name in core.state.locks))


def on_release_lock(core: Core, client: Client, message: ReleaseLock) -> None:
    """End a claim, held or waiting; one that is not known has ended already."""
    _end(core, message.name, Claim(client, message.claim))


def drop_claims(core: Core, client: Client) -> None:
    """The client has gone: nothing is locked by it any more.  Cost: O(locks + claims)."""
    for name, lock in list(core.state.locks.items()):
        for claim in [claim for claim in (*lock.waiting, lock.holder) if claim.client is client]:
            _end(core, name, claim)


def have_live_holders(state: SchedulerState) -> Iterator[str]:
    """Whoever holds a lock or waits for it is connected, and nobody waits for himself."""
    for name, lock in state.locks.items():
        for claim in (lock.holder, *lock.waiting):
            if state.clients.get(claim.client.id) is not claim.client:
                yield f"the lock {name!r} is claimed by {claim.client}, which has gone"
        if lock.holder in lock.waiting:
            yield f"{lock.holder.client} holds the lock {name!r} and waits for it, as one claim"


def _end(core: Core, name: str, claim: Claim) -> None:
    lock = core.state.locks.get(name)
    if lock is None:
        return
    if lock.holder != claim:
        request = lock.waiting.pop(claim, None)
        if request is not None:
            core.to_client(claim.client, answer(request, False))
    elif lock.waiting:
        heir = next(iter(lock.waiting))
        request = lock.waiting.pop(heir)
        lock.holder = heir
        core.to_client(heir.client, answer(request, True))
    else:
        del core.state.locks[name]


HANDLERS = Handlers(
    from_client={
        AcquireLock: on_acquire_lock,
        ReleaseLock: on_release_lock,
        IsLocked: on_is_locked,
    },
    client_gone=drop_claims,
    invariant=have_live_holders,
)
