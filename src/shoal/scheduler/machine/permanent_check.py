"""What may run and does not, though a worker is free for it: that would be an error of ours.

Each sign of life of a worker that has nothing to do asks whether anything is ready, which costs
next to nothing.  If that stays so for a while, what is ready is looked at; what could have begun is
told in the log with its story, and decided about anew.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.errors import WorkStandsStill
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.machine.placing import first_of_backlog, update_load
from shoal.scheduler.machine.waiting import count_missing_inputs
from shoal.scheduler.machine.warning import warn
from shoal.scheduler.model.entities import (
    MEMORY,
    NO_WORKER,
    PROCESSING,
    QUEUED,
    RELEASED,
    WAITING,
    Task,
    Worker,
)
from shoal.scheduler.model.state import SchedulerState

STILL_SECONDS: Final = 1.0
"""So long may a worker be idle while something is ready, as news travel and steps are put off."""

TASKS_LOOKED_AT: Final = 1000
"""Of those that are known, in one look, which goes on where the last one ended; some 100 us."""

RECORDS_TOLD: Final = 20
"""Transitions of the task that are logged, the latest."""


def notice_idle(core: Core, worker: Worker) -> None:
    """A worker gave a sign of life: whether it should have something to do.

    Cost: O(1), unless it was idle before while something was ready: then a look at
    `TASKS_LOOKED_AT`, and 10 ns for each task that earlier looks have been at.
    """
    if core.ready or core.starting:
        return  # this step has not decided yet
    state = core.state
    if worker.nsent or not worker.takes_work or not _is_any_ready(state, worker):
        if state.idle_since:
            state.idle_since.pop(worker, None)
        return
    since = state.idle_since.setdefault(worker, core.now)
    if core.now - since < STILL_SECONDS:
        return
    state.idle_since[worker] = core.now
    task = _find(core, worker)
    if task is None:
        return
    records = [str(one) for one in core.story.where(frozenset((task.key,)), frozenset())]
    error = WorkStandsStill(
        task.key, task.state, worker.address, core.now - since, records[-RECORDS_TOLD:]
    )
    warn(core, "work that stands still", str(error))
    _decide_anew(core, task, worker)


def _is_any_ready(state: SchedulerState, worker: Worker) -> bool:
    """Whether there is anything that may have to be done, and nobody is about to do it."""
    if state.recovery is not None and state.recovery.holds_back:
        return False
    if worker.backlog or state.has_unsent or state.unplaced:
        return first_of_backlog(worker) is not None
    ntasks = state.ntasks
    if ntasks[QUEUED]:
        return True
    return bool(ntasks[WAITING] or ntasks[RELEASED]) and not (
        ntasks[PROCESSING] or ntasks[NO_WORKER]
    )


def _find(core: Core, worker: Worker) -> Task | None:
    """A task that should have begun, on `worker` or anywhere.

    Of those that wait for memory, resources or their limit nothing is said: they may well wait.
    """
    state = core.state
    task = first_of_backlog(worker) or state.queue.peek()
    if task is not None:
        is_light = not (task.prefix.weighs and state.footprints.is_limited)
        return task if is_light and core.queuing.has_room(worker) else None
    if state.ntasks[PROCESSING] or state.ntasks[QUEUED]:
        return None
    if core.now < core.combed_at + STILL_SECONDS:
        return None  # another idle worker has just asked
    core.combed_at = core.now
    first = core.combed_up_to if core.combed_up_to < len(state.tasks) else 0
    core.combed_up_to = first + TASKS_LOOKED_AT  # of those after them, at the next look
    known = islice(state.tasks.values(), first, core.combed_up_to)
    return next((one for one in known if _is_left_out(state, one)), None)


def _is_left_out(state: SchedulerState, task: Task) -> bool:
    """Whether it is needed, and nothing is done about it though nothing keeps it."""
    if task.code is None or not task.is_needed or task in state.barriers:
        return False
    if task.state == RELEASED:
        return task.key not in state.orphans.by_key
    return task.state == WAITING and all(each.state == MEMORY for each in task.dependencies)


def _decide_anew(core: Core, task: Task, worker: Worker) -> None:
    """As if it had just become what it is."""
    if task.state == RELEASED:
        core.starting.append(task)
    elif task.state == WAITING:
        count_missing_inputs(core, task)
    update_load(core, worker)
    core.refill[worker] = None


def forget_idle(core: Core, worker: Worker) -> None:
    """It has gone."""
    core.state.idle_since.pop(worker, None)


def idle_are_there(state: SchedulerState) -> Iterator[str]:
    """Those that were seen idle are connected."""
    for worker in state.idle_since:
        if state.workers.get(worker.address) is not worker:
            yield f"{worker} was seen idle, and has gone"


HANDLERS = Handlers(worker_gone=forget_idle, invariant=idle_are_there)
