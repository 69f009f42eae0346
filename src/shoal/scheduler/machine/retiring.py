"""Workers that shall go: what only they hold is copied first, and nothing new is given to them.

Three things in this order, and the last two in one step: the worker is given nothing more; copies
of what is held by it alone are confirmed by those who stay; it is removed.  One whose results
nobody can take goes on working as before.
"""

from collections.abc import Iterator
from itertools import chain

from shoal.protocol.answers import answer
from shoal.protocol.membership import Closing, LeavingChanged, RetireWorkers, TimeIsOver
from shoal.scheduler.machine.copying import (
    attend_in_turn,
    attend_to_joined,
    begin_copies,
    drop_replica,
    due_now,
    forget_refusals,
    note_arrivals,
    pursue_goal,
    settle_calls,
)
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.demands import drop_unmet
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.machine.on_membership import remove_worker
from shoal.scheduler.machine.pausing import take_back
from shoal.scheduler.machine.placing import update_load
from shoal.scheduler.machine.reducing import note_copies
from shoal.scheduler.machine.stranding import note_worker
from shoal.scheduler.machine.telling import report_retirement
from shoal.scheduler.machine.waiting import wait_again
from shoal.scheduler.machine.waiting_calls import answer_waiting_calls
from shoal.scheduler.model.copies import RetireCall, Retirement
from shoal.scheduler.model.entities import FORGOTTEN, Client, Task, Worker
from shoal.scheduler.model.state import SchedulerState
from shoal.scheduler.policies.reduction import uses_of
from shoal.scheduler.policies.retirement import (
    Takers,
    is_only_with,
    who_stays,
    workers_to_close,
)

RETIRED = "it was retired"
"""Why the worker closes, as it is told."""

NOBODY_TAKES = "no other worker can take what only it holds"
HAS_ACTORS = "it has actors, which live on one worker and can't be moved"
NO_PROGRESS = "what only it holds was not taken in time"
LOST = "it was lost before"


def on_retire_workers(core: Core, client: Client, call: RetireWorkers) -> None:
    """Begin to let workers go; answered when it is decided about each."""
    state = core.state
    if call.workers is None:
        chosen = workers_to_close(state.workers.values(), call.closing or Closing())
    else:
        chosen = list(state.workers_named(call.workers))
    waits = RetireCall(client, call.request, removes=call.removes, reason=RETIRED)
    begin_retiring(core, chosen, waits, call.patience_seconds)


def on_time_is_over(core: Core, worker: Worker, message: TimeIsOver) -> None:
    """Begin to let a worker go that has asked for it; if it is going already, that goes on."""
    if worker not in core.state.copies.retiring:
        waits = RetireCall(None, 0, removes=True, reason=message.reason, must_go=True)
        begin_retiring(core, [worker], waits, message.patience_seconds)


def begin_retiring(
    core: Core, chosen: list[Worker], waits: RetireCall, patience_seconds: float
) -> None:
    """Give `chosen` nothing more, and have copied what only they hold."""
    state = core.state
    going = {worker: None for worker in chosen if worker not in state.copies.retiring}
    for worker in chosen:
        if worker not in going:
            waits.verdicts[worker.address] = "it is about to go already"
    outside = [worker for worker in state.workers.values() if worker not in going]
    staying = who_stays(list(going), outside)
    if staying is not None:
        del going[staying]
        waits.verdicts[staying.address] = _why_stuck(staying)
        if waits.must_go:
            _send_away(core, staying, waits)
    for worker in going:
        forget_refusals(core, worker)
        waits.retiring[worker] = None
        drains_until = core.now + core.settings.drain_seconds
        retirement = Retirement(waits, drains_until, patience_seconds, core.now)
        state.copies.retiring[worker] = retirement
        _give_nothing_more(core, worker)
        if not waits.removes:
            core.to_worker(worker, LeavingChanged(True))
    if going:
        drop_unmet(core)
    attend_in_turn(core, chain.from_iterable(worker.has_what for worker in going))
    if not going:
        _answer(core, waits)


def settle_copies(core: Core) -> None:
    """Do what follows from where results are now; new copies, and removals, may follow.

    Nobody goes while there are results that were not looked at.
    """
    attended = core.attended
    assert attended is not None
    core.attended = {}
    tasks = due_now(core, attended)
    retiring = core.state.copies.retiring
    takers = Takers(core.state.workers.values(), core.state.copies.coming_nbytes)
    for task in tasks:
        has_arrived = note_arrivals(core, task)
        if retiring:
            _look_at(core, task, takers, has_arrived=has_arrived)
        if task.state != FORGOTTEN:
            pursue_goal(core, task)
    settle_calls(core, tasks)
    stuck = next((worker for worker in retiring if retiring[worker].is_stuck), None)
    if stuck is not None:
        _keep(core, stuck, _why_stuck(stuck))
    elif not (core.attended or core.state.copies.unlooked):
        for worker in list(retiring):
            _go_on(core, worker)
    if not core.attended and not core.state.copies:
        core.state.copies.refusals.clear()
        core.attended = None


def wake_retiring(core: Core) -> None:
    """Whom nobody relieves in time goes on working; runs that don't end keep nobody.

    Once nothing is left to take, it is for `_go_on`, later in this step, to see what is due.
    """
    for worker, retirement in list(core.state.copies.retiring.items()):
        due_at = retirement.progress_at + retirement.patience_seconds
        if due_at > core.now:
            core.wake_by(due_at)
        elif retirement.left or _awaits_value(core, worker):
            _keep(core, worker, NO_PROGRESS)


def _why_stuck(worker: Worker) -> str:
    """Why nobody relieves a worker of what it has."""
    return HAS_ACTORS if worker.actors else NOBODY_TAKES


def _give_nothing_more(core: Core, worker: Worker) -> None:
    """What is placed there goes elsewhere, and what was sent and has not begun comes back."""
    worker.is_leaving = True
    if take_back(core, worker):
        core.wake_by(core.now + core.settings.drain_seconds)
    update_load(core, worker)


def _look_at(core: Core, task: Task, takers: Takers, *, has_arrived: bool) -> None:
    """Keep the lists of what only retiring workers hold, and begin the copies that are lacking."""
    copies = core.state.copies
    lost_with = is_only_with(task, copies.retiring)
    for worker, retirement in copies.retiring.items():
        if has_arrived and task in retirement.left:
            retirement.progress_at = core.now
        if lost_with and task in worker.has_what:
            if task not in retirement.left:  # from now on there is something to wait for
                retirement.left[task] = None
                retirement.progress_at = core.now
        else:
            retirement.left.pop(task, None)
    if not lost_with or task in copies.on_way:
        return
    recipient = None
    if not task.options.actor:
        recipient = takers.choose(task, copies.refusals.get(task, {}))
    if recipient is not None:
        begin_copies(core, [(task, recipient)])
        return
    for retirement in copies.retiring.values():
        retirement.is_stuck = retirement.is_stuck or task in retirement.left


def _go_on(core: Core, worker: Worker) -> None:
    """Let the worker go if nothing keeps it."""
    retirement = core.state.copies.retiring[worker]
    if retirement.left:
        core.wake_by(retirement.progress_at + retirement.patience_seconds)
        return
    if worker.nsent > worker.nwaiting and retirement.drains_until > core.now:
        core.wake_by(retirement.drains_until)
        return
    if _awaits_value(core, worker):
        core.wake_by(retirement.progress_at + retirement.patience_seconds)
        return
    _let_go(core, worker, retirement.call)


def _awaits_value(core: Core, worker: Worker) -> bool:
    """Whether a value is on its way to it from a client, or waits until it is heard again.

    Cost: O(awaited values).
    """
    scattering = core.state.scattering.values()
    return worker in core.state.withheld.values() or any(
        worker in takers for brought in scattering for takers in brought.values()
    )


def _let_go(core: Core, worker: Worker, call: RetireCall) -> None:
    """Nothing is lost with the worker: it goes, in this very step."""
    del core.state.copies.retiring[worker]
    if call.removes:
        _send_away(core, worker, call)
    else:
        _drop_what_others_have(core, worker)
    _decide(core, call, worker, "")


def _drop_what_others_have(core: Core, worker: Worker) -> None:
    """It stays connected and has done its part: its memory is its own again."""
    for task in list(worker.has_what):
        if any(not holder.is_leaving for holder in task.who_has or ()):
            uses = uses_of(task)
            if uses is None or uses.is_read_from_afar or worker in uses.workers:
                continue
            drop_replica(core, task, worker)


def _send_away(core: Core, worker: Worker, call: RetireCall) -> None:
    remove_worker(core, worker, call.reason, expected=True)
    core.send_away(worker, call.reason)


def _keep(core: Core, worker: Worker, why: str) -> None:
    """It goes on working as before, and may take what others that retire hold.

    Unless it has said that it leaves, which nobody can take back, or its time is over.
    """
    retiring = core.state.copies.retiring
    call = retiring.pop(worker).call
    if call.must_go:
        _send_away(core, worker, call)
    elif not worker.says_goodbye:
        worker.is_leaving = False
        if not call.removes:
            core.to_worker(worker, LeavingChanged(False))
        if worker.takes_work:
            core.state.all_paused_since = None
        update_load(core, worker)
        core.refill[worker] = None
        for task in list(core.state.unrunnable):
            wait_again(core, task)
        note_worker(core, worker)
        answer_waiting_calls(core, worker)
        attend_to_joined(core, worker)
    for task in worker.has_what:
        if task.who_has is not None and len(task.who_has) > 1:
            note_copies(core, task)
    for retirement in retiring.values():
        retirement.is_stuck = False
    left = chain.from_iterable(retirement.left for retirement in retiring.values())
    attend_in_turn(core, chain(worker.has_what, left))
    _decide(core, call, worker, why)


def _decide(core: Core, call: RetireCall, worker: Worker, verdict: str) -> None:
    call.verdicts[worker.address] = verdict
    call.retiring.pop(worker, None)
    if not call.retiring:
        _answer(core, call)


def _answer(core: Core, call: RetireCall) -> None:
    report_retirement(core, call.verdicts)
    client = call.client
    if client is not None and core.state.clients.get(client.id) is client:
        core.to_client(client, answer(call.request, call.verdicts))


def forget_retiring(core: Core, worker: Worker) -> None:
    """A worker has gone by itself; and what it alone was to take has to go elsewhere."""
    retirement = core.state.copies.retiring.pop(worker, None)
    if retirement is not None:
        _decide(core, retirement.call, worker, LOST)
    if core.state.demands:
        worker.is_leaving = True
        drop_unmet(core)


def retiring_are_leaving(state: SchedulerState) -> Iterator[str]:
    """Who retires is connected, is given nothing more, and holds what it is to be relieved of."""
    for worker, retirement in state.copies.retiring.items():
        if state.workers.get(worker.address) is not worker:
            yield f"{worker} retires, and has gone"
        if not worker.is_leaving:
            yield f"{worker} retires, and may be given tasks"
        for task in retirement.left:
            if task not in worker.has_what and task not in state.copies.unlooked:
                yield f"{worker} is to be relieved of {task!r}, which it does not have"
        for task in worker.has_what:
            if task in retirement.left or task in state.copies.unlooked or task in state.of_no_use:
                continue
            if is_only_with(task, state.copies.retiring):
                yield f"{worker} retires, and nobody sees to {task!r}"


HANDLERS = Handlers(
    from_client={RetireWorkers: on_retire_workers},
    from_worker={TimeIsOver: on_time_is_over},
    worker_gone=forget_retiring,
    woken=wake_retiring,
    invariant=retiring_are_leaving,
)
