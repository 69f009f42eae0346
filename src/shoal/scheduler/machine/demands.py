"""Tasks that need resources of their worker: queued until one has that much left, and counted.

What a run has it keeps until its worker says that it has ended, however that is: also a run that
was given up, as nobody can stop its thread.
"""

from collections.abc import Iterator

from shoal.ids import RunId
from shoal.protocol.answers import answer
from shoal.protocol.membership import ResourcesChanged, SetResources
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.machine.stranding import strand
from shoal.scheduler.machine.waiting import wait_again
from shoal.scheduler.model.demands import (
    TOLERANCE,
    Demand,
    DemandKey,
    able_workers,
    demand_key,
    has_left,
)
from shoal.scheduler.model.entities import QUEUED, Client, Task, Worker
from shoal.scheduler.model.state import SchedulerState
from shoal.scheduler.policies.queuing import LateBinding

STALE_MAX = 256
"""Entries of tasks that have gone which a demand may keep beside as many live ones."""


def queue_demand(core: Core, task: Task) -> None:
    """Queue a ready task, if there is a worker that has what it needs when nothing runs there.

    Many tasks that need the same, which nobody has, cost one look at the workers in a step.
    """
    state = core.state
    key = demand_key(task)
    demand = state.demands.get(key)
    if demand is None:
        demand = Demand(task)
        if key in core.unmet or not _able(state, demand):
            core.unmet[key] = None
            strand(core, task)
            return
        state.demands[key] = demand
    core.move(task, QUEUED)
    demand.queue.push(task)
    core.has_new_demand = True
    if demand.queue.nentries > 2 * state.ntasks[QUEUED] + STALE_MAX:
        demand.queue.compact()


def next_demanded(
    core: Core,
    workers: list[Worker],
    before: int | None,
    reserved: dict[Worker, dict[str, None]],
    done: dict[Demand, None],
) -> tuple[Task, Worker] | None:
    """The most urgent task for which a worker has enough left, and that worker; it is taken out.

    What a more urgent task waits for is kept for it, so that many small ones don't keep out a large
    one.  Workers that this keeps anything from are noted in `core.held_back`: they may have to be
    asked again although nothing happens there.

    Args:
        workers: that may have something left.
        before: only tasks more urgent than this priority.
        reserved: what is kept for others, of earlier calls in the same step; added to.
        done: demands that no worker can meet; added to.
    """
    state = core.state
    heads = [(t.priority, t.id, d) for d in _open(state, done) if (t := d.queue.peek()) is not None]
    for priority, _, demand in sorted(heads, key=lambda head: head[:2]):
        if before is not None and priority >= before:
            return None
        task = demand.queue.peek()
        assert task is not None
        able = able_workers(demand, workers, state.workers_named(demand.workers))
        free = [w for w in able if _has_left_for(core, task, demand, w, reserved)]
        if state.avoided and (avoided := state.avoided.get(task)):
            free = [w for w in free if w not in avoided] or free
        worker = core.placement.best(task, free, core.now)
        if worker is not None:
            demand.queue.pop()
            return task, worker
        done[demand] = None
        for each in able:
            reserved.setdefault(each, {}).update(dict.fromkeys(demand.resources))
    return None


def claim(worker: Worker, run: RunId, task: Task) -> None:
    """A run is sent: it has what it needs from now on."""
    resources = task.options.resources
    worker.claims[run] = resources
    for name, amount in resources.items():
        worker.available[name] = worker.available.get(name, 0.0) - amount


def give_back(core: Core, worker: Worker, run: RunId) -> None:
    """A run has ended: what it had is there for others."""
    resources = worker.claims.pop(run, None)
    if resources is None:
        return
    if not worker.claims:
        worker.available = dict(worker.resources)  # the sums are exact again
    else:
        for name, amount in resources.items():
            worker.available[name] = worker.available.get(name, 0.0) + amount
    core.refill[worker] = None


def change_resources(core: Core, worker: Worker, resources: dict[str, float]) -> None:
    """`worker` has these amounts from now on, beside those that are not named."""
    worker.resources = {**worker.resources, **resources}
    worker.available = dict(worker.resources)
    for claimed in worker.claims.values():
        for name, amount in claimed.items():
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
        if _able(state, demand):
            core.has_new_demand = core.has_new_demand or demand.allows_others
            continue
        del state.demands[key]
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


def _open(state: SchedulerState, done: dict[Demand, None]) -> Iterator[Demand]:
    """Demands that may be met; those without tasks are dropped."""
    for key, demand in list(state.demands.items()):
        if demand.queue.peek() is None:
            del state.demands[key]
        elif demand not in done:
            yield demand


def _able(state: SchedulerState, demand: Demand) -> list[Worker]:
    workers = state.workers.values()
    return able_workers(demand, workers, state.workers_named(demand.workers))


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
    return True


def _heads_move(state: SchedulerState) -> Iterator[str]:
    """The most urgent task of a demand does not wait while a worker could run it right now.

    Unless what it needs there is kept for a more urgent one.
    """
    heads: dict[DemandKey, Task] = {}
    for task in state.tasks.values():
        if task.state == QUEUED and task.options.resources:
            key = demand_key(task)
            head = heads.get(key)
            if head is None or (task.priority, task.id) < (head.priority, head.id):
                heads[key] = task
    queuing = LateBinding(state.settings)
    workers = state.workers.values()
    reserved: dict[Worker, dict[str, None]] = {}
    for key, task in sorted(heads.items(), key=lambda item: (item[1].priority, item[1].id)):
        demand = Demand(task)
        for worker in able_workers(demand, workers, state.workers_named(demand.workers)):
            kept = reserved.setdefault(worker, {})
            if (
                kept.keys().isdisjoint(demand.resources)
                and has_left(worker, demand.resources)
                and queuing.has_room(worker)
                and not queuing.must_wait(task, worker)
            ):
                yield f"{task!r} waits for {dict(key[0])}, which {worker} has left"
            kept.update(dict.fromkeys(demand.resources))


def amounts_add_up(state: SchedulerState) -> Iterator[str]:
    """No worker's runs have more than there is; what is queued for a demand can be met, and is."""
    for worker in state.workers.values():
        for name in worker.available:
            claimed = sum(part.get(name, 0.0) for part in worker.claims.values())
            left = worker.resources.get(name, 0.0) - claimed
            if abs(left - worker.available[name]) > TOLERANCE:
                yield f"{worker} has {left} of {name} left, and counts {worker.available[name]}"
    for task in state.tasks.values():
        if task.state == QUEUED and task.options.resources:
            demand = state.demands.get(demand_key(task))
            if demand is None or not _able(state, demand):
                yield f"{task!r} is queued for what no worker has"
    yield from _heads_move(state)


HANDLERS = Handlers(
    from_client={SetResources: on_set_resources},
    from_worker={ResourcesChanged: on_resources_changed},
    invariant=amounts_add_up,
)
