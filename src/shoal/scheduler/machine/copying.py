"""Copies of results, from being asked for to being there: for goals, moves and retirements.

Whatever changes where a result is notes its task in `core.attended`, if anybody attends to such
things at all; at the end of the step all that follows from that is done together.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from math import inf
from typing import Final

from shoal.protocol.answers import answer
from shoal.protocol.messages import AcquireReplicas, Input, ReplicasGone
from shoal.scheduler.machine.barriers import holders_changed
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.machine.placing import TIMER
from shoal.scheduler.model.copies import Copy, CopyCall, Goal
from shoal.scheduler.model.entities import MEMORY, Client, Task, Worker
from shoal.scheduler.model.state import SchedulerState, unlink_replica
from shoal.scheduler.policies.replicas import recipients, sources, surplus

MESSAGE_INPUTS_MAX: Final = 1000
"""Copies that a worker is asked for in one message."""

LOOKS_MAX: Final = 500
"""Results that one step looks at, some milliseconds of work: others are due in the next ones."""

WORKERS_PER_LOOK: Final = 16
"""Workers that are compared in the time of a look, where a goal asks for copies or they retire."""

LOOKS_PER_PATIENCE: Final = 16
"""How often, at most, all that is on its way is looked at for what has taken too long."""

SLOWEST_BYTES_PER_SECOND: Final = 10_000_000
"""Who gives signs of life and fetches more slowly than that is taken to be stuck."""


def attend(core: Core) -> dict[Task, None]:
    """From now on it matters where results are; what is due to be looked at, to be added to."""
    if core.attended is None:
        core.attended = {}
    return core.attended


def attend_in_turn(core: Core, tasks: Iterable[Task]) -> None:
    """These are to be looked at, however many they are: the first of all that are due in this step,
    and others in the next ones.  Cost: O(tasks), far less than a look."""
    unlooked = core.state.copies.unlooked
    unlooked.update(dict.fromkeys(tasks))
    attend(core).update(dict.fromkeys(islice(unlooked, LOOKS_MAX)))


def due_now(core: Core, tasks: Mapping[Task, None]) -> list[Task]:
    """What this step may look at of `tasks`, and of what earlier ones put off; the rest is put off.

    Whatever is on its way is looked at in any case.
    """
    copies = core.state.copies
    step, nlooks = copies.looked_at
    nleft = LOOKS_MAX - (nlooks if step == core.step else 0)
    plain = 1 + len(copies.retiring) // WORKERS_PER_LOOK
    with_goal = plain + len(core.state.workers) // WORKERS_PER_LOOK
    unlooked, goals, on_way = copies.unlooked, copies.goals, copies.on_way
    due: list[Task] = []
    for task in tasks:
        if nleft > 0 or task.state != MEMORY or task in on_way:
            unlooked.pop(task, None)
            nleft -= with_goal if task in goals else plain
            due.append(task)
        else:
            unlooked[task] = None
    if core.cause == TIMER:
        while unlooked and nleft > 0:
            task = next(iter(unlooked))
            del unlooked[task]
            nleft -= with_goal if task in goals else plain
            due.append(task)
    if unlooked:
        core.wake_by(core.now)
    copies.looked_at = core.step, LOOKS_MAX - nleft
    return due


def begin_copies(
    core: Core,
    pairs: Iterable[tuple[Task, Worker]],
    moved_from: Mapping[Task, Worker] | None = None,
) -> None:
    """Have workers get copies of results that are in memory, in few messages for each worker.

    Args:
        moved_from: who drops its own copy once the other is there.
    """
    attended = attend(core)
    copies = core.state.copies
    inputs: dict[Worker, list[Input]] = {}
    for task, worker in pairs:
        on_way = copies.on_way.setdefault(task, {})
        if worker in on_way:
            continue
        on_way[worker] = Copy(core.now, None if moved_from is None else moved_from.get(task))
        copies.coming_nbytes[worker] = copies.coming_nbytes.get(worker, 0) + task.nbytes
        attended[task] = None
        holders = [holder.address for holder in sources(task, worker, copies.nbegun)]
        copies.nbegun += 1
        item = Input(task.id, task.key, task.nbytes, holders, task.value)
        inputs.setdefault(worker, []).append(item)
    for worker, items in inputs.items():
        if worker in core.freeing:  # said first, or it would be for the new copy
            core.say_what_to_free(worker)
        for start in range(0, len(items), MESSAGE_INPUTS_MAX):
            core.to_worker(worker, AcquireReplicas(items[start : start + MESSAGE_INPUTS_MAX]))
        note_patience(core)


def note_patience(core: Core) -> None:
    """Something is on its way from now on: see to it that it is not waited for in vain."""
    copies = core.state.copies
    due_at = core.now + core.settings.copy_patience_seconds
    copies.silent_by = min(copies.silent_by, due_at)
    core.wake_by(due_at)


def note_arrivals(core: Core, task: Task) -> bool:
    """Copies of `task` that are there now are on their way no more; whether there were any."""
    copies = core.state.copies
    on_way = copies.on_way.get(task)
    if on_way is None:
        return False
    has_arrived = False
    for worker, copy in list(on_way.items()):
        if task.state == MEMORY:
            if task not in worker.has_what:
                continue
            has_arrived = True
            copies.arrived_at[worker] = core.now
            sender = copy.moved_from
            if sender is not None and sender is not worker and task in sender.has_what:
                drop_replica(core, task, sender)
        _end_copy(core, task, worker)
    if has_arrived:  # who could not get it may get it from there
        copies.refusals.pop(task, None)
    return has_arrived


def drop_replica(core: Core, task: Task, worker: Worker) -> None:
    """Have `worker` drop its copy, which is not the last one."""
    unlink_replica(task, worker)
    core.free(worker, task.id)
    if core.state.barriers:
        holders_changed(core, task)
    attend(core)[task] = None


def _end_copy(core: Core, task: Task, worker: Worker) -> None:
    """It is on its way no more."""
    copies = core.state.copies
    on_way = copies.on_way[task]
    del on_way[worker]
    if not on_way:
        del copies.on_way[task]
    nbytes = copies.coming_nbytes.get(worker, 0) - task.nbytes
    if nbytes > 0:
        copies.coming_nbytes[worker] = nbytes
    else:
        copies.coming_nbytes.pop(worker, None)
        copies.arrived_at.pop(worker, None)


def refuse_copy(core: Core, task: Task, worker: Worker) -> None:
    """`worker` could not get the copy that it was to get: it is not asked again.

    Until there is another holder.  Whoever is asked in its place gets the time that it had.
    """
    copies = core.state.copies
    if worker not in copies.on_way.get(task, {}):
        return
    _end_copy(core, task, worker)
    copies.refusals.setdefault(task, {})[worker] = None
    for retirement in copies.retiring.values():
        if task in retirement.left:
            retirement.progress_at = core.now
    attend(core)[task] = None


def forget_refusals(core: Core, holder: Worker) -> None:
    """Whoever could not get a copy of what `holder` has may be asked again."""
    refusals = core.state.copies.refusals
    if refusals:
        for task in holder.has_what:
            refusals.pop(task, None)


def pursue_goal(core: Core, task: Task) -> int:
    """Begin the copies that the goal for `task` asks for; how many more are lacking.

    If the goal is new, copies that are more than it asks for are dropped.
    """
    state = core.state
    goal = state.copies.goals.get(task)
    if goal is None or task.state != MEMORY:
        return 0
    if task in state.copies.lowered:
        del state.copies.lowered[task]
        _drop_surplus(core, task, goal)
    if _is_met(state, task, goal):
        return 0
    named = state.workers_named(goal.workers) if goal.workers else state.workers.values()
    able = [worker for worker in named if not worker.is_leaving]
    on_way = dict.fromkeys((*state.copies.on_way.get(task, ()), *goal.promised))
    refused = state.copies.refusals.get(task, {})
    coming_nbytes = state.copies.coming_nbytes
    chosen, nlacking = recipients(goal, task, able, on_way, refused, coming_nbytes)
    begin_copies(core, [(task, worker) for worker in chosen])
    return nlacking


def _drop_surplus(core: Core, task: Task, goal: Goal) -> None:
    """Have copies dropped that are more than a goal asks for, where it asks for any."""
    holders = [worker for worker in task.who_has or () if not worker.is_leaving]
    if goal.workers:
        named = dict.fromkeys(core.state.workers_named(goal.workers))
        holders = [worker for worker in holders if worker in named]
    for worker in surplus(goal, task, holders):
        drop_replica(core, task, worker)


def _is_met(state: SchedulerState, task: Task, goal: Goal) -> bool:
    """Whether so many copies are there or coming, of whatever workers.  Cost: O(those copies)."""
    if goal.workers or goal.ncopies == 0:
        return False
    there = dict.fromkeys((*(task.who_has or ()), *state.copies.on_way.get(task, ())))
    there.update(dict.fromkeys(goal.promised))
    return sum(not worker.is_leaving for worker in there) >= goal.ncopies


def drop_attention(core: Core, task: Task) -> None:
    """`task` is forgotten: nobody asks for copies of it any more."""
    copies = core.state.copies
    copies.goals.pop(task, None)
    copies.refusals.pop(task, None)
    copies.unlooked.pop(task, None)
    copies.lowered.pop(task, None)


def settle_calls(core: Core, tasks: Iterable[Task]) -> None:
    """Answer who waits for copies of `tasks`, as far as none is on its way or due any more."""
    copies = core.state.copies
    if not copies.calls:
        return
    for task in tasks:
        if task not in copies.on_way and task not in copies.unlooked:
            for call in copies.calls:
                call.left.pop(task, None)
    for call in [call for call in copies.calls if not call.left]:
        copies.calls.remove(call)
        core.to_client(call.client, answer(call.request, call.answer))


def call_when_copied(core: Core, call: CopyCall) -> None:
    """Answer a call once no copy of its tasks is on its way or due any more; now if it has none."""
    core.state.copies.calls.append(call)
    attend(core)
    settle_calls(core, ())


def give_up_silent(core: Core) -> None:
    """Copies that silent workers were to get are sought elsewhere; see to it that we wake again.

    So are those of workers that are there and get none.  What comes after all is kept.
    Cost: O(those on their way), when one of them may be due; until then O(1).
    """
    patience = core.settings.copy_patience_seconds
    copies = core.state.copies
    if core.now < copies.silent_by:
        if copies.silent_by < inf:
            core.wake_by(copies.silent_by)
        return
    copies.silent_by = inf
    for task, goal in copies.goals.items():
        for worker, since in list(goal.promised.items()):
            if since + patience <= core.now or task in worker.has_what:
                del goal.promised[worker]
                attend(core)[task] = None
            else:
                copies.silent_by = min(copies.silent_by, since + patience)
    for task, on_way in list(copies.on_way.items()):
        for worker, copy in list(on_way.items()):
            latest = max(copy.begun_at, copies.arrived_at.get(worker, 0.0))
            takes = max(0, task.nbytes) / SLOWEST_BYTES_PER_SECOND
            silent_at = max(copy.begun_at, worker.heard_at) + patience
            due_at = min(silent_at, latest + 2 * patience + takes)
            if due_at <= core.now:
                refuse_copy(core, task, worker)
            else:
                copies.silent_by = min(copies.silent_by, due_at)
    if copies.silent_by < inf:  # they were begun in many steps, and are due at as many times
        copies.silent_by = max(copies.silent_by, core.now + patience / LOOKS_PER_PATIENCE)
        core.wake_by(copies.silent_by)


def refuse_gone(core: Core, worker: Worker, message: ReplicasGone) -> None:
    """What `worker` says that it lacks may be what it was to get."""
    if core.state.copies.on_way:
        for number in message.tasks:
            task = core.state.task_by_id.get(number)
            if task is not None:
                refuse_copy(core, task, worker)


def refuse_paused(core: Core, worker: Worker) -> None:
    """It fetches nothing, as it is paused: what it was to get is sought elsewhere."""
    for task, on_way in list(core.state.copies.on_way.items()):
        if worker in on_way:
            refuse_copy(core, task, worker)


def attend_to_resumed(core: Core, worker: Worker) -> None:
    """It fetches again: goals may ask for copies there."""
    for refused in core.state.copies.refusals.values():
        refused.pop(worker, None)
    attend_to_joined(core, worker)


def attend_to_joined(core: Core, worker: Worker) -> None:
    """A worker has joined: goals may ask for a copy there."""
    if core.state.copies.goals:
        attend_in_turn(core, core.state.copies.goals)


def forget_worker(core: Core, worker: Worker) -> None:
    """A worker has gone: what it was to get is sought elsewhere."""
    copies = core.state.copies
    if not copies:
        return
    for task, on_way in list(copies.on_way.items()):
        for copy in on_way.values():
            if copy.moved_from is worker:
                copy.moved_from = None
        if worker in on_way:
            refuse_copy(core, task, worker)
    copies.coming_nbytes.pop(worker, None)
    for refused in copies.refusals.values():
        refused.pop(worker, None)
    for goal in copies.goals.values():
        goal.promised.pop(worker, None)
    attend_to_joined(core, worker)


def drop_calls(core: Core, client: Client) -> None:
    """The client has gone, and waits for nothing."""
    copies = core.state.copies
    copies.calls = [call for call in copies.calls if call.client is not client]


def copies_are_of_use(state: SchedulerState) -> Iterator[str]:
    """What is being copied is in memory, and those who copy are there."""
    copies = state.copies
    for task, on_way in copies.on_way.items():
        if task.state != MEMORY:
            yield f"{task!r} is being copied, but is {task.state}"
        for worker in on_way:
            if state.workers.get(worker.address) is not worker:
                yield f"{task!r} is being copied by {worker}, which has gone"
            if worker not in copies.coming_nbytes and task.nbytes > 0:
                yield f"{worker} is to get {task!r}, and nothing is coming to it"
            if task in worker.has_what:
                yield f"{task!r} is being copied by {worker}, which has it"
    for goal in copies.goals:
        if state.tasks.get(goal.key) is not goal:
            yield f"there is a goal for {goal!r}, which has gone"
    for call in copies.calls:
        if state.clients.get(call.client.id) is not call.client:
            yield f"{call.client} waits for copies, and has gone"
        for task in call.left:
            if task not in copies.on_way and task not in copies.unlooked:
                yield f"{call.client} waits for copies of {task!r}, and none is on its way"
    for task in (*copies.unlooked, *copies.lowered):
        if state.tasks.get(task.key) is not task:
            yield f"copies of {task!r} are to be looked at, and it has gone"


HANDLERS = Handlers(
    worker_joined=attend_to_joined,
    worker_gone=forget_worker,
    client_gone=drop_calls,
    woken=give_up_silent,
    invariant=copies_are_of_use,
)
