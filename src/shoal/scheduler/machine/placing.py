"""From ready to placed, and back: which tasks wait where for a worker that has room.

Two places hold ready tasks.  The *queue* has those that may run anywhere; they stay unplaced until
some worker has room.  A worker's *backlog* has those placed there for the sake of their inputs or
restrictions; they too are sent only when it has room, so another worker may still take them.
"""

from heapq import heappop, heappush
from operator import attrgetter

from shoal.protocol.messages import RecallRuns
from shoal.scheduler.machine.admitting import queue_heavy
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.demands import queue_demand
from shoal.scheduler.machine.overfilling import fail_if_too_large, needs_roomiest
from shoal.scheduler.machine.staying import able_with_inputs, may_get_inputs
from shoal.scheduler.machine.stranding import note_empty_queue, strand, watch_queue
from shoal.scheduler.model.entities import (
    NO_RUN,
    PROCESSING,
    QUEUED,
    WAITING,
    Task,
    Worker,
)
from shoal.scheduler.model.reasons import (
    AWAY,
    EARLY,
    ELSEWHERE,
    FEWEST_ACTORS,
    FOLLOWED,
    HELD_INPUTS,
    NAMED,
    RECALLED,
    ROOMIEST,
    STEPS,
)
from shoal.scheduler.model.shares import SEQUENCE_BITS
from shoal.scheduler.model.state import SchedulerState
from shoal.scheduler.model.ways import LARGE_BYTES
from shoal.scheduler.policies.neighbours import share_of_early
from shoal.scheduler.policies.placement import (
    HOLDERS_LOOKED_AT,
    INPUTS_LOOKED_AT,
    begins_at_once,
    has_inputs_to_move,
    idle_holder,
    may_run_on,
)

TIMER = "timer"
"""Cause of the steps in which time has come."""

STALE_MAX = 256
"""Entries of tasks that have gone which a queue or a backlog may keep beside as many live ones."""

WEIGHED_PER_PLACEMENT = 4
"""Inputs weighed for a holder that take about as long as all else of a placement."""

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
    unplaced = core.state.unplaced
    if not (ready or unplaced) or _is_held_back(core):
        return
    core.ready = []
    is_wait_limited = core.settings.no_workers_seconds is not None
    if is_wait_limited:
        note_empty_queue(core)
    for changed in core.refill:
        update_load(core, changed)
    if len(ready) > 1:
        ready.sort(key=attrgetter("priority"))
    ready = _due_now(core, ready)
    is_for_some = bool(core.state.avoided or core.state.witnesses)
    early = _Early(core, ready) if core.queuing.places_early else None
    footprints = core.state.footprints
    ninputs_safe, overfilled = footprints.ninputs_safe, footprints.overfilled
    is_limited = footprints.is_limited
    queue = core.state.queue
    push = queue.push
    for task in ready:
        if task.state != WAITING or task.nwaiting:
            continue  # it was noted twice, or an input was lost in the same step
        if len(task.dependencies) > ninputs_safe and fail_if_too_large(core, task):
            continue
        options = task.options
        if options.resources or options.limits:
            queue_demand(core, task)
        elif options.actor:
            _place_actor(core, task)
        elif overfilled and needs_roomiest(core, task):
            roomiest = core.admission.roomiest(_feasible(core.state, task))
            _put_into_backlog(core, task, roomiest, ROOMIEST)
        elif is_for_some and _place_with_some(core, task):
            continue
        elif options.workers:
            _place_restricted(core, task)
        elif has_inputs_to_move(task):
            lowest = core.state.loads.lowest()
            worker = core.placement.choose(task, lowest, core.now)
            _put_into_backlog(core, task, worker, AWAY if worker is lowest else HELD_INPUTS)
        elif (idle := idle_holder(task)) is not None:
            _put_into_backlog(core, task, idle, FOLLOWED)
        elif early is not None and (chosen := early.next_worker()) is not None:
            _put_into_backlog(core, task, chosen, EARLY)
        else:
            core.move(task, QUEUED)
            if is_limited and task.prefix.weighs:
                queue_heavy(core, task)
            else:
                push(task)
    if core.unmet:
        core.unmet.clear()
    if is_wait_limited:
        watch_queue(core)
    if queue.nentries > 2 * core.state.ntasks[QUEUED] + STALE_MAX:
        queue.compact()


def _is_held_back(core: Core) -> bool:
    """Whether nothing is placed, as those who have the results may be about to come back."""
    recovery = core.state.recovery
    if recovery is None or not recovery.holds_back:
        return False
    core.state.unplaced.extend(core.ready)
    core.ready = []
    return True


def _due_now(core: Core, ready: list[Task]) -> list[Task]:
    """What this step may place of `ready`, and of what earlier ones put off; the rest is put off.

    A result that a hundred thousand tasks wait for must not keep us from everything else.
    """
    unplaced = core.state.unplaced
    if not unplaced and len(ready) * INPUTS_LOOKED_AT <= core.nplacements_left:
        core.nplacements_left -= len(ready)
        return ready
    due: list[Task] = []
    for task in ready:
        if core.nplacements_left <= 0:
            break
        core.nplacements_left -= _nlooks(task)
        due.append(task)
    unplaced.extend(ready[len(due) :])
    if core.cause == TIMER:  # answers of others must not bring it about
        while unplaced and core.nplacements_left > 0:
            task = unplaced.popleft()
            core.nplacements_left -= _nlooks(task)
            due.append(task)
    if unplaced:
        core.wake_by(core.now)
    return due


def _nlooks(task: Task) -> int:
    """What placing it costs, in placements: each holder of an input is asked about all inputs."""
    inputs = task.dependencies[:INPUTS_LOOKED_AT]
    nholders = 0
    for dependency in inputs:
        if dependency.who_has is not None:
            nholders += min(len(dependency.who_has), HOLDERS_LOOKED_AT)
    return max(1, len(inputs), len(inputs) * nholders // WEIGHED_PER_PLACEMENT)


class _Early:
    """Ready tasks that may run anywhere are placed at once, in rows: `worker-saturation: inf`."""

    def __init__(self, core: Core, ready: list[Task]) -> None:
        self.core = core
        self.nready = len(ready)
        self.worker: Worker | None = None
        self.nleft = 0  # of the row

    def next_worker(self) -> Worker | None:
        """Where the next task goes; None if there is nobody, so that it is queued."""
        state = self.core.state
        if self.nleft == 0 or self.worker is None:
            self.worker = state.loads.lowest()
            if self.worker is None:
                return None
            self.nleft = share_of_early(self.worker, self.nready, state.nthreads)
        self.nleft -= 1
        return self.worker


def unplace(core: Core, task: Task, *, recall: bool) -> None:
    """Undo the placement of a processing task, whose state the caller changes next.

    The worker's place in the indexes is put right when the step is settled, once for all of it.
    What an earlier run of it left on the worker is dropped, since no new result overwrites it.
    `recall`: tell the worker to give the run back, if it was sent, as nobody wants it any more.
    """
    worker = task.worker
    assert worker is not None
    expected_us = worker.processing.pop(task)
    if task.run != NO_RUN:
        worker.nsent -= 1
        worker.runs_suspect = worker.runs_suspect and worker.nsent > 0
        worker.sent_us -= expected_us
        if recall:
            core.to_worker(worker, RecallRuns([(task.id, task.run)], unwanted=True))
    else:
        worker.backlog_us -= expected_us
    if worker.leftovers and task.id in worker.leftovers:
        del worker.leftovers[task.id]
        core.free(worker, task.id)
    if worker.seceded and worker.seceded.pop(task, False):
        worker.nwaiting -= 1
    if worker.actors:
        worker.actors.pop(task, None)
    state = core.state
    if state.ways.moving:
        state.ways.end(task, worker)
    if state.recalled:
        state.recalled.pop(task, None)
    task.worker = None
    task.run = NO_RUN
    core.refill[worker] = None


def update_load(core: Core, worker: Worker) -> None:
    """Put `worker` where its load belongs in the indexes."""
    state = core.state
    nthreads = worker.nthreads
    load = (worker.sent_us + worker.backlog_us) // nthreads
    nsent = worker.nsent
    if not worker.takes_work:
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
    if nsent > nthreads + worker.nwaiting and worker.newest_run > worker.last_recalled:
        state.piped[worker] = None
    elif worker in state.piped:
        del state.piped[worker]


def _place_restricted(core: Core, task: Task) -> None:
    """Place a task that only some workers may run."""
    feasible = [w for w in core.state.workers_named(task.options.workers) if w.takes_work]
    worker = core.placement.best(task, feasible, core.now)
    if worker is None and task.options.allow_other_workers:
        worker = core.placement.choose(task, core.state.loads.lowest(), core.now)
    _put_into_backlog(core, task, worker, NAMED)


def _place_actor(core: Core, task: Task) -> None:
    """Place an actor where fewest are: unlike a task's, its work begins when it is made."""
    state = core.state
    feasible = _feasible(state, task)
    if state.witnesses:
        feasible = [w for w in feasible if may_get_inputs(core, task, w)] or feasible
    if task in state.avoided:
        feasible = _not_avoided(state, task, feasible) or feasible
    worker = core.placement.fewest_actors(task, feasible, core.now)
    _put_into_backlog(core, task, worker, FEWEST_ACTORS)
    if worker is not None:
        worker.actors[task] = None


def _place_with_some(core: Core, task: Task) -> bool:
    """Place a task that not everybody may run: some could not get its inputs, or it asked to be run
    elsewhere.  False if it is to be placed as any other."""
    state = core.state
    if state.witnesses and (able := able_with_inputs(core, task)):
        worker = core.placement.best(task, able, core.now)
        is_holder = worker is not None and any(d in worker.has_what for d in task.dependencies)
        _put_into_backlog(core, task, worker, HELD_INPUTS if is_holder else AWAY)
        return True
    return task in state.avoided and _place_elsewhere(core, task)


def _place_elsewhere(core: Core, task: Task) -> bool:
    """Place a task that asked to be run elsewhere; False if nobody else may run it.

    Once all have run it, only the latest is avoided.  Cost: O(workers).
    """
    state = core.state
    feasible, avoided = _feasible(state, task), state.avoided[task]
    if task.options.allow_other_workers and all(worker in avoided for worker in feasible):
        feasible = [worker for worker in state.workers.values() if worker.takes_work]
    others = _not_avoided(state, task, feasible)
    if not others:
        return False
    _put_into_backlog(core, task, core.placement.best(task, others, core.now), ELSEWHERE)
    return True


def _feasible(state: SchedulerState, task: Task) -> list[Worker]:
    """The workers that may run a task, none of which is about to go.  Cost: O(workers)."""
    names = task.options.workers
    chosen = state.workers_named(names) if names else state.workers.values()
    feasible = [worker for worker in chosen if worker.takes_work]
    if names and task.options.allow_other_workers and not feasible:
        feasible = [worker for worker in state.workers.values() if worker.takes_work]
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


def _put_into_backlog(core: Core, task: Task, worker: Worker | None, reason: int) -> None:
    """Place `task` on `worker`, from where it may be sent; without one, it has to wait for one."""
    if worker is None:
        strand(core, task)
        return
    enter_backlog(core, task, worker, reason)
    for dependency in task.dependencies:
        if dependency.nbytes >= LARGE_BYTES:
            core.state.ways.begin(task, worker)
            break
    core.refill[worker] = None
    core.state.loads.put(worker, worker.occupancy_us // worker.nthreads)


def place_recalled(core: Core, task: Task, thief: Worker) -> None:
    """What was given back goes to whom it was recalled for, if that one has still room for it.

    Where else it is placed might be where it came from.  What needs resources, or is limited, goes
    through the queue as before, as both are counted there.
    """
    if task.state != WAITING or task.nwaiting or not begins_at_once(thief):
        return
    if core.state.worker_by_id.get(thief.id) is not thief or not thief.takes_work:
        return
    if task.options.resources or task.options.limits:
        core.refill[thief] = None  # it is asked; but more urgent ones may take what there is
    elif may_run_on(task, thief):
        _put_into_backlog(core, task, thief, RECALLED)


def first_of_backlog(worker: Worker) -> Task | None:
    """The most urgent task that is placed on `worker` and not sent; stale entries are dropped."""
    backlog = worker.backlog
    while backlog:
        task = backlog[0][2]
        if task.worker is worker and task.run == NO_RUN:
            return task
        heappop(backlog)
    return None


def enter_backlog(core: Core, task: Task, worker: Worker, reason: int) -> None:
    """Place `task` on `worker`, which the caller puts where it belongs in the indexes."""
    expected_us = core.queuing.expected_us(task)
    core.move(task, PROCESSING, worker.id * STEPS + reason)
    task.worker = worker
    worker.processing[task] = expected_us
    worker.backlog_us += expected_us
    if task.prefix.duration_us < 0:
        worker.guessed = task.prefix
    heappush(worker.backlog, (task.priority, task.id, task))
    if len(worker.backlog) > 2 * (len(worker.processing) - worker.nsent) + STALE_MAX:
        unsent = (task for task in worker.processing if task.run == NO_RUN)
        worker.backlog = sorted((task.priority, task.id, task) for task in unsent)
