"""From ready to sent: tasks are placed, workers with room are filled, idle ones steal.

Two places hold ready tasks.  The *queue* has those that may run anywhere; they stay unplaced until
some worker has room.  A worker's *backlog* has those placed there for the sake of their inputs or
restrictions; they too are sent only when it has room, so another worker may still take them.
"""

from heapq import heappop, heappush
from operator import attrgetter

from shoal.ids import TaskId
from shoal.protocol.messages import DefineCode, FreeReplicas, Input, RecallRuns, RunTask
from shoal.scheduler.machine.core import Core
from shoal.scheduler.model.entities import (
    NO_RUN,
    NO_WORKER,
    PROCESSING,
    QUEUED,
    WAITING,
    Task,
    Worker,
)
from shoal.scheduler.policies.placement import has_inputs_to_move, idle_holder, may_run_on

HOLDERS_TOLD = 8
"""Holders of an input that a worker is told, so that it has others to ask."""

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
    for changed in core.refill:
        update_load(core, changed)
    if len(ready) > 1:
        ready.sort(key=attrgetter("priority"))
    for task in ready:
        if task.state != WAITING or task.nwaiting:
            continue  # it was noted twice, or an input was lost in the same step
        if task.options.workers:
            _place_restricted(core, task)
        elif has_inputs_to_move(task):
            worker = core.placement.choose(task, core.state.loads.lowest(), core.now)
            _put_into_backlog(core, task, worker)
        elif (idle := idle_holder(task)) is not None:
            _put_into_backlog(core, task, idle)
        else:
            core.move(task, QUEUED)
            core.state.queue.push(task)
    queue = core.state.queue
    if queue.nentries > 2 * core.state.ntasks[QUEUED] + STALE_MAX:
        queue.compact()


def fill(core: Core) -> None:
    """Send what workers have room for: backlogs first where more urgent, then the queue, evenly."""
    state = core.state
    refill = core.refill
    for worker in refill:
        _fill_from_backlog(core, worker)
        update_load(core, worker)
    _fill_from_queue(core)
    if len(state.backlogged):
        for worker in refill:
            _steal(core, worker)
    refill.clear()
    _watch_for_stalled_runs(core)


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


def _put_into_backlog(core: Core, task: Task, worker: Worker | None) -> None:
    """Place `task` on `worker`, from where it may be sent; without one, it has to wait for one."""
    if worker is None:
        core.move(task, NO_WORKER)
        core.state.unrunnable[task] = None
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


def _first_of_backlog(worker: Worker) -> Task | None:
    """The most urgent task that is placed on `worker` and not sent; stale entries are dropped."""
    backlog = worker.backlog
    while backlog:
        task = backlog[0][2]
        if task.worker is worker and task.run == NO_RUN:
            return task
        heappop(backlog)
    return None


def _fill_from_backlog(core: Core, worker: Worker) -> None:
    """Send from the backlog while there is room, and what is queued where that is more urgent."""
    queue = core.state.queue
    while core.queuing.has_room(worker):
        task = _first_of_backlog(worker)
        if task is None:
            return
        queued = queue.peek()
        if queued is not None and queued.priority < task.priority:
            task = queued
        if core.queuing.must_wait(task, worker):
            return
        if task is queued:
            queue.pop()
        else:
            heappop(worker.backlog)
        _send(core, task, worker)


def _fill_from_queue(core: Core) -> None:
    """Send from the queue, each to the worker with the least that was sent, while any has room."""
    queue = core.state.queue
    index = core.state.open
    has_room = core.queuing.has_room
    filled: dict[Worker, None] = {}
    while (worker := index.lowest()) is not None:
        task = queue.peek()
        if task is None or core.queuing.must_wait(task, worker):
            break
        queue.pop()
        _send(core, task, worker)
        filled[worker] = None
        if has_room(worker):
            index.put(worker, worker.sent_us // worker.nthreads)
        else:
            index.discard(worker)
    for worker in filled:
        update_load(core, worker)


def _send(core: Core, task: Task, worker: Worker) -> None:
    """Begin a run of `task` on `worker`: from the queue, or from the worker's backlog.

    The caller puts the worker where it belongs in the indexes.
    """
    if task.state == QUEUED:
        core.move(task, PROCESSING)
        task.worker = worker
        expected_us = core.queuing.expected_us(task)
        worker.processing[task] = expected_us
    else:
        expected_us = worker.processing[task]
        worker.backlog_us -= expected_us
    worker.sent_us += expected_us
    worker.nsent += 1
    if task.blame:
        worker.runs_suspect = True
    task.run = worker.newest_run = core.new_run()
    if worker in core.freeing:
        core.say_what_to_free(worker)
    code = task.code
    assert code is not None
    if worker not in code.told:
        code.told[worker] = None
        worker.told[code] = None
        core.to_worker(worker, DefineCode(code.id, code.payload))
    core.to_worker(
        worker,
        RunTask(
            task.id,
            task.run,
            task.key,
            code.id,
            task.argument,
            task.options.priority,
            task.priority & ((1 << SEQUENCE_BITS) - 1),
            [_input(dependency, worker) for dependency in task.dependencies]
            if task.dependencies
            else [],
        ),
    )


def _input(dependency: Task, worker: Worker) -> TaskId | Input:
    """How `worker` gets this input: it has it, it comes along, or these hold it."""
    if dependency in worker.has_what:
        return dependency.id
    if dependency.value is not None:
        return Input(dependency.id, dependency.key, dependency.nbytes, [], dependency.value)
    holders = dependency.who_has
    assert holders is not None
    near: list[str] = []
    far: list[str] = []
    for holder in holders:
        (near if holder.host == worker.host else far).append(holder.address)
        if len(near) + len(far) >= HOLDERS_TOLD:
            break
    return Input(dependency.id, dependency.key, dependency.nbytes, near + far)


def _steal(core: Core, thief: Worker) -> None:
    """Give a worker that has room and nothing to do what another has in its backlog."""
    while core.queuing.has_room(thief) and _first_of_backlog(thief) is None:
        victim = core.state.backlogged.highest()
        if victim is None or victim is thief:
            return
        task = _first_of_backlog(victim)
        assert task is not None, "a worker in the index has a backlog"
        if not may_run_on(task, thief) or core.queuing.must_wait(task, thief):
            return
        if not core.stealing.is_worth_it(
            task, core.queuing.expected_us(task), victim, thief, core.now
        ):
            return
        expected_us = victim.processing.pop(task)
        victim.backlog_us -= expected_us
        heappop(victim.backlog)
        if task.id in victim.leftovers:
            del victim.leftovers[task.id]
            core.to_worker(victim, FreeReplicas([task.id]))
        update_load(core, victim)
        task.worker = thief
        thief.processing[task] = expected_us
        thief.backlog_us += expected_us
        _send(core, task, thief)
        update_load(core, thief)


def _watch_for_stalled_runs(core: Core) -> None:
    """While a worker idles and others have more than they can begin, look again in a while.

    In a while that doubles with the silence of those others, so that waiting costs next to nothing.
    """
    state = core.state
    if not state.piped and not len(state.backlogged):
        return
    idle = state.open.lowest()
    if idle is None or idle.nsent:
        return
    after = core.settings.recall_after_seconds
    victim = state.backlogged.highest()
    task = None if victim is None else _first_of_backlog(victim)
    if victim is not None and task is not None and may_run_on(task, idle):
        core.wake_by(core.now + max(after, core.now - victim.heard_at))
    for worker in state.piped:
        if worker.newest_run > worker.last_recalled:
            core.wake_by(core.now + after)
            break
