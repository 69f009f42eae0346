"""Locks and semaphores: who holds each, and who waits for it, first come, first served.

A claim ends with the connection of its client, so that whoever dies holding a lock lets go of it.
"""

from collections.abc import Iterator

from shoal.errors import InconsistentLeases, LockNotKnown
from shoal.protocol.answers import Refusal, answer
from shoal.protocol.coordination import (
    AcquireLease,
    AcquireLock,
    CloseLock,
    CountLeases,
    IsLocked,
    RegisterLock,
    ReleaseLock,
)
from shoal.protocol.exceptions import to_failure
from shoal.protocol.framing import ProtocolError
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.model.entities import Client
from shoal.scheduler.model.locks import Claim, Lock, Standing
from shoal.scheduler.model.state import SchedulerState


def on_acquire_lock(core: Core, client: Client, call: AcquireLock) -> None:
    """As `on_acquire_lease` of what one claim may hold."""
    lease = AcquireLease(call.request, call.name, call.claim, 1, call.waits)
    on_acquire_lease(core, client, lease)


def on_acquire_lease(core: Core, client: Client, call: AcquireLease) -> None:
    """Grant the lock now if it is free, or later if the caller waits for it.

    Raises:
        ProtocolError: the client uses the number of a claim to it that has not ended, or wants a
            lease of none.
    """
    claim = Claim(client, call.claim)
    lock = core.state.locks.get(call.name)
    if lock is not None and (claim in lock.held or claim in lock.waiting):
        raise ProtocolError("AcquireLock uses the number of a claim that has not ended")
    if lock is None and call.must_exist:
        _refuse(core, client, call.request, LockNotKnown(call.name))
        return
    lock = _find(core, client, call)
    if lock is None:
        return
    if call.registers:
        lock.users[client] = None
    standing = Standing(core.now, call.by, call.request)
    if len(lock.held) < lock.leases_max:
        _grant(core, lock, claim, standing)
    elif call.waits:
        lock.waiting[claim] = standing
    else:
        core.to_client(client, answer(call.request, False))


def on_register_lock(core: Core, client: Client, call: RegisterLock) -> None:
    """It is known from now on, and with it how many may hold it.

    Raises:
        ProtocolError: nobody may.
    """
    lock = _find(core, client, call)
    if lock is not None:
        lock.users[client] = None
        core.to_client(client, answer(call.request, None))


def on_is_locked(core: Core, client: Client, call: IsLocked) -> None:
    """Whether somebody holds the lock."""
    lock = core.state.locks.get(call.name)
    core.to_client(client, answer(call.request, lock is not None and bool(lock.held)))


def on_count_leases(core: Core, client: Client, call: CountLeases) -> None:
    """How many claims hold it."""
    lock = core.state.locks.get(call.name)
    core.to_client(client, answer(call.request, 0 if lock is None else len(lock.held)))


def on_release_lock(core: Core, client: Client, message: ReleaseLock) -> None:
    """End a claim, held or waiting; one that is not known has ended already."""
    _end(core, message.name, Claim(client, message.claim))


def on_close_lock(core: Core, client: Client, call: CloseLock) -> None:
    """Whoever holds it holds it no more, and whoever waits for it is told that it has gone."""
    lock = core.state.locks.pop(call.name, None)
    if lock is not None:
        for claim, standing in lock.waiting.items():
            _refuse(core, claim.client, standing.request, LockNotKnown(call.name))
    core.to_client(client, answer(call.request, 0 if lock is None else len(lock.held)))


def drop_claims(core: Core, client: Client) -> None:
    """The client has gone: nothing is locked by it any more.  Cost: O(locks + claims)."""
    for name, lock in list(core.state.locks.items()):
        lock.users.pop(client, None)
        for claim in [claim for claim in (*lock.waiting, *lock.held) if claim.client is client]:
            _end(core, name, claim)
        _forget_if_idle(core, name, lock)


def have_live_holders(state: SchedulerState) -> Iterator[str]:
    """Whoever holds a lock or waits for it is connected, and nobody waits for what is free."""
    for name, lock in state.locks.items():
        for claim in (*lock.held, *lock.waiting):
            if state.clients.get(claim.client.id) is not claim.client:
                yield f"the lock {name!r} is claimed by {claim.client}, which has gone"
        for claim in lock.held:
            if claim in lock.waiting:
                yield f"{claim.client} holds the lock {name!r} and waits for it, as one claim"
        if len(lock.held) > lock.leases_max:
            yield f"{len(lock.held)} claims hold the lock {name!r}, for {lock.leases_max}"
        if lock.waiting and len(lock.held) < lock.leases_max:
            yield f"{len(lock.waiting)} claims wait for the lock {name!r}, which is free"
        if not lock.held and not lock.users:
            yield f"the lock {name!r} is known, and nobody has to do with it"


def _find(core: Core, client: Client, call: AcquireLease | RegisterLock) -> Lock | None:
    """The lock, made if it is new; None if it is another than the caller thinks, who is told."""
    if call.leases_max < 1:
        raise ProtocolError(f"{type(call).__name__} names a lock that nobody may hold")
    lock = core.state.locks.get(call.name)
    if lock is None:
        lock = core.state.locks[call.name] = Lock(call.leases_max)
    elif lock.leases_max != call.leases_max:
        error = InconsistentLeases(call.name, lock.leases_max, call.leases_max)
        _refuse(core, client, call.request, error)
        return None
    return lock


def _grant(core: Core, lock: Lock, claim: Claim, standing: Standing) -> None:
    lock.held[claim] = Standing(core.now, standing.by)
    core.to_client(claim.client, answer(standing.request, True))


def _end(core: Core, name: str, claim: Claim) -> None:
    lock = core.state.locks.get(name)
    if lock is None:
        return
    if claim not in lock.held:
        standing = lock.waiting.pop(claim, None)
        if standing is not None:
            core.to_client(claim.client, answer(standing.request, False))
        return
    del lock.held[claim]
    if lock.waiting:
        heir = next(iter(lock.waiting))
        _grant(core, lock, heir, lock.waiting.pop(heir))
    _forget_if_idle(core, name, lock)


def _forget_if_idle(core: Core, name: str, lock: Lock) -> None:
    if not lock.held and not lock.users:
        core.state.locks.pop(name, None)


def _refuse(core: Core, client: Client, request: int, error: Exception) -> None:
    core.to_client(client, Refusal(request, to_failure(error)))


HANDLERS = Handlers(
    from_client={
        AcquireLock: on_acquire_lock,
        AcquireLease: on_acquire_lease,
        RegisterLock: on_register_lock,
        ReleaseLock: on_release_lock,
        IsLocked: on_is_locked,
        CountLeases: on_count_leases,
        CloseLock: on_close_lock,
    },
    client_gone=drop_claims,
    invariant=have_live_holders,
)
