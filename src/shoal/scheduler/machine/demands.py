"""Tasks that need resources of their worker, or of which only so many may run: queued until a
worker has that much left and none is too many, and counted.

What a run has it keeps until its worker says that it has ended, however that is, or is lost: also
a run that was given up, as nobody can stop its thread, and one that has seceded.
"""

from collections.abc import Collection, Iterator
from heapq import heapify, heappop, heapreplace
from operator import attrgetter

from shoal.ids import RunId
from shoal.protocol.answers import answer
from shoal.protocol.membership import ResourcesChanged, SetResources
from shoal.scheduler.machine.admitting import may_begin
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.machine.staying import bind_to_holders, may_get_inputs
from shoal.scheduler.machine.stranding import strand
from shoal.scheduler.machine.waiting import wait_again
from shoal.scheduler.model.demands import (
    TOLERANCE,
    Demand,
    DemandKey,
    Entry,
    Line,
    able_workers,
    demand_key,
    has_left,
    is_demanding,
    line_key,
    may_be_met,
)
from shoal.scheduler.model.entities import QUEUED, Client, Task, Worker
from shoal.scheduler.model.state import SchedulerState
from shoal.scheduler.policies.queuing import LateBinding
from shoal.scheduler.policies.staying import inputs_in_doubt

STALE_MAX = 256
"""Entries of tasks that have gone which a demand may keep beside as many live ones."""

LOOKED_AT_MIN = 16
PAIRS_MAX = 1024
"""Of one line so many demands and workers are looked at in one go: the others' turn comes later."""


def queue_demand(core: Core, task: Task) -> None:
    """Queue a ready task, if there is a worker that has what it needs when nothing runs there.

    Many tasks that need the same, which nobody has, cost one look at the workers in a step.
    """
    state = core.state
    if state.witnesses:
        bind_to_holders(core, task)
    key = demand_key(task.options)
    demand = state.demands.get(key)
    if demand is None:
        demand = Demand(task)
        if key in core.unmet or not _can_be_met(state, demand):
            core.unmet[key] = None
            strand(core, task)
            return
        state.demands[key] = demand
    core.move(task, QUEUED)
    demand.queue.push(task)
    if not demand.is_for_any:
        core.has_new_demand = True
    if demand.queue.peek() is task:
        if demand.is_for_any:
            state.limits.enter(demand)
        else:
            _line_of(state, demand).enter(demand)
    if task.options.inside and core.settings.stranded_warning_seconds is not None:
        since = state.nested_since.setdefault(key, core.now)
        core.wake_by(since + core.settings.stranded_warning_seconds)
    if demand.queue.nentries > 2 * state.ntasks[QUEUED] + STALE_MAX:
        demand.queue.compact()


def _line_of(state: SchedulerState, demand: Demand) -> Line:
    key = line_key(demand)
    line = state.lines.get(key)
    if line is None:
        line = state.lines[key] = Line(state.demands)
    return line


class Look:
    """One look, within a step, at what demands that certain workers may meet can have of some."""

    def __init__(self, core: Core, workers: list[Worker]) -> None:
        """
        Args:
            workers: that may have something left.

        Cost: O(lines).
        """
        self.core = core
        self.workers = dict.fromkeys(workers)
        self.reserved: dict[Worker, dict[str, None]] = {}  # what is kept for demands passed by
        self.is_cut_short = False  # there are demands that were not looked at
        self._nlooks_max = max(LOOKED_AT_MIN, PAIRS_MAX // max(1, len(workers)))
        self._nlooks: dict[Line, int] = {}
        self._passed: list[tuple[Line, Entry]] = []
        self._heads: list[tuple[int, int, int, Line]] = []  # as entries
        for number, (key, line) in enumerate(list(core.state.lines.items())):
            entry = line.first()
            if entry is None:
                del core.state.lines[key]
            else:
                self._heads.append((entry[0], entry[1], number, line))
        heapify(self._heads)

    def first(self) -> Demand | None:
        """The most urgent demand that was not looked at yet; it stays."""
        heads = self._heads
        while heads:
            priority, number, place, line = heads[0]
            entry = line.first()
            if entry is None:
                heappop(heads)
            elif entry[:2] != (priority, number):
                heapreplace(heads, (entry[0], entry[1], place, line))
            else:
                return entry[3]
        return None

    def pass_by(self, able: list[Worker], candidates: Collection[Worker]) -> None:
        """The first demand can't be met: look at others.

        Args:
            able: to meet it one day: what it needs of them is kept for it.
            candidates: those that may run what is in its line.
        """
        line = self._heads[0][3]
        self._passed.append((line, heappop(line.entries)))
        for worker in able:
            self.reserved.setdefault(worker, {}).update(dict.fromkeys(line.least))
        nlooks = self._nlooks[line] = self._nlooks.get(line, 0) + 1
        if line.first() is None:
            return
        if nlooks >= self._nlooks_max:
            self.is_cut_short = True
            heappop(self._heads)
        elif not self._has_any_for(line, candidates) and (
            able or not any(line.least.keys() <= worker.resources.keys() for worker in candidates)
        ):
            heappop(self._heads)

    def close(self) -> None:
        """All that were passed by wait for the next look."""
        for line, entry in self._passed:
            demand = entry[3]
            if demand.entry is entry:
                line.enter(demand)
        self._passed.clear()

    def _has_any_for(self, line: Line, candidates: Collection[Worker]) -> bool:
        """Whether any of these may have enough left that is not kept for others.

        Those from which this keeps anything have to be asked again although nothing happens there.
        """
        has_any = False
        for worker in candidates:
            if not has_left(worker, line.least) or not self.core.queuing.has_room(worker):
                continue
            kept = self.reserved.get(worker)
            if kept is None or kept.keys().isdisjoint(line.least):
                has_any = True
            else:
                self.core.held_back[worker] = None
        return has_any


def next_demanded(
    core: Core, look: Look, before: int | None, near: Worker | None = None
) -> tuple[Task, Worker] | None:
    """The most urgent task that may run and for which a worker has enough left, and that worker;
    it is taken out.

    What a more urgent task waits for is kept for it, so that many small ones don't keep out a large
    one.  Workers that this keeps anything from are noted in `core.held_back`: they may have to be
    asked again although nothing happens there.

    Args:
        look: at those that certain workers may meet, of earlier calls in the same step.
        before: only tasks more urgent than this priority.
        near: who has room, for what any worker may run, unless somebody is idle; None: whoever was
            sent the least.
    """
    state, limits = core.state, core.state.limits
    has_room = True
    while True:
        demand = limits.first() if has_room else None
        bound = look.first()
        if bound is not None and (demand is None or _head_of(bound) < _head_of(demand)):
            demand = bound
        if demand is None:
            return None
        task = demand.queue.peek()
        assert task is not None
        if before is not None and task.priority >= before:
            return None
        if demand.is_for_any:
            if (worker := _any_for(core, task, demand, near)) is not None:
                demand.queue.pop()
                limits.enter(demand)
                return task, worker
            if _is_odd(core, task):
                limits.set_aside(demand)
            else:
                has_room = False
            continue
        if demand.limits and limits.reached(demand.limits):
            look.pass_by([], look.workers)
            continue
        named = state.workers_named(demand.workers)
        able = able_workers(demand, look.workers, named)
        worker = _best_of(core, task, demand, able, look.reserved)
        if worker is not None:
            demand.queue.pop()
            return task, worker
        look.pass_by(able, named if demand.workers and not demand.allows_others else look.workers)


def _head_of(demand: Demand) -> tuple[int, int]:
    task = demand.queue.peek()
    assert task is not None
    return task.priority, task.id


def _best_of(
    core: Core,
    task: Task,
    demand: Demand,
    able: list[Worker],
    reserved: dict[Worker, dict[str, None]],
) -> Worker | None:
    """Of the able workers that have enough left, the one where `task` would start first."""
    free = [w for w in able if _has_left_for(core, task, demand, w, reserved)]
    if core.state.avoided and (avoided := core.state.avoided.get(task)):
        free = [w for w in free if w not in avoided] or free
    if core.state.witnesses:
        free = [w for w in free if may_get_inputs(core, task, w)] or free
    return core.placement.best(task, free, core.now)


def _is_odd(core: Core, task: Task) -> bool:
    """Whether not any worker with room will do for a task that any worker may run."""
    state = core.state
    if task.blame or task.prefix.weighs or task in state.avoided:
        return True
    return bool(state.witnesses) and bool(inputs_in_doubt(task, state.witnesses))


def _any_for(core: Core, task: Task, demand: Demand, near: Worker | None) -> Worker | None:
    """Where a task that any worker may run would start first, of those with room; None if none
    has.

    Cost: as `placement.choose`, however many workers there are; but for one that may have killed
    a worker, takes much memory, or asked to be run elsewhere: O(workers).
    """
    if _is_odd(core, task):
        able = able_workers(demand, core.state.workers.values(), {})
        return _best_of(core, task, demand, able, {})
    emptiest = core.state.open.lowest()
    if near is not None and (emptiest is None or emptiest.nsent or not near.nsent):
        emptiest = near  # else it would be recalled for the idle one, and come back, for ever
    if emptiest is None:
        return None
    chosen = core.placement.choose(task, emptiest, core.now)
    return chosen if chosen is not None and core.queuing.has_room(chosen) else emptiest


def claim(core: Core, worker: Worker, run: RunId, task: Task) -> None:
    """A run is sent: it has what it needs, and is counted, from now on."""
    options = worker.claims[run] = task.options
    for name, amount in options.resources.items():
        worker.available[name] = worker.available.get(name, 0.0) - amount
    if options.limits:
        core.state.limits.count(options.limits)


def give_back(core: Core, worker: Worker, run: RunId) -> None:
    """A run has ended: what it had is there for others."""
    options = worker.claims.pop(run, None)
    if options is None:
        return
    if not worker.claims:
        worker.available = dict(worker.resources)  # the sums are exact again
    else:
        for name, amount in options.resources.items():
            worker.available[name] = worker.available.get(name, 0.0) + amount
    core.refill[worker] = None
    if options.limits:
        core.state.limits.discount(options.limits)
        ask_all_if_limited(core)


def ask_all_if_limited(core: Core) -> None:
    """One more of a name may run: on any worker, so those that wait for certain ones ask all."""
    if any(limits for _, _, _, limits in core.state.lines):
        core.has_new_demand = True


def discount_lost(core: Core, worker: Worker) -> None:
    """A worker has gone, and what it ran runs no more, as far as anybody can know."""
    for run in list(worker.claims):
        give_back(core, worker, run)


def change_resources(core: Core, worker: Worker, resources: dict[str, float]) -> None:
    """`worker` has these amounts from now on, beside those that are not named."""
    worker.resources = {**worker.resources, **resources}
    worker.available = dict(worker.resources)
    for claimed in worker.claims.values():
        for name, amount in claimed.resources.items():
            worker.available[name] = worker.available.get(name, 0.0) - amount
    core.refill[worker] = None
    for task in list(core.state.unrunnable):
        wait_again(core, task)
    drop_unmet(core)


def drop_unmet(core: Core) -> None:
    """Workers leave or have less: what none can meet any more waits for others to come.

    What may run on others than those it names may now have to, so all are asked.
    """
    state = core.state
    for key, demand in list(state.demands.items()):
        if _can_be_met(state, demand):
            core.has_new_demand = core.has_new_demand or demand.allows_others
            continue
        del state.demands[key]
        demand.entry = None
        while (task := demand.queue.pop()) is not None:
            wait_again(core, task)


def on_resources_changed(core: Core, worker: Worker, message: ResourcesChanged) -> None:
    """The worker says what it has."""
    change_resources(core, worker, message.resources)


def on_set_resources(core: Core, client: Client, call: SetResources) -> None:
    """A client says what a worker has; nothing happens if there is no such worker."""
    named = core.state.workers_named([call.worker])
    for worker in named:
        change_resources(core, worker, call.resources)
    has = next(iter(named)).resources if named else {}
    core.to_client(client, answer(call.request, has))


def _can_be_met(state: SchedulerState, demand: Demand) -> bool:
    workers = state.workers.values()
    return may_be_met(demand, workers, state.workers_named(demand.workers))


def _has_left_for(
    core: Core,
    task: Task,
    demand: Demand,
    worker: Worker,
    reserved: dict[Worker, dict[str, None]],
) -> bool:
    if not has_left(worker, demand.resources) or not core.queuing.has_room(worker):
        return False
    kept = reserved.get(worker)
    is_kept = kept is not None and not kept.keys().isdisjoint(demand.resources)
    if is_kept or core.queuing.must_wait(task, worker):
        core.held_back[worker] = None
        return False
    if task.prefix.weighs and not may_begin(core, task, worker):
        core.held_back[worker] = None
        return False
    return True


def _heads_move(state: SchedulerState) -> Iterator[str]:
    """The most urgent task of a demand does not wait while a worker could run it right now.

    Unless what it needs there is kept for a more urgent one, or enough of its name run.
    """
    heads: dict[DemandKey, Task] = {}
    for task in state.tasks.values():
        if task.state == QUEUED and is_demanding(task.options):
            key = demand_key(task.options)
            head = heads.get(key)
            if head is None or (task.priority, task.id) < (head.priority, head.id):
                heads[key] = task
    queuing = LateBinding(state.settings)
    workers = state.workers.values()
    reserved: dict[Worker, dict[str, None]] = {}
    for task in sorted(heads.values(), key=attrgetter("priority", "id")):
        demand = Demand(task)
        if state.limits.reached(demand.limits):
            continue
        for worker in able_workers(demand, workers, state.workers_named(demand.workers)):
            kept = reserved.setdefault(worker, {})
            if (
                kept.keys().isdisjoint(demand.resources)
                and has_left(worker, demand.resources)
                and queuing.has_room(worker)
                and not queuing.must_wait(task, worker)
                and not (task.prefix.weighs and worker.memory_limit)
            ):
                yield f"{task!r} waits for {demand!r}, which {worker} has left"
            kept.update(dict.fromkeys(demand.resources))


def amounts_add_up(state: SchedulerState) -> Iterator[str]:
    """No worker's runs have more than there is; what is queued for a demand can be met, and is."""
    for worker in state.workers.values():
        for name in worker.available:
            claimed = sum(part.resources.get(name, 0.0) for part in worker.claims.values())
            left = worker.resources.get(name, 0.0) - claimed
            if abs(left - worker.available[name]) > TOLERANCE:
                yield f"{worker} has {left} of {name} left, and counts {worker.available[name]}"
    for task in state.tasks.values():
        if task.state == QUEUED and is_demanding(task.options):
            demand = state.demands.get(demand_key(task.options))
            if demand is None or not _can_be_met(state, demand):
                yield f"{task!r} is queued for what no worker has"
    for demand in state.demands.values():
        if demand.is_for_any or demand.queue.peek() is None:
            continue
        line = state.lines.get(line_key(demand))
        if line is None or not any(demand.entry is entry for entry in line.entries):
            yield f"{demand!r} waits, and is in no line"
    yield from _heads_move(state)


HANDLERS = Handlers(
    from_client={SetResources: on_set_resources},
    from_worker={ResourcesChanged: on_resources_changed},
    worker_gone=discount_lost,
    invariant=amounts_add_up,
)
