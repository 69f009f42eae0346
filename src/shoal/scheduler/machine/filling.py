"""From placed to sent: workers with room are filled, and idle ones take what others have placed."""

from heapq import heappop, heappush

from msgspec.structs import asdict

from shoal.ids import TaskId
from shoal.protocol.messages import DefineCode, Input, RunTask
from shoal.protocol.slots import RunTaskIn
from shoal.scheduler.machine.admitting import (
    OFFERS_MAX,
    heavies_for,
    light_head,
    may_begin,
    next_bound,
    next_heavy,
    weigh,
)
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.demands import Look, claim, next_demanded
from shoal.scheduler.machine.placing import (
    enter_backlog,
    first_of_backlog,
    update_load,
)
from shoal.scheduler.machine.sharing import note_sent
from shoal.scheduler.machine.stealing import steal_for
from shoal.scheduler.model.entities import PROCESSING, QUEUED, Task, Worker
from shoal.scheduler.model.reasons import HAD_ROOM, IN_ROW, STEPS
from shoal.scheduler.model.shares import SEQUENCE_BITS, SEQUENCE_MASK
from shoal.scheduler.model.ways import Ways
from shoal.scheduler.policies.neighbours import (
    ROW_OF_SHARED_MAX,
    is_in_row,
    row_length,
    share_of_early,
)
from shoal.scheduler.policies.placement import may_run_on

PASSED_MAX = 8
"""Tasks of one backlog that others pass in one step, as there is no memory for them."""

SENDS_MAX = 1000
"""Queued tasks that one step sends, some milliseconds of work: the others are sent in the next."""

HOLDERS_TOLD = 8
"""Holders of an input that a worker is told, so that it has others to ask."""


def fill(core: Core) -> None:
    """Send what workers have room for: backlogs first where more urgent, then the queue, evenly."""
    state = core.state
    refill = core.refill
    if state.recovery is not None and state.recovery.holds_back:
        for worker in refill:
            update_load(core, worker)
        return
    if state.demands:
        state.limits.take_up()
    for worker in refill:
        _fill_from_backlog(core, worker)
        update_load(core, worker)
    if state.demands:
        head = state.queue.peek()
        _fill_from_demands(core, None if head is None else head.priority)
    _fill_from_queue(core)
    core.has_new_heavy = False
    if state.demands:
        core.has_new_demand = _fill_from_demands(core, None)
    elif core.held_back:
        core.held_back = {}
    if len(state.backlogged) and core.settings.moves_work and not state.has_unsent:
        for worker in refill:
            _steal(core, worker)
        idle = state.open.lowest()
        if idle is not None and not idle.nsent and len(state.backlogged):
            _steal(core, idle)
    refill.clear()
    _watch_for_stalled_runs(core)


def _fill_from_backlog(core: Core, worker: Worker) -> None:
    """Send from the backlog while there is room, and what is queued where that is more urgent.

    What the worker has no memory for is passed, but for what is less urgent and takes much, too.
    """
    if worker.nheld:
        worker.nheld = 0
    if not worker.backlog:
        return
    queue = core.state.queue
    heavies, is_mixed = core.state.footprints.queues, core.state.footprints.is_mixed
    passed: list[tuple[int, TaskId, Task]] = []
    while core.queuing.has_room(worker):
        task = first_of_backlog(worker)
        if task is None:
            break
        if task.prefix.weighs and not may_begin(core, task, worker):
            passed.append(heappop(worker.backlog))
            if task.dependencies and core.admission.is_unknown(task):
                worker.nheld += 1
            if len(passed) == PASSED_MAX:
                break
            continue
        if heavies and (heavy := next_heavy(core, worker, _before(core, task, worker))):
            _send(core, heavy, worker)
            continue
        queued = queue.peek()
        if is_mixed:
            queued = light_head(core)
        if queued is not None and queued.priority < task.priority:
            task = queued if queued.priority < _before(core, task, worker) else task
        if core.state.demands and _send_demanded(core, worker, task.priority):
            continue
        if core.queuing.must_wait(task, worker):
            break
        if task is queued:
            queue.pop()
            _send(core, task, worker)
            _place_row(core, task, worker, core.state.nthreads)
        else:
            heappop(worker.backlog)
            _send(core, task, worker)
    for entry in passed:
        heappush(worker.backlog, entry)


def _send_demanded(core: Core, worker: Worker, before: int) -> bool:
    """Send one that waits for resources or its limit and is more urgent than `before`; False if
    `worker` is of no use to any such."""
    look = Look(core, [worker])
    found = next_demanded(core, look, before, worker)
    look.close()
    if found is None:
        return False
    task, chosen = found
    _send(core, task, chosen)
    update_load(core, chosen)
    return True


def _before(core: Core, placed: Task, worker: Worker) -> int:
    """What is queued goes before what is placed on `worker` if its priority is less than this.

    Than that of the placed one; but where memory is short, of two that are as urgent to their users
    the placed one goes first, whose inputs are there, and may be let go of then.
    """
    if placed.dependencies and core.admission.is_short(worker):
        return placed.priority >> SEQUENCE_BITS << SEQUENCE_BITS
    return placed.priority


def _fill_from_queue(core: Core) -> None:
    """Send what is queued while any worker has room; what may take much memory in its turn."""
    footprints = core.state.footprints
    core.nsends_left = SENDS_MAX
    core.state.has_unsent = False
    if not (footprints.queues or footprints.is_mixed):
        _send_light(core, None)
        return
    core.noffers_left = OFFERS_MAX
    while True:
        task = light_head(core)
        before = None if task is None else task.priority
        if footprints.queues:
            for heavy, worker in heavies_for(core, before):
                _send(core, heavy, worker)
                update_load(core, worker)
            bound = next_bound(core, before)
        else:
            bound = None
        if not _send_light(core, bound) or bound is None:
            return
        if core.noffers_left <= 0 or core.nsends_left <= 0:
            core.wake_by(core.now)
            return


def _send_light(core: Core, bound: int | None) -> int:
    """Send from the queue, each to the worker with the least that was sent, while any has room.

    `bound`: only what is more urgent than this.  Returns how many were sent.
    """
    index = core.state.open
    has_room = core.queuing.has_room
    places_early = core.queuing.places_early
    nthreads = core.state.nthreads  # of workers that have no row of this step
    is_mixed = core.state.footprints.is_mixed
    filled: dict[Worker, None] = {}
    queue = core.state.queue
    while (worker := index.lowest()) is not None:
        task = queue.peek()
        if is_mixed:
            task = light_head(core)
        if task is None or (task.blame and core.queuing.must_wait(task, worker)):
            break
        if bound is not None and task.priority > bound:
            break
        if core.nsends_left <= 0:
            core.state.has_unsent = True
            core.wake_by(core.now)
            break
        core.nsends_left -= 1
        queue.pop()
        _send(core, task, worker)
        may_lead = task.dependents is not None and not task.prefix.gives_small
        if (may_lead or places_early) and _place_row(core, task, worker, nthreads):
            nthreads -= worker.nthreads
            _fill_from_backlog(core, worker)
        filled[worker] = None
        if has_room(worker):
            index.put(worker, worker.sent_us // worker.nthreads)
        else:
            index.discard(worker)
    for worker in filled:
        update_load(core, worker)
    return len(filled)


def _place_row(core: Core, task: Task, worker: Worker, nthreads: int) -> int:
    """Place on `worker` what follows `task` in the queue; others may take it while it is not sent.

    If they may not, nothing is placed before there is room for it.  Returns how many were placed.

    Args:
        nthreads: among which the queue is shared out.
    """
    state = core.state
    queue = state.queue
    nready = state.ntasks[QUEUED] + 1
    if nready == 1 or not core.settings.moves_work:
        return 0
    is_early = core.queuing.places_early
    if is_early:
        nmore = share_of_early(worker, nready, nthreads) - 1
    elif is_in_row(task):
        nmore = row_length(task, worker, nready, nthreads) - 1
        if state.shares.is_shared:
            nmore = min(nmore, ROW_OF_SHARED_MAX)
    else:
        return 0
    nplaced = 0
    while nplaced < min(nmore, core.nplacements_left):
        following = queue.peek()
        if following is None or not (is_early or is_in_row(following)):
            break
        if following.priority >> SEQUENCE_BITS != task.priority >> SEQUENCE_BITS:
            break
        queue.pop()
        enter_backlog(core, following, worker, IN_ROW)
        nplaced += 1
    core.nplacements_left -= nplaced
    return nplaced


def _fill_from_demands(core: Core, before: int | None) -> bool:
    """Send what needs resources to workers that have enough left, the most urgent first.

    `before`: only what is more urgent than this priority.  Returns whether there were too many to
    look at in one go, so that the next step has to ask all workers.
    """
    core.state.limits.take_up()
    if core.has_new_demand:
        workers = list(core.state.workers.values())
    else:
        workers = list({**core.refill, **core.held_back} if core.held_back else core.refill)
    if before is None:
        core.held_back = {}
    look = Look(core, workers)
    while (found := next_demanded(core, look, before)) is not None:
        task, worker = found
        _send(core, task, worker)
        update_load(core, worker)
    look.close()
    return look.is_cut_short


def _send(core: Core, task: Task, worker: Worker) -> None:
    """Begin a run of `task` on `worker`: from the queue, or from the worker's backlog.

    The caller puts the worker where it belongs in the indexes.
    """
    if task.state == QUEUED:
        core.move(task, PROCESSING, worker.id * STEPS + HAD_ROOM)
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
    if task.prefix.weighs:
        weigh(core, task, worker)
    if worker.forfeited:
        _forget_forfeited(worker, task)
    options = task.options
    if options.resources or options.limits:
        claim(core, worker, task.run, task)
    if core.state.shares.levels:
        note_sent(core, task, expected_us)
    if worker in core.freeing:
        core.say_what_to_free(worker)
    code = task.code
    assert code is not None
    if worker not in code.told:
        code.told[worker] = None
        worker.told[code] = None
        core.to_worker(worker, DefineCode(code.id, code.payload))
    ways = core.state.ways
    run = RunTask(
        task.id,
        task.run,
        task.key,
        code.id,
        task.argument,
        options.priority,
        task.priority & SEQUENCE_MASK,
        [_input(dependency, worker, ways) for dependency in task.dependencies]
        if task.dependencies
        else [],
    )
    if options.executor or options.timeout:
        run = RunTaskIn(**asdict(run), executor=options.executor, timeout_seconds=options.timeout)
    core.to_worker(worker, run)


def _forget_forfeited(worker: Worker, task: Task) -> None:
    """The worker throws away what an older run of the task gives: that counts no more."""
    for run in [run for run, taken in worker.forfeited.items() if taken is task]:
        del worker.forfeited[run]


def _input(dependency: Task, worker: Worker, ways: Ways) -> TaskId | Input:
    """How `worker` gets this input: it has it, it comes along, or these hold it."""
    if dependency in worker.has_what:
        return dependency.id
    if dependency.value is not None:
        return Input(dependency.id, dependency.key, dependency.nbytes, [], dependency.value)
    holders = dependency.who_has
    assert holders is not None
    near: list[str] = []
    far: list[str] = []
    if len(holders) > 1 or dependency in ways.moving:  # each begins with another one: they share
        source = ways.source(dependency, worker)
        start = worker.id % len(holders)
        following = holders[start : start + HOLDERS_TOLD]
        holders = list(dict.fromkeys((source, *following, *holders[:HOLDERS_TOLD])))
    for holder in holders:
        (near if holder.host == worker.host else far).append(holder.address)
        if len(near) + len(far) >= HOLDERS_TOLD:
            break
    return Input(dependency.id, dependency.key, dependency.nbytes, near + far)


def _steal(core: Core, thief: Worker) -> None:
    """Give a worker that has room and nothing to do what another has in its backlog."""
    while core.queuing.has_room(thief) and first_of_backlog(thief) is None:
        task = steal_for(core, thief)
        if task is None:
            return
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
    task = None if victim is None else first_of_backlog(victim)
    if victim is not None and task is not None and may_run_on(task, idle):
        core.wake_by(core.now + max(after, core.now - victim.heard_at))
    if state.piped:
        core.wake_by(core.now + after)
