"""What workers say about their runs and about what they hold.

An answer counts only if its run is the one that the task has on that worker now.  Anything else is
stale: the task was released, moved or resubmitted while the answer travelled.
"""

from shoal.errors import InputsUnreachable
from shoal.ids import RunId, TaskId
from shoal.protocol.exceptions import to_failure
from shoal.protocol.framing import ProtocolError
from shoal.protocol.messages import (
    InputsUnavailable,
    ReplicasAdded,
    ReplicasGone,
    RunReturned,
    TaskFailed,
    TaskFinished,
    WorkerHeartbeat,
    WorkerLeaving,
)
from shoal.scheduler.machine.copying import refuse_gone
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.demands import drop_unmet, give_back
from shoal.scheduler.machine.distrust import distrust_holders, note_unreachable
from shoal.scheduler.machine.finishing import adopt_replica, lose_replica, to_memory
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.machine.on_memory import learn_failed, learn_run, lift
from shoal.scheduler.machine.permanent_check import notice_idle
from shoal.scheduler.machine.placing import place_recalled, unplace, update_load
from shoal.scheduler.machine.quarantine import note_failed, note_finished
from shoal.scheduler.machine.running_again import note_raised
from shoal.scheduler.machine.staying import stays_with
from shoal.scheduler.machine.stealing import THIEVES_PER_ARRIVAL, look_for_work_now
from shoal.scheduler.machine.suspecting import note_hearing
from shoal.scheduler.machine.telling import report
from shoal.scheduler.machine.waiting import fail, wait_again
from shoal.scheduler.model.entities import NO_RUN, Task, Worker
from shoal.scheduler.model.estimates import learn_duration
from shoal.scheduler.model.state import link_replica


def on_task_finished(core: Core, worker: Worker, message: TaskFinished) -> None:
    """Record the result and its replica, then move whoever waited for it."""
    gauged_bytes = lift(core, worker, message.run) if worker.weights else 0
    if worker.claims:
        give_back(core, worker, message.run)
    task = task_of_run(core, worker, message.task, message.run)
    if task is None:
        if not (worker.forfeited and _take_forfeited(core, worker, message)):
            _ignore_stale_result(core, worker, message.task)
        return
    prefix = task.prefix
    if worker.leftovers:
        worker.leftovers.pop(task.id, None)
    if worker.seceded and task in worker.seceded:  # how long it takes was learned then
        prefix.nfinished += 1
    else:
        learn_duration(prefix, message.seconds)
    unplace(core, task, recall=False)
    core.state.nfinished += 1
    if core.state.failing:
        note_finished(core, worker)
    nbytes = task.nbytes = message.nbytes
    value = task.value = message.value
    prefix.gives_small = value is not None
    task.kind = message.kind
    task.nfetch_failures = 0
    if nbytes > prefix.notable_bytes:
        learn_run(core, task, gauged_bytes)
    link_replica(task, worker)
    if task.options.actor:
        worker.actors[task] = None
    to_memory(core, task)


def on_task_failed(core: Core, worker: Worker, message: TaskFailed) -> None:
    """Run it again where its inputs are, if they can't be moved, or elsewhere if retries are left
    and there is anybody else; else it, and what waits for it, has failed."""
    worker.forfeited.pop(message.run, None)
    if worker.claims or worker.weights:
        _take_back(core, worker, message.run)
    task = task_of_run(core, worker, message.task, message.run)
    if task is None:
        return
    unplace(core, task, recall=False)
    if not message.immovable:
        note_failed(core, worker, task.prefix, message.failure.text)
    if not task.prefix.ngauged:
        learn_failed(core, task)
    if message.immovable and stays_with(core, task, worker, message.immovable):
        wait_again(core, task)
    elif task.retries > 0:
        task.retries -= 1
        core.state.avoided.setdefault(task, {})[worker] = None  # it may be the worker's fault
        note_raised(core, task, worker, message.failure.text)
        wait_again(core, task)
    else:
        fail(core, task, message.failure)


def on_run_returned(core: Core, worker: Worker, message: RunReturned) -> None:
    """A recalled run never began: place the task anew."""
    worker.forfeited.pop(message.run, None)
    if worker.claims or worker.weights:
        _take_back(core, worker, message.run)
    task = task_of_run(core, worker, message.task, message.run)
    if task is not None:
        thief = core.state.recalled.get(task)
        unplace(core, task, recall=False)
        wait_again(core, task)
        if thief is not None:
            place_recalled(core, task, thief)


def on_inputs_unavailable(core: Core, worker: Worker, message: InputsUnavailable) -> None:
    """Holders that lack an input have lost it; those out of reach are avoided for a while.

    An input that stays out of reach is computed again, and in the end the task fails: a partition
    between two workers must not keep it for ever.
    """
    worker.forfeited.pop(message.run, None)
    if worker.claims or worker.weights:
        _take_back(core, worker, message.run)
    unreachable = note_unreachable(core, worker, message.unreachable)
    task = task_of_run(core, worker, message.task, message.run)
    if task is None:
        return
    unplace(core, task, recall=False)
    task.nfetch_failures += bool(message.missing)  # else only an epoch of shuffle was over
    missing = [core.state.task_by_id.get(number) for number in message.missing]
    attempts_max = core.settings.fetch_attempts_max
    if task.nfetch_failures >= attempts_max:
        keys = [dependency.key for dependency in missing if dependency is not None]
        error = InputsUnreachable(task.key, keys, worker.address, attempts_max)
        fail(core, task, to_failure(error, task.key, worker.address))
    else:
        wait_again(core, task)
    # What a failed task was told is true for the others, too.
    lacking = [core.state.workers.get(address) for address in message.lacking]
    there = [dependency for dependency in missing if dependency is not None]
    distrust_holders(core, task, worker, there, unreachable, lacking)


def on_replicas_added(core: Core, worker: Worker, message: ReplicasAdded) -> None:
    """The worker holds copies: known results, scattered values, or what nobody needs any more."""
    if len(message.tasks) != len(message.nbytes):
        raise ProtocolError("ReplicasAdded has columns of different lengths")
    for number, nbytes in zip(message.tasks, message.nbytes, strict=True):
        task = core.state.task_by_id.get(number)
        if task is None:
            core.free(worker, number)
        else:
            ways = core.state.ways
            was_crowded = bool(ways.moving) and ways.nsendings_left(task) <= 0
            adopt_replica(core, task, worker, nbytes)
            if ways.moving and ways.arrived(task, worker) and was_crowded:
                nthieves = min(THIEVES_PER_ARRIVAL, max(0, ways.nsendings_left(task)))
                look_for_work_now(core, nthieves)
    received_bytes = sum(message.nbytes)
    worker.received_bytes += received_bytes
    core.state.received_bytes += received_bytes


def on_replicas_gone(core: Core, worker: Worker, message: ReplicasGone) -> None:
    """The worker lost copies that it was not told to free."""
    for number in message.tasks:
        task = core.state.task_by_id.get(number)
        if task is not None and task in worker.has_what:
            lose_replica(core, task, worker)
    refuse_gone(core, worker, message)


def on_worker_heartbeat(core: Core, worker: Worker, message: WorkerHeartbeat) -> None:
    """A sign of life; that it was heard is recorded for every message alike.

    A task that waits for other tasks leaves its thread to a substitute, so one more may be sent.
    """
    if message.received_bytes >= 0:
        note_hearing(core, worker, message.received_bytes, message.heard)
    worker.memory_bytes = message.memory_bytes
    worker.cpu_percent = message.cpu_percent
    worker.managed_bytes = message.managed_bytes
    worker.spilled_bytes = message.spilled_bytes
    worker.spilled_disk_bytes = message.spilled_disk_bytes
    worker.unmanaged_old_bytes = message.unmanaged_old_bytes
    rest_bytes = max(0, message.memory_bytes - message.managed_bytes)
    if rest_bytes < worker.rest_bytes or not worker.weights:
        worker.rest_bytes = rest_bytes  # what runs have taken is in it, so it is no more than that
    worker.container = message.container_bytes, message.container_limit_bytes
    if message.runs or worker.executing:
        since = (core.now - seconds for seconds in message.run_seconds)
        worker.executing = dict(zip(message.runs, since, strict=False))
    if message.nwaiting != worker.nwaiting_heard:
        worker.nwaiting_heard = message.nwaiting
        worker.nwaiting = message.nwaiting + sum(worker.seceded.values())
        core.refill[worker] = None
    notice_idle(core, worker)


def on_worker_leaving(core: Core, worker: Worker, message: WorkerLeaving) -> None:
    """Give it nothing more; what it has is run elsewhere once it has gone."""
    worker.is_leaving = True
    worker.says_goodbye = True
    update_load(core, worker)
    if core.state.demands:
        drop_unmet(core)
    if core.attended is not None:
        core.attended.update(worker.has_what)
    report(core, (worker.address,), "closing-worker", reason=message.reason)


def _take_forfeited(core: Core, worker: Worker, message: TaskFinished) -> bool:
    """A run that was taken from a silent worker has ended well there, before any other: whether
    its result counts.  A cut does not, as others may have begun to read another one."""
    task = worker.forfeited.pop(message.run, None)
    if task is None or core.state.task_by_id.get(message.task) is not task:
        return False
    barriers = core.state.barriers
    if barriers and any(
        each in barriers for each in (*task.dependencies, *(task.dependents or ()))
    ):
        return False
    adopt_replica(core, task, worker, message.nbytes, message.value, message.kind)
    return True


def _take_back(core: Core, worker: Worker, run: RunId) -> None:
    """A run has ended that gave no result: what it had is there for others."""
    if worker.claims:
        give_back(core, worker, run)
    if worker.weights:
        lift(core, worker, run)


def task_of_run(core: Core, worker: Worker, number: TaskId, run: RunId) -> Task | None:
    """The task whose present run this is; None if the run is stale."""
    task = core.state.task_by_id.get(number)
    if task is None or run == NO_RUN or task.run != run or task.worker is not worker:
        return None
    return task


def _ignore_stale_result(core: Core, worker: Worker, number: TaskId) -> None:
    """The worker keeps the result of a stale run: have it dropped, unless that hits a newer one."""
    task = core.state.task_by_id.get(number)
    if task is None:
        core.free(worker, number)
    elif task.worker is worker:
        worker.leftovers[number] = None  # overwritten by the new run's, or dropped when that ends
    elif task not in worker.has_what:
        core.free(worker, number)


HANDLERS = Handlers(
    from_worker={
        TaskFinished: on_task_finished,
        TaskFailed: on_task_failed,
        RunReturned: on_run_returned,
        InputsUnavailable: on_inputs_unavailable,
        ReplicasAdded: on_replicas_added,
        ReplicasGone: on_replicas_gone,
        WorkerHeartbeat: on_worker_heartbeat,
        WorkerLeaving: on_worker_leaving,
    },
)
