"""Copies of results that nobody needs are dropped, in rounds; and what code suggests of copies.

A result with several holders is noted as the second one turns up, so a round looks at those alone,
and at so many in one step.  There is no round while there is nothing to look at.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from shoal.scheduler.machine.copying import begin_copies, drop_replica
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.model.copies import Goal
from shoal.scheduler.model.entities import MEMORY, Task, Worker
from shoal.scheduler.model.reduction import Suggested
from shoal.scheduler.model.state import SchedulerState
from shoal.scheduler.policies.measures import MEASURES, Measure
from shoal.scheduler.policies.reduction import (
    DEPENDENTS_MAX,
    DROPS_MAX,
    choose_dropper,
    copies_too_many,
    uses_of,
)

LOOKS_MAX: Final = 2000
"""Results, with their dependents and holders, that one step looks at: about a millisecond."""


def note_copies(core: Core, task: Task) -> None:
    """Several workers hold the result, or its goal has changed: see later if those are too many."""
    reduction = core.state.reduction
    reduction.doubled[task] = None
    if reduction.due_at is None:
        _plan(core)


def begin_rounds(core: Core, interval_seconds: float) -> None:
    """Look every so often from now on, as long as there is something to look at."""
    reduction = core.state.reduction
    reduction.is_on = True
    reduction.interval_seconds = interval_seconds
    _plan(core)


def end_rounds(core: Core) -> None:
    """Look no more, unless somebody asks for one round."""
    reduction = core.state.reduction
    reduction.is_on = False
    reduction.nleft = 0
    reduction.due_at = None


def reduce_now(core: Core) -> None:
    """One round, which goes on in steps to come if there is much to look at."""
    reduction = core.state.reduction
    reduction.nleft = len(reduction.doubled)
    _look_at_some(core)


def go_on_looking(core: Core) -> None:
    """A round is due, or goes on."""
    reduction = core.state.reduction
    if reduction.due_at is None:
        return
    if reduction.due_at > core.now:
        core.wake_by(reduction.due_at)
        return
    if not reduction.nleft:
        reduction.nleft = len(reduction.doubled)
    _look_at_some(core)


def goal_of(state: SchedulerState, task: Task) -> tuple[Goal | None, Mapping[Worker, None] | None]:
    """How many copies of a result there shall be, and whose count for that; None: everybody's."""
    goal = state.copies.goals.get(task)
    if goal is None or not goal.workers:
        return goal, None
    return goal, state.workers_named(goal.workers)


def too_many_of(state: SchedulerState, task: Task, memory_of: Measure) -> list[Worker]:
    """Who holds a copy of a result that nobody needs; nobody if that can't be said just now.

    Args:
        memory_of: by what workers are compared.
    """
    holders = task.who_has
    if holders is None or len(holders) < 2 or task in state.copies.on_way:
        return []
    goal, counting = goal_of(state, task)
    if goal is not None and goal.is_for_all:
        return []
    uses = uses_of(task)
    if uses is None or uses.is_read_from_afar:
        return []
    return copies_too_many(task, uses, goal, counting, memory_of)


def enact_suggested(core: Core, suggested: Suggested) -> None:
    """Drop and make copies as somebody suggests, as far as it still makes sense.

    What came to be needed and the last copy of anything are not dropped.  A goal is lowered to what
    is left: who suggests so has decided later than who set it.
    """
    measure = MEASURES[core.settings.replica_measure]
    for task, workers in suggested.drops.items():
        uses = uses_of(task)
        if uses is None or not _is_known(core, task):
            continue
        ncounting = _ncounting(core.state, task)
        for worker in workers:
            if choose_dropper(task, uses, [worker], {}, measure) is not None:
                drop_replica(core, task, worker)
                core.state.reduction.ndropped += 1
        _lower_goal(core, task, ncounting)
    begin_copies(
        core,
        [
            (task, worker)
            for task, workers in suggested.copies.items()
            if _is_known(core, task)
            for worker in workers
            if _may_get(core, task, worker)
        ],
    )


def _plan(core: Core) -> None:
    """See to it that the next round comes, if there is to be one."""
    reduction = core.state.reduction
    if reduction.is_on and reduction.doubled:
        reduction.due_at = core.now + reduction.interval_seconds
        core.wake_by(reduction.due_at)
    else:
        reduction.due_at = None


def _look_at_some(core: Core) -> None:
    """Go on with a round, in this step for so long as others may wait."""
    reduction = core.state.reduction
    doubled = reduction.doubled
    left = LOOKS_MAX
    while reduction.nleft and doubled and left > 0:
        reduction.nleft -= 1
        task, _ = doubled.popitem(last=False)
        left -= 1 + len(task.who_has or ())
        if task.nwaiters and task.dependents is not None:
            left -= min(len(task.dependents), DEPENDENTS_MAX)
        if _look_at(core, task):
            doubled[task] = None  # behind all others
    if reduction.nleft and doubled:
        reduction.due_at = core.now
        core.wake_by(core.now)
    else:
        reduction.nleft = 0
        _plan(core)


def _look_at(core: Core, task: Task) -> bool:
    """Drop what is too much; whether the result is to be looked at in the next round as well."""
    state = core.state
    if task.who_has is None or len(task.who_has) < 2:
        return False
    goal = state.copies.goals.get(task)
    if goal is not None and goal.is_for_all:
        return False
    chosen = too_many_of(state, task, MEASURES[state.settings.replica_measure])
    for worker in chosen:
        drop_replica(core, task, worker)
    state.reduction.ndropped += len(chosen)
    if len(chosen) == DROPS_MAX:  # there may be more, for a step to come of this round
        state.reduction.nleft += 1
        return True
    return task.nwaiters > 0 or task in state.copies.on_way


def _ncounting(state: SchedulerState, task: Task) -> int:
    """Copies that count for the goal of a result."""
    _, counting = goal_of(state, task)
    holders = [worker for worker in task.who_has or () if not worker.is_leaving]
    return sum(counting is None or worker in counting for worker in holders)


def _lower_goal(core: Core, task: Task, nbefore: int) -> None:
    """Copies were dropped on purpose: the goal asks for no more than are left."""
    goals = core.state.copies.goals
    nleft = _ncounting(core.state, task)
    if task not in goals or nleft == nbefore:
        return
    if nleft == 0:
        del goals[task]
    elif goals[task].ncopies == 0 or goals[task].ncopies > nleft:
        goals[task].ncopies = nleft
    note_copies(core, task)


def _is_known(core: Core, task: Task) -> bool:
    """Whether it is a result still, and one that may be copied."""
    return (
        core.state.tasks.get(task.key) is task and task.state == MEMORY and not task.options.actor
    )


def _may_get(core: Core, task: Task, worker: Worker) -> bool:
    return (
        core.state.workers.get(worker.address) is worker
        and worker.takes_work
        and task not in worker.has_what
    )


def what_has_copies_is_noted(state: SchedulerState) -> Iterator[str]:
    """What has several holders will be looked at, unless a goal asks for them."""
    doubled = state.reduction.doubled
    for task in doubled:
        if task.state != MEMORY or state.tasks.get(task.key) is not task:
            yield f"{task!r} is to be looked at for copies, and has none"
    if state.reduction.is_on and doubled and state.reduction.due_at is None:
        yield f"{len(doubled)} results have several copies, and nobody will look"
    for task in state.tasks.values():
        holders = task.who_has
        if holders is None or len(holders) < 2 or task in doubled or task in state.copies.goals:
            continue
        if sum(not holder.is_leaving for holder in holders) > 1:
            yield f"{task!r} has {len(holders)} copies that nobody looks at"


HANDLERS = Handlers(woken=go_on_looking, invariant=what_has_copies_is_noted)
