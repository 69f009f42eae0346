"""From ready to placed, and back: which tasks wait where for a worker that has room.

Two places hold ready tasks.  The *queue* has those that may run anywhere; they stay unplaced until
some worker has room.  A worker's *backlog* has those placed there for the sake of their inputs or
restrictions; they too are sent only when it has room, so another worker may still take them.
"""

from heapq import heappush
from operator import attrgetter

from shoal.protocol.messages import RecallRuns
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.demands import queue_demand
from shoal.scheduler.machine.stranding import note_empty_queue, strand, watch_queue
from shoal.scheduler.model.entities import (
    NO_RUN,
    PROCESSING,
    QUEUED,
    WAITING,
    Task,
    Worker,
)
from shoal.scheduler.model.state import SchedulerState
from shoal.scheduler.policies.placement import has_inputs_to_move, idle_holder

SEQUENCE_BITS = 56
"""A priority is the user's urgency above so many bits of the order of submission."""

STALE_MAX = 256
"""Entries of tasks that have gone which a queue or a backlog may keep beside as many live ones."""

URGENCY_STEPS = 1 << 16
"""Steps of urgency that are told apart within 1."""

URGENCY_MAX = 1 << 40
"""In steps.  What is greater, or infinite, counts as this; what is no number is least urgent."""


def to_priority(urgency: float, sequence: int) -> int:
    """One comparable number, smaller first: the more urgent first, then in order of submission."""
    steps = round(max(-URGENCY_MAX, min(URGENCY_MAX, -urgency * URGENCY_STEPS)))
    return (steps << SEQUENCE_BITS) + sequence


def place_ready(core: Core) -> None:
    """Queue or place every task that became ready, the most urgent first."""
    ready = core.ready
    if not ready:
        return
    core.ready = []
    is_wait_limited = core.settings.no_workers_seconds is not None
    if is_wait_limited:
        note_empty_queue(core)
    for changed in core.refill:
        update_load(core, changed)
    if len(ready) > 1:
        ready.sort(key=attrgetter("priority"))
    avoided = core.state.avoided
    for task in ready:
        if task.state != WAITING or task.nwaiting:
            continue  # it was noted twice, or an input was lost in the same step
        if task.options.resources:
            queue_demand(core, task)
        elif task.options.actor:
            _place_actor(core, task)
        elif avoided and task in avoided and _place_elsewhere(core, task):
            continue
        elif task.options.workers:
            _place_restricted(core, task)
        elif has_inputs_to_move(task):
            worker = core.placement.choose(task, core.state.loads.lowest(), core.now)
            _put_into_backlog(core, task, worker)
        elif (idle := idle_holder(task)) is not None:
            _put_into_backlog(core, task, idle)
        else:
            core.move(task, QUEUED)
            core.state.queue.push(task)
    if core.unmet:
        core.unmet.clear()
    if is_wait_limited:
        watch_queue(core)
    queue = core.state.queue
    if queue.nentries > 2 * core.state.ntasks[QUEUED] + STALE_MAX:
        queue.compact()


def unplace(core: Core, task: Task, *, recall: bool) -> None:
    """Undo the placement of a processing task, whose state the caller changes next.

    The worker's place in the indexes is put right when the step is settled, once for all of it.
    What an earlier run of it left on the worker is dropped, since no new result overwrites it.
    `recall`: tell the worker to give the run back, if it was sent.
    """
    worker = task.worker
    assert worker is not None
    expected_us = worker.processing.pop(task)
    if task.run != NO_RUN:
        worker.nsent -= 1
        worker.runs_suspect = worker.runs_suspect and worker.nsent > 0
        worker.sent_us -= expected_us
        if recall:
            core.to_worker(worker, RecallRuns([(task.id, task.run)]))
    else:
        worker.backlog_us -= expected_us
    if worker.leftovers and task.id in worker.leftovers:
        del worker.leftovers[task.id]
        core.free(worker, task.id)
    if worker.seceded and worker.seceded.pop(task, False):
        worker.nwaiting -= 1
    if worker.actors:
        worker.actors.pop(task, None)
    task.worker = None
    task.run = NO_RUN
    core.refill[worker] = None


def update_load(core: Core, worker: Worker) -> None:
    """Put `worker` where its load belongs in the indexes."""
    state = core.state
    nthreads = worker.nthreads
    load = (worker.sent_us + worker.backlog_us) // nthreads
    nsent = worker.nsent
    if worker.is_leaving:
        state.loads.discard(worker)
    else:
        state.loads.put(worker, load)
    if core.queuing.has_room(worker):
        state.open.put(worker, worker.sent_us // nthreads)
    else:
        state.open.discard(worker)
    if len(worker.processing) > nsent:
        state.backlogged.put(worker, load)
    else:
        state.backlogged.discard(worker)
    if nsent > nthreads + worker.nwaiting:
        state.piped[worker] = None
    elif worker in state.piped:
        del state.piped[worker]


def _place_restricted(core: Core, task: Task) -> None:
    """Place a task that only some workers may run."""
    feasible = [w for w in core.state.workers_named(task.options.workers) if not w.is_leaving]
    worker = core.placement.best(task, feasible, core.now)
    if worker is None and task.options.allow_other_workers:
        worker = core.placement.choose(task, core.state.loads.lowest(), core.now)
    _put_into_backlog(core, task, worker)


def _place_actor(core: Core, task: Task) -> None:
    """Place an actor where fewest are: unlike a task's, its work begins when it is made."""
    state = core.state
    feasible = _feasible(state, task)
    if task in state.avoided:
        feasible = _not_avoided(state, task, feasible) or feasible
    worker = core.placement.fewest_actors(task, feasible, core.now)
    _put_into_backlog(core, task, worker)
    if worker is not None:
        worker.actors[task] = None


def _place_elsewhere(core: Core, task: Task) -> bool:
    """Place a task that asked to be run elsewhere; False if nobody else may run it.

    Once all have run it, only the latest is avoided.  Cost: O(workers).
    """
    state = core.state
    feasible, avoided = _feasible(state, task), state.avoided[task]
    if task.options.allow_other_workers and all(worker in avoided for worker in feasible):
        feasible = [worker for worker in state.workers.values() if not worker.is_leaving]
    others = _not_avoided(state, task, feasible)
    if not others:
        return False
    _put_into_backlog(core, task, core.placement.best(task, others, core.now))
    return True


def _feasible(state: SchedulerState, task: Task) -> list[Worker]:
    """The workers that may run a task, none of which is about to go.  Cost: O(workers)."""
    names = task.options.workers
    chosen = state.workers_named(names) if names else state.workers.values()
    feasible = [worker for worker in chosen if not worker.is_leaving]
    if names and task.options.allow_other_workers and not feasible:
        feasible = [worker for worker in state.workers.values() if not worker.is_leaving]
    return feasible


def _not_avoided(state: SchedulerState, task: Task, feasible: list[Worker]) -> list[Worker]:
    """Those that `task` has not asked to get away from; nobody, if there is only one."""
    avoided = state.avoided[task]
    others = [worker for worker in feasible if worker not in avoided]
    if not others:
        latest = next(reversed(avoided))
        state.avoided[task] = {latest: None}
        others = [worker for worker in feasible if worker is not latest]
    if not others:
        del state.avoided[task]
    return others


def _put_into_backlog(core: Core, task: Task, worker: Worker | None) -> None:
    """Place `task` on `worker`, from where it may be sent; without one, it has to wait for one."""
    if worker is None:
        strand(core, task)
        return
    expected_us = core.queuing.expected_us(task)
    core.move(task, PROCESSING)
    task.worker = worker
    worker.processing[task] = expected_us
    worker.backlog_us += expected_us
    heappush(worker.backlog, (task.priority, task.id, task))
    if len(worker.backlog) > 2 * (len(worker.processing) - worker.nsent) + STALE_MAX:
        unsent = (task for task in worker.processing if task.run == NO_RUN)
        worker.backlog = sorted((task.priority, task.id, task) for task in unsent)
    core.refill[worker] = None
    core.state.loads.put(worker, worker.occupancy_us // worker.nthreads)
