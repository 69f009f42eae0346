"""What must be true between the machines; each one that is broken is a sentence.

What must be true inside one machine is in that machine's own `invariants`; here is what only
somebody who sees all of them can know.  A function's name is the invariant's name.  Four times to
ask: after each step (cheap, `ALWAYS`), after each step of a run that looks at everything (`FULL`),
once faults have stopped (`ENDED`), and once every future was released and every client has left
(`GONE`).
"""

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from shoal.client.machine import CANCELLED, ERROR, FINISHED, Record
from shoal.scheduler.machine.invariants import check as check_scheduler
from shoal.scheduler.model.entities import ERRED, MEMORY, NO_RUN, Worker
from shoal.sim.client_side import ClientActor
from shoal.sim.cluster import Cluster
from shoal.sim.shuffling import BARRIER
from shoal.sim.worker_side import WorkerActor

Invariant: TypeAlias = Callable[[Cluster], Iterator[str]]

# --- always ----------------------------------------------------------------------------------


def what_is_needed_is_known(cluster: Cluster) -> Iterator[str]:
    """The scheduler knows the keys that are wanted, what those depend on, and nothing else.

    But for what it is about to forget: with so many at once it takes some steps.
    """
    state = cluster.scheduler.machine.state
    known, tasks = cluster.oracle.known, state.tasks
    if len(known) == len(tasks):
        return
    for key in known:
        if key not in tasks:
            yield f"the scheduler has forgotten {key!r}, which is needed"
    for key in tasks:
        if key not in known and not (state.of_no_use or state.letting_go):
            yield f"the scheduler keeps {key!r}, which nobody needs"


def the_store_has_what_is_held(worker: WorkerActor) -> Iterator[str]:
    """Values are in a worker's store exactly if its machine says so."""
    held = worker.machine.state.held
    if worker.store.keys() | worker.disk.files.keys() != held.keys():
        yield f"{worker.name} stores {list(worker.store)} and holds {list(held)}"
    absent = worker.machine.state.absent
    if worker.disk.files.keys() - worker.store.keys() != absent.keys():
        yield f"{worker.name} has {list(worker.disk.files)} on disk, and believes {list(absent)}"


# --- in full ---------------------------------------------------------------------------------


def the_scheduler_is_sound(cluster: Cluster) -> Iterator[str]:
    """The scheduler's own invariants hold."""
    yield from check_scheduler(cluster.scheduler.machine.state)


def workers_are_sound(cluster: Cluster) -> Iterator[str]:
    """The workers' own invariants hold."""
    for worker in cluster.live_workers():
        for sentence in worker.machine.broken_invariants():
            yield f"{worker.name}: {sentence}"


def stored_values_are_right(cluster: Cluster) -> Iterator[str]:
    """Every value in any worker's memory is the one that belongs to its number."""
    for worker in cluster.live_workers():
        if worker.machine.state.epoch != cluster.epoch:
            continue
        if cluster.definite is not None:
            for key, replica in worker.machine.state.orphans.items():
                value = worker.store.get(replica.task) or worker.disk.files[replica.task]
                if value.fingerprint != cluster.definite.fingerprint(key):
                    yield f"{worker.name} holds another value of {key!r}, from before"
        for task, value in [*worker.store.items(), *worker.disk.files.items()]:
            instance = cluster.oracle.by_task.get(task)
            if instance is None or instance.spec.role == BARRIER:
                continue  # the value of a barrier is the number of its epoch
            if value.fingerprint != instance.fingerprint:
                yield f"{worker.name} holds another value of {instance.key!r} under {task}"


def inline_values_are_right(cluster: Cluster) -> Iterator[str]:
    """A value that the scheduler keeps itself is the one that belongs to its task."""
    for key, task in cluster.scheduler.machine.state.tasks.items():
        instance = cluster.oracle.known.get(key)
        if task.value is not None and instance is not None and instance.spec.role != BARRIER:
            fingerprint = int.from_bytes(task.value[:8], "big")
            if fingerprint != instance.fingerprint:
                yield f"the scheduler keeps another value of {key!r}"


def blame_has_deaths(cluster: Cluster) -> Iterator[str]:
    """A task is blamed at most once for each worker that was lost while it had it."""
    for key, task in cluster.scheduler.machine.state.tasks.items():
        instance = cluster.oracle.known.get(key)
        if instance is not None and task.blame > instance.ndeaths:
            yield f"{key!r} is blamed {task.blame} times for {instance.ndeaths} deaths"


# --- once faults have stopped ----------------------------------------------------------------


def wanted_work_ends(cluster: Cluster) -> Iterator[str]:
    """Whatever is wanted is in memory or has failed."""
    tasks = cluster.scheduler.machine.state.tasks
    for key, instance in cluster.oracle.known.items():
        task = tasks.get(key)
        if instance.wants and (task is None or task.state not in (MEMORY, ERRED)):
            state = "unknown" if task is None else f"{task.state}, waiting for {task.nwaiting}"
            yield f"{key!r} is wanted, and is {state}"


def clients_hear_of_it(cluster: Cluster) -> Iterator[str]:
    """No future waits for anything more."""
    for client in cluster.live_clients():
        for record in client.unresolved:
            yield f"{client.name} still waits for {record.key!r}, which is {record.status}"


def nobody_is_suspect(cluster: Cluster) -> Iterator[str]:
    """Who is there, and can be heard and hear, is trusted again."""
    workers = cluster.scheduler.machine.state.workers
    for worker in cluster.live_workers():
        known = workers.get(worker.address)
        if known is not None and (known.silence is not None or known.hearing.is_lost):
            yield f"{worker.name} is there, and is suspect"


def calls_are_answered(cluster: Cluster) -> Iterator[str]:
    """No client waits for the answer to a call."""
    for client in cluster.live_clients():
        for request, call in client.unanswered.items():
            yield f"{client.name} waits for the answer to {call.act!r}, its call {request}"


def given_values_are_there(cluster: Cluster) -> Iterator[str]:
    """What was put into a queue is in it, or was had by somebody."""
    there: dict[str, None] = {}
    for queue in cluster.scheduler.machine.state.queues.values():
        for items in (queue.items, *queue.taken.values()):
            there.update(dict.fromkeys(item.value[0].decode() for item in items))
    for value in cluster.trades.given:
        if value not in there and value not in cluster.trades.taken:
            yield f"{value!r} was put into a queue, is not there, and nobody has had it"


def goals_are_kept(cluster: Cluster) -> Iterator[str]:
    """There are as many copies as were asked for, but with those who could not get one."""
    state = cluster.scheduler.machine.state
    for task, goal in state.copies.goals.items():
        if task.state != MEMORY:
            continue
        named = state.workers_named(goal.workers) if goal.workers else state.workers.values()
        refused = state.copies.refusals.get(task, {})
        able = [worker for worker in named if worker.takes_work and worker not in refused]
        nthere = sum(task in worker.has_what for worker in named if not worker.is_leaving)
        nasked = len(able) if goal.ncopies == 0 else min(goal.ncopies, len(able))
        if nthere < nasked:
            yield f"{task!r} shall have {nasked} copies, and has {nthere}"


def everybody_is_back(cluster: Cluster) -> Iterator[str]:
    """The scheduler knows each worker and each client that is there."""
    state = cluster.scheduler.machine.state
    for worker in cluster.live_workers():
        if worker.address not in state.workers:
            yield f"{worker.name} is there, and the scheduler does not know it"
    nclients = len(cluster.live_clients())
    if len(state.clients) != nclients:
        yield f"{nclients} clients are there, and the scheduler knows {len(state.clients)}"


def wants_have_futures(cluster: Cluster) -> Iterator[str]:
    """The scheduler keeps nothing for a client that the client has let go of."""
    for client in cluster.live_clients():
        for number, instance in cluster.oracle.by_number.get(client.name, {}).items():
            if number not in client.machine.by_number:
                yield f"{instance.key!r} is kept for {client.name} as {number}, and it has let go"


def replicas_are_booked(cluster: Cluster) -> Iterator[str]:
    """The scheduler knows of every value that a worker holds, and of no other."""
    workers = cluster.scheduler.machine.state.workers
    orphans = cluster.scheduler.machine.state.orphans.by_key
    for worker in cluster.live_workers():
        known = workers.get(worker.address)
        if known is None:
            continue
        booked = {task.id: task for task in known.has_what}
        for number, replica in worker.machine.state.held.items():
            if number not in booked and replica.key not in orphans:
                yield f"{worker.name} holds {replica.key!r} as {number}; the scheduler can't know"
        for number, task in booked.items():
            if number not in worker.store and number not in worker.disk.files:
                yield f"{worker.name} lacks {task.key!r}, and the scheduler believes in it"


def nobody_waits_for_room(cluster: Cluster) -> Iterator[str]:
    """All that is to come into workers' memory has come, or is on its way."""
    for worker in cluster.live_workers():
        room = worker.machine.state.room
        if room is not None and room.lacking_bytes:
            yield f"{worker.name} lacks {room.lacking_bytes} bytes for {room.for_run or 'a copy'}"


def runs_are_booked(cluster: Cluster) -> Iterator[str]:
    """A worker has no run that the scheduler does not count on, and the other way round."""
    workers = cluster.scheduler.machine.state.workers
    for worker in cluster.live_workers():
        known = workers.get(worker.address)
        if known is None:
            continue
        sent = {task.id: task for task in known.processing if task.run != NO_RUN}
        for number, run in worker.machine.state.runs.items():
            if number not in sent:
                yield f"{worker.name} has {run!r}, and nobody counts on it"
        for number, task in sent.items():
            if number not in worker.machine.state.runs:
                yield f"{worker.name} has no run of {task.key!r}, and the scheduler counts on it"


def views_agree(cluster: Cluster) -> Iterator[str]:
    """A client's future says what its task's state is."""
    for client, record in _settled(cluster):
        task = cluster.scheduler.machine.state.tasks.get(record.key)
        if record.number not in cluster.oracle.by_number[client.name] or task is None:
            yield f"{client.name} has {record!r}, and is not known to want it"
        elif task.state != {ERROR: ERRED, FINISHED: MEMORY}.get(record.status, ""):
            yield f"{client.name} has {record!r}, which is {task.state}"


def failures_have_causes(cluster: Cluster) -> Iterator[str]:
    """A task fails only for a cause that is known."""
    for client, record in _settled(cluster):
        instance = cluster.oracle.by_number[client.name].get(record.number)
        if record.status != ERROR or instance is None:
            continue
        if not cluster.oracle.may_fail(instance, cluster.settings):
            yield f"{record.key!r} failed, and nothing did that it needs"


def failures_are_told(cluster: Cluster) -> Iterator[str]:
    """What can't come out well doesn't."""
    for client, record in _settled(cluster):
        instance = cluster.oracle.by_number[client.name].get(record.number)
        if record.status != FINISHED or instance is None:
            continue
        if cluster.oracle.must_fail(instance):
            yield f"{record.key!r} has a result, though something it needs always raises"


def results_can_be_had(cluster: Cluster) -> Iterator[str]:
    """A large result is at a worker that the client was told, or that the scheduler knows."""
    for client, record in _settled(cluster):
        task = cluster.scheduler.machine.state.tasks.get(record.key)
        if record.status != FINISHED or record.value is not None or task is None:
            continue
        addresses = [*record.holders, *(worker.address for worker in task.who_has or ())]
        holders = [worker for worker in map(cluster.worker_at, addresses) if worker]
        if not any(worker.serves(record.task, cluster.epoch) for worker in holders):
            yield f"{client.name} is to find {record.key!r} at {addresses}, and can't"


def talk_is_bounded(cluster: Cluster) -> Iterator[str]:
    """So many messages for so many tasks, acts and faults: more is somebody going in circles."""
    plan = cluster.plan
    nfaults = len(plan.faults)
    nmessages_max = 200 + (20 + 10 * nfaults) * (plan.ntasks + len(plan.acts) + nfaults)
    nbeats = cluster.world.now / cluster.settings.heartbeat_seconds  # some runs take their time
    nmessages_max += int(nbeats * len(plan.workers))
    if cluster.nmessages > nmessages_max:
        yield f"{cluster.nmessages} messages were said, for {plan.ntasks} tasks"


def _settled(cluster: Cluster) -> Iterator[tuple[ClientActor, Record]]:
    """Futures that the scheduler still has to do with."""
    for client in cluster.live_clients():
        for record in client.held.values():
            if record.status != CANCELLED:
                yield client, record


# --- once everything was released, and everybody has left ------------------------------------


def the_scheduler_lets_go(cluster: Cluster) -> Iterator[str]:
    """No task, and nothing about tasks, is left on the scheduler."""
    state = cluster.scheduler.machine.state
    for key in cluster.oracle.known:
        yield f"{key!r} is still wanted"
    for what, left in (
        ("tasks", state.tasks),
        ("tasks by number", state.task_by_id),
        ("unrunnable tasks", state.unrunnable),
        ("clients", state.clients),
        ("names that keep results", state.keepers),
        ("clients that watch", state.watching),
        ("codes", state.codes),
        ("locks", state.locks),
        ("joint locks", state.joints.claims),
        ("lines for joint locks", state.joints.lines),
        ("incomplete tasks", dict(enumerate(state.incomplete))),
        ("demands", state.demands),
        ("runs that are counted", state.limits.nruns),
        ("clients that take turns", state.shares.flows),
        ("urgencies that are shared", state.shares.levels),
        ("tasks to tell of", dict(enumerate(state.untold))),
        ("clients that were told", state.told_unmet),
        ("workers to avoid", state.avoided),
        ("results that some could not get", state.witnesses),
        ("what became of earlier runs", state.reruns),
        ("values that suspects have", state.withheld),
        ("shuffles", dict(enumerate([*state.barriers, *state.shuffles.values()]))),
        ("copies on their way", state.copies.on_way),
        ("goals for copies", state.copies.goals),
        ("retirements", state.copies.retiring),
        ("results with several copies", state.reduction.doubled),
        ("calls for copies", dict(enumerate(state.copies.calls))),
        ("calls for workers", dict(enumerate(state.restarts))),
        ("wishes for logs", state.forwarding),
        ("collections of ended tasks", state.collections),
        ("questions after actors", state.explanations),
        ("tasks to be placed later", dict(enumerate(state.unplaced))),
        ("large results on their way", state.ways.moving),
        ("runs to be given back", state.recalled),
        ("tasks that wait for memory", state.footprints.held),
        ("tasks that filled workers", state.footprints.overfilled),
        ("workers to be offered something", state.footprints.unasked),
        ("clusters that adapt", state.adapting),
        ("orphans", dict(enumerate(state.orphans.left()))),
    ):
        if left:
            yield f"the scheduler keeps {what}: {list(left.values())!r}"
    for worker in state.workers.values():
        yield from _the_worker_is_free(worker)


def _the_worker_is_free(worker: Worker) -> Iterator[str]:
    """Nothing about tasks is left on the scheduler's side of a worker."""
    for what, kept in (
        ("processing", worker.processing),
        ("has_what", worker.has_what),
        ("leftovers", worker.leftovers),
        ("claims", worker.claims),
        ("weights", worker.weights),
        ("seceded", worker.seceded),
        ("actors", worker.actors),
        ("forfeited", worker.forfeited),
        ("told", worker.told),
        ("nbytes", worker.nbytes),
        ("nsent", worker.nsent),
        ("occupancy_us", worker.occupancy_us),
    ):
        if kept:
            yield f"the scheduler keeps {what} of {worker}: {kept!r}"


def workers_let_go(cluster: Cluster) -> Iterator[str]:
    """No value, run, fetch or code is left on a worker."""
    for worker in cluster.live_workers():
        state = worker.machine.state
        for what, left in (
            ("values", worker.store),
            ("files", worker.disk.files),
            ("replicas", state.held),
            ("runs", state.runs),
            ("older runs", state.older_runs),
            ("orphans", state.orphans),
            ("wants", state.wants),
            ("peers", state.peers),
            ("fetches", state.fetches),
            ("codes", worker.codes),
        ):
            if left:
                yield f"{worker.name} keeps {what}: {left!r}"


def no_room_is_kept(cluster: Cluster) -> Iterator[str]:
    """Where nothing runs, nothing is reserved, and nothing has grown."""
    for worker in cluster.live_workers():
        room = worker.machine.state.room
        if room is not None and (room.reserved_bytes or room.grown_bytes or room.lacking_bytes):
            sentence = f"{room.reserved_bytes} reserved, {room.grown_bytes} grown"
            yield f"{worker.name} has {sentence}, {room.lacking_bytes} lacking"


def clients_let_go(cluster: Cluster) -> Iterator[str]:
    """No record is left in a client that has released everything."""
    for client in cluster.live_clients():
        if client.machine.records or client.machine.by_number:
            yield f"{client.name} keeps {list(client.machine.by_number.values())!r}"


FULL: Final[tuple[Invariant, ...]] = (
    the_scheduler_is_sound,
    workers_are_sound,
    stored_values_are_right,
    inline_values_are_right,
    blame_has_deaths,
)
ENDED: Final[tuple[Invariant, ...]] = (
    wanted_work_ends,
    clients_hear_of_it,
    calls_are_answered,
    given_values_are_there,
    goals_are_kept,
    everybody_is_back,
    nobody_is_suspect,
    wants_have_futures,
    replicas_are_booked,
    runs_are_booked,
    nobody_waits_for_room,
)
"""Time alone may still bring these about."""
RESULTS: Final[tuple[Invariant, ...]] = (
    *FULL,
    views_agree,
    failures_have_causes,
    failures_are_told,
    results_can_be_had,
    talk_is_bounded,
)
"""True as soon as those in ENDED are."""
RELEASED: Final[tuple[Invariant, ...]] = (clients_let_go,)
GONE: Final[tuple[Invariant, ...]] = (the_scheduler_lets_go, workers_let_go, no_room_is_kept)


def broken(cluster: Cluster, invariants: tuple[Invariant, ...]) -> Iterator[tuple[str, str]]:
    """(name, sentence) for each of `invariants` that does not hold."""
    for invariant in invariants:
        for sentence in invariant(cluster):
            yield name_of(invariant), sentence


def name_of(invariant: Callable[..., object]) -> str:
    """An invariant's name in words."""
    return invariant.__name__.replace("_", " ")
