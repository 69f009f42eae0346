"""What is true of the scheduler's state after every step; each broken one is a sentence.

Asked by the simulator, the scenes, and a service with `validate=True`.  Cost: O(tasks + edges +
replicas + workers) for `check`.
"""

from collections import Counter
from collections.abc import Iterator

from shoal.scheduler.machine.barriers import number_of_holds
from shoal.scheduler.machine.overfilling import FORGIVEN_MAX
from shoal.scheduler.machine.table import INVARIANTS
from shoal.scheduler.model.demands import is_demanding
from shoal.scheduler.model.entities import (
    ERRED,
    FORGOTTEN,
    MEMORY,
    NEEDS_INPUTS,
    NO_RUN,
    NO_WORKER,
    PROCESSING,
    QUEUED,
    RELEASED,
    WAITING,
    Task,
    Worker,
)
from shoal.scheduler.model.footprints import line_of
from shoal.scheduler.model.state import SchedulerState


def check(state: SchedulerState) -> Iterator[str]:
    """A sentence for each invariant that is broken, and for whom."""
    for task in state.tasks.values():
        yield from state_fits_facts(state, task)
        yield from relations_mirror(state, task)
        yield from counters_are_exact(state, task)
    for worker in state.workers.values():
        yield from worker_adds_up(state, worker)
        yield from indexes_place(state, worker)
    yield from indexes_agree(state)
    yield from wants_mirror(state)
    yield from scattered_values_are_awaited(state)
    for invariant in INVARIANTS:
        yield from invariant(state)
    yield from ready_work_moves(state)


def state_fits_facts(state: SchedulerState, task: Task) -> Iterator[str]:
    """A task's state says what is so: memory means held, processing means placed, and so on."""
    held = task.who_has is not None or task.value is not None
    if (task.state == MEMORY) != held:
        yield f"{task!r} is {task.state} but {'is' if held else 'is not'} held"
    if (task.state == PROCESSING) != (task.worker is not None):
        yield f"{task!r} is {task.state} but placed on {task.worker}"
    if task.run != NO_RUN and task.worker is None:
        yield f"{task!r} has run {task.run} on no worker"
    if (task.state == NO_WORKER) != (task in state.unrunnable):
        yield f"{task!r} and the list of unrunnable tasks disagree"
    if (task.state == ERRED) != (task.failure is not None):
        yield f"{task!r} is {task.state} with failure {task.failure}"
    if task.state == FORGOTTEN:
        yield f"{task!r} is forgotten but indexed"
    if task.state == RELEASED and task.is_needed and task.key not in state.orphans.by_key:
        yield f"{task!r} is needed but nothing is done about it"
    is_due = task in state.of_no_use
    if task.state == RELEASED and task.dependents is None and not task.is_needed and not is_due:
        yield f"{task!r} is of no use but not forgotten"
    is_kept = task.state in NEEDS_INPUTS or (task.state == MEMORY and not is_due)
    if is_kept and not task.is_needed:
        yield f"{task!r} is not needed by anybody"
    is_ready = task.state == WAITING and task.code is not None and task.nwaiting == 0
    if is_ready and task not in state.unplaced:
        yield f"{task!r} waits for nothing"
    allowed = state.settings.allowed_failures
    if task.blame > allowed + min(FORGIVEN_MAX, allowed) and task.state not in (ERRED, RELEASED):
        yield f"{task!r} has blame {task.blame}"
    if task.state in (QUEUED, NO_WORKER) or (task.state == PROCESSING and task.run == NO_RUN):
        for dependency in task.dependencies:
            if dependency.state != MEMORY:
                yield f"{task!r} is ready though its input {dependency!r} is not"


def relations_mirror(state: SchedulerState, task: Task) -> Iterator[str]:
    """Both ends of every relation agree, and no end refers to what has gone."""
    if state.task_by_id.get(task.id) is not task:
        yield f"{task!r} is not the task with number {task.id}"
    for dependency in task.dependencies:
        if state.tasks.get(dependency.key) is not dependency:
            yield f"{task!r} depends on {dependency!r}, which has gone"
        if dependency.dependents is None or task not in dependency.dependents:
            yield f"{dependency!r} does not know its dependent {task!r}"
    for dependent in task.dependents or ():
        if task not in dependent.dependencies:
            yield f"{dependent!r} does not know its dependency {task!r}"
    for worker in task.who_has or ():
        if state.workers.get(worker.address) is not worker:
            yield f"{task!r} is held by {worker}, which has gone"
        if task not in worker.has_what:
            yield f"{worker} does not know that it holds {task!r}"
    worker_of_run = task.worker
    if worker_of_run is not None:
        if state.workers.get(worker_of_run.address) is not worker_of_run:
            yield f"{task!r} is placed on {worker_of_run}, which has gone"
        if task not in worker_of_run.processing:
            yield f"{worker_of_run} does not know that {task!r} is placed there"
    if task.code is not None and state.codes.get(task.code.id) is not task.code:
        yield f"{task!r} has {task.code!r}, which has gone"


def counters_are_exact(state: SchedulerState, task: Task) -> Iterator[str]:
    """Counts equal what they count."""
    nwaiters = sum(dependent.state in NEEDS_INPUTS for dependent in task.dependents or ())
    if task.nwaiters != nwaiters:
        yield f"{task!r} counts {task.nwaiters} waiters, there are {nwaiters}"
    if task.state == WAITING:
        nwaiting = sum(dependency.state != MEMORY for dependency in task.dependencies)
        if task.nwaiting != nwaiting:
            yield f"{task!r} waits for {task.nwaiting} inputs, {nwaiting} are missing"
        for dependency in task.dependencies:
            if dependency.state == RELEASED and dependency.key in state.orphans.by_key:
                continue
            if dependency.state in (RELEASED, ERRED, FORGOTTEN):
                yield f"{task!r} waits for {dependency!r}, about which nothing is done"


def worker_adds_up(state: SchedulerState, worker: Worker) -> Iterator[str]:
    """A worker's sums are the sums of its parts, in whole microseconds and bytes."""
    sent = [task for task in worker.processing if task.run != NO_RUN]
    sent_us = sum(worker.processing[task] for task in sent)
    backlog_us = sum(worker.processing.values()) - sent_us
    nbytes = sum(task.nbytes for task in worker.has_what)
    for name, kept, real in (
        ("runs out", worker.nsent, len(sent)),
        ("work out", worker.sent_us, sent_us),
        ("work in the backlog", worker.backlog_us, backlog_us),
        ("bytes held", worker.nbytes, nbytes),
    ):
        if kept != real:
            yield f"{worker} counts {kept} {name}, there are {real}"
    for task in worker.processing:
        if task.worker is not worker or task.state != PROCESSING:
            yield f"{worker} has {task!r}, which is placed on {task.worker}"
    for task in worker.has_what:
        if task.who_has is None or task.who_has.count(worker) != 1:
            yield f"{worker} holds {task!r}, which does not know it"
    entries = {id(entry[2]) for entry in worker.backlog}
    for task in worker.processing:
        if task.run == NO_RUN and id(task) not in entries:
            yield f"{task!r} is in the backlog of {worker}, but has no entry in its heap"
    for code in worker.told:
        if worker not in code.told or state.codes.get(code.id) is not code:
            yield f"{worker} was told {code!r}, which does not know it or has gone"


def indexes_place(state: SchedulerState, worker: Worker) -> Iterator[str]:
    """Every worker is in the indexes where it belongs, under its present load."""
    load = worker.occupancy_us // worker.nthreads
    for name, index, belongs, value in (
        ("loads", state.loads, worker.takes_work, load),
        ("backlogged", state.backlogged, len(worker.processing) > worker.nsent, load),
    ):
        if (worker in index) != belongs:
            yield f"{worker} {'is not' if belongs else 'is'} in the index {name}"
        elif belongs and index.bucket_of[worker] != value.bit_length():
            yield f"{worker} is in the wrong bucket of {name}"
    has_unbegun = worker.nsent > worker.nbegun_max and worker.newest_run > worker.last_recalled
    if (worker in state.piped) != has_unbegun:
        yield f"{worker} and the list of workers with a pipe disagree"


def indexes_agree(state: SchedulerState) -> Iterator[str]:
    """Two indexes of one thing have the same things, and counts by state are exact."""
    for task in state.recalled:
        if task.run == NO_RUN:
            yield f"{task!r} is to be given back, and is not out"
    nthreads = sum(worker.nthreads for worker in state.workers.values())
    if state.nthreads != nthreads:
        yield f"{state.nthreads} threads are counted, there are {nthreads}"
    if len(state.tasks) != len(state.task_by_id):
        yield f"{len(state.tasks)} tasks have keys, {len(state.task_by_id)} have numbers"
    if len(state.workers) != len(state.worker_by_id):
        yield f"{len(state.workers)} workers have addresses, {len(state.worker_by_id)} numbers"
    real = Counter(task.state for task in state.tasks.values())
    kept = Counter({name: n for name, n in state.ntasks.items() if n})
    if kept != real:
        yield f"counted by state {dict(kept)}, there are {dict(real)}"
    yield from prefixes_count(state)
    users = Counter(task.code.id for task in state.tasks.values() if task.code is not None)
    for client in state.clients.values():
        users.update(code.id for code in client.codes.values())
    for code in state.codes.values():
        if code.nusers != users[code.id]:
            yield f"{code!r} has {users[code.id]} users in truth"


def prefixes_count(state: SchedulerState) -> Iterator[str]:
    """The counts of each prefix are exact, and those that rest are known and not too many."""
    real: dict[str, Counter[str]] = {}
    for task in state.tasks.values():
        if state.prefixes.get(task.prefix.name) is not task.prefix:
            yield f"{task!r} is of a prefix that is not known"
        real.setdefault(task.prefix.name, Counter())[task.state] += 1
    for name, prefix in state.prefixes.items():
        kept = Counter({state: n for state, n in prefix.ntasks.items() if n})
        there = real.get(name, Counter())
        if kept != there or prefix.nlive != there.total():
            yield f"{prefix!r} counts {prefix.nlive}, {dict(kept)}; there are {dict(there)}"
        if (prefix in state.resting) == bool(there):
            yield f"{prefix!r} {'rests' if there else 'does not rest'}, with {dict(there)}"
    if len(state.resting) > min(len(state.prefixes), state.settings.resting_prefixes_max):
        yield f"{len(state.resting)} prefixes rest, of {len(state.prefixes)}"


def wants_mirror(state: SchedulerState) -> Iterator[str]:
    """Clients' wants and holds agree with the tasks'."""
    nwants = nholds = 0
    for client in (*state.clients.values(), *state.keepers.values()):
        nwants += len(client.tasks)
        nholds += len(client.held)
        for number, task in client.tasks.items():
            if (client, number) not in task.wants or state.tasks.get(task.key) is not task:
                yield f"{client} wants {task!r} as {number}, which does not know it"
        for task in client.held.values():
            if state.tasks.get(task.key) is not task:
                yield f"{client} holds {task!r}, which has gone"
    if nwants != sum(len(task.wants) for task in state.tasks.values()):
        yield "tasks are wanted by clients that do not know it"
    nholds += number_of_holds(state.barriers)
    if nholds != sum(task.nholds for task in state.tasks.values()):
        yield "tasks are held by clients that do not know it"


def scattered_values_are_awaited(state: SchedulerState) -> Iterator[str]:
    """What shall be put somewhere is waiting for it, and those who shall get it are there."""
    for task, brought in state.scattering.items():
        if task.state != WAITING or task.code is not None:
            yield f"{task!r} is awaited as a scattered value, but is {task.state}"
        if not brought:
            yield f"{task!r} is awaited as a scattered value, but nobody brings it"
        for client, takers in brought.items():
            if state.clients.get(client.id) is not client:
                yield f"{task!r} is to be brought by {client}, which has gone"
            for worker in takers:
                if state.workers.get(worker.address) is not worker:
                    yield f"{task!r} shall be put on {worker}, which has gone"
    awaited = {**state.scattering, **state.withheld}
    for task in state.tasks.values():
        if task.state == WAITING and task.code is None and task not in awaited:
            yield f"{task!r} waits for a value that nobody brings"


HEAVY_MAX = 8
"""Tasks of a backlog without memory for them that keep what is behind them, in one step."""


def ready_work_moves(state: SchedulerState) -> Iterator[str]:
    """Nothing is kept here while a worker that may take it has room."""
    suspects_wait = any(task.blame for task in state.tasks.values())
    if suspects_wait or (state.recovery is not None and state.recovery.holds_back):
        return  # one at the head of a queue waits for a worker of its own, and others behind it
    queued = [task for task in state.tasks.values() if task.state == QUEUED]
    heavies = state.footprints.queues
    waiting = [t for t in queued if not is_demanding(t.options) and line_of(t) not in heavies]
    if len(state.open) and waiting and not state.has_unsent:
        yield f"{len(queued)} tasks are queued while {state.open.lowest()} has room"
    for worker in state.workers.values():
        unsent = [task for task in worker.processing if task.run == NO_RUN]
        nheavy = sum(task.prefix.weighs for task in unsent) if worker.memory_limit else 0
        if worker in state.open and nheavy < min(len(unsent), HEAVY_MAX):
            yield f"{worker} has room and a backlog"
