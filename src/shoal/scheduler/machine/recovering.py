"""A scheduler that has come back gives out no run before those who may have the results are here.

The first who comes from another epoch begins it, or the first worker, if a journal tells of those
that were there.  Runs are given out once these are registered, and the workers that clients name as
they come back, or some seconds have passed; what nobody has brought by then is hoped for no longer.
Placing and filling ask; one place decides.
"""

from collections.abc import Iterable

from shoal.errors import ActorLost
from shoal.protocol.exceptions import to_failure
from shoal.protocol.keys import to_text
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.machine.journaling import note_all_gone
from shoal.scheduler.machine.waiting import fail
from shoal.scheduler.model.entities import RELEASED, Client, Task, Worker
from shoal.scheduler.model.orphans import Recovery


def note_arrival(core: Core) -> None:
    """Somebody registers; the first does so about when the scheduler began."""
    if core.state.first_came_at is None:
        core.state.first_came_at = core.now


def begin_recovery(core: Core) -> None:
    """Somebody was here before that this scheduler does not know: others may follow.

    A scheduler that has been there for long has seen all who were to come; unless it has a journal,
    and nobody came at all.
    """
    state, settings = core.state, core.settings
    note_arrival(core)
    began_at = state.first_came_at
    if state.recovery is not None or state.has_recovered or began_at is None:
        return
    heirlooms = state.heirlooms
    if core.now - began_at > settings.orphan_seconds and not heirlooms.are_awaited:
        return
    if settings.recovery_seconds <= 0:
        return
    until = core.now + settings.recovery_seconds
    recovery = state.recovery = Recovery(core.now, until)
    core.wake_by(until)
    if heirlooms.workers:
        recovery.is_named = True
        recovery.awaited.update((a, None) for a in heirlooms.workers if a not in state.workers)


def expect(core: Core, addresses: Iterable[str]) -> None:
    """Somebody who comes back knows of these.  Cost: O(addresses)."""
    begin_recovery(core)
    recovery = core.state.recovery
    if recovery is None:
        return
    recovery.is_named = True
    known = core.state.workers
    recovery.awaited.update(dict.fromkeys(a for a in addresses if a not in known))
    _go_on_if_all_came(core, recovery)


def note_worker(core: Core, worker: Worker) -> None:
    """One of those who are awaited may have come."""
    recovery = core.state.recovery
    if recovery is not None and worker.address in recovery.awaited:
        del recovery.awaited[worker.address]
        _go_on_if_all_came(core, recovery)


def note_speaker(core: Core, client: Client) -> None:
    """A client has come back, and is about to say what it lives on."""
    recovery = core.state.recovery
    if recovery is not None:
        recovery.speaking[client] = None


def note_said(core: Core, client: Client) -> None:
    """It has said all, as its first sign of life tells, or has gone."""
    recovery = core.state.recovery
    if recovery is not None and client in recovery.speaking:
        del recovery.speaking[client]
        _go_on_if_all_came(core, recovery)


def end_if_due(core: Core) -> None:
    """Whoever has not come by now is not waited for."""
    recovery = core.state.recovery
    if recovery is None:
        return
    if core.now < recovery.until:
        core.wake_by(recovery.until)
        return
    core.state.recovery = None
    core.state.has_recovered = True
    _forget_those_who_stayed_away(core)
    _go_on(core)
    _give_up_hope(core)


def _forget_those_who_stayed_away(core: Core) -> None:
    """The life after this one need not wait for them as well."""
    heirlooms = core.state.heirlooms
    addresses = [each for each in heirlooms.workers if each not in core.state.workers]
    heirlooms.workers = {}
    if addresses:
        note_all_gone(core, addresses)


def _go_on_if_all_came(core: Core, recovery: Recovery) -> None:
    if not recovery.holds_back:
        _go_on(core)


def _go_on(core: Core) -> None:
    """Runs may be given out: whatever was put off is looked at in this step."""
    unplaced = core.state.unplaced
    core.ready.extend(unplaced)
    unplaced.clear()
    core.refill.update(dict.fromkeys(core.state.workers.values()))


def _give_up_hope(core: Core) -> None:
    """What was named by key, and nobody has brought, is not there.  Cost: O(orphans)."""
    orphans = core.state.orphans
    for key, orphan in list(orphans.by_key.items()):
        if orphan.is_hoped_for:
            orphan.is_hoped_for = False
            if not orphan.is_of_use:
                del orphans.by_key[key]
                task = core.state.tasks.get(key)
                if task is not None and task.state == RELEASED:
                    _go_without(core, task)


def _go_without(core: Core, task: Task) -> None:
    """Nobody has brought it: it is computed, if it can be.  An actor that has lived can't."""
    if task.options.actor and task.nbytes >= 0 and task.is_needed:
        error = ActorLost(to_text(task.key), "any", "it has not come back to the scheduler")
        fail(core, task, to_failure(error, task.key))
    else:
        core.starting.append(task)


HANDLERS = Handlers(worker_joined=note_worker, client_gone=note_said, woken=end_if_due)
