"""From placed to sent: workers with room are filled, and idle ones take what others have placed."""

from heapq import heappop

from msgspec.structs import asdict

from shoal.ids import TaskId
from shoal.protocol.messages import DefineCode, FreeReplicas, Input, RunTask
from shoal.protocol.slots import RunTaskIn
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.demands import claim, next_demanded
from shoal.scheduler.machine.placing import SEQUENCE_BITS, update_load
from shoal.scheduler.model.demands import Demand
from shoal.scheduler.model.entities import NO_RUN, PROCESSING, QUEUED, Task, Worker
from shoal.scheduler.policies.placement import may_run_on

HOLDERS_TOLD = 8
"""Holders of an input that a worker is told, so that it has others to ask."""


def fill(core: Core) -> None:
    """Send what workers have room for: backlogs first where more urgent, then the queue, evenly."""
    state = core.state
    refill = core.refill
    for worker in refill:
        _fill_from_backlog(core, worker)
        update_load(core, worker)
    if state.demands:
        head = state.queue.peek()
        _fill_from_demands(core, None if head is None else head.priority)
    _fill_from_queue(core)
    if state.demands:
        _fill_from_demands(core, None)
        core.has_new_demand = False
    elif core.held_back:
        core.held_back = {}
    if len(state.backlogged) and core.settings.moves_work:
        for worker in refill:
            _steal(core, worker)
    refill.clear()
    _watch_for_stalled_runs(core)


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


def _fill_from_demands(core: Core, before: int | None) -> None:
    """Send what needs resources to workers that have enough left, the most urgent first.

    `before`: only what is more urgent than this priority.
    """
    if core.has_new_demand:
        workers = list(core.state.workers.values())
    else:
        workers = list({**core.refill, **core.held_back} if core.held_back else core.refill)
    if before is None:
        core.held_back = {}
    reserved: dict[Worker, dict[str, None]] = {}
    done: dict[Demand, None] = {}
    while (found := next_demanded(core, workers, before, reserved, done)) is not None:
        task, worker = found
        _send(core, task, worker)
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
    if task.options.resources:
        claim(worker, task.run, task)
    if worker in core.freeing:
        core.say_what_to_free(worker)
    code = task.code
    assert code is not None
    if worker not in code.told:
        code.told[worker] = None
        worker.told[code] = None
        core.to_worker(worker, DefineCode(code.id, code.payload))
    options = task.options
    run = RunTask(
        task.id,
        task.run,
        task.key,
        code.id,
        task.argument,
        options.priority,
        task.priority & ((1 << SEQUENCE_BITS) - 1),
        [_input(dependency, worker) for dependency in task.dependencies]
        if task.dependencies
        else [],
    )
    if options.executor:
        run = RunTaskIn(**asdict(run), executor=options.executor)
    core.to_worker(worker, run)


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
        if thief in core.state.avoided.get(task, ()):
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
    if not (state.piped or len(state.backlogged)) or not core.settings.moves_work:
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
