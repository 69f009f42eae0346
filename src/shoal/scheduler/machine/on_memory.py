"""What runs take of their worker's memory: heard, learnt, and counted as long as they are out."""

from collections.abc import Iterator
from typing import Final

from shoal.ids import RunId
from shoal.protocol.framing import ProtocolError
from shoal.protocol.memory import RunsGauged
from shoal.scheduler.machine.admitting import (
    ask_holders,
    ask_postponed,
    hold_no_more,
    is_alone,
    look_again,
    look_at_known,
)
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.model.demands import is_demanding
from shoal.scheduler.model.entities import NO_RUN, QUEUED, Prefix, Task, Weight, Worker
from shoal.scheduler.model.estimates import footprint_bytes, learn_footprint
from shoal.scheduler.model.state import SchedulerState
from shoal.scheduler.policies.queuing import LateBinding

FAILED_MAX: Final = 8
"""Runs of an unknown kind that have failed, after which others are taken to need no more."""


def on_runs_gauged(core: Core, worker: Worker, message: RunsGauged) -> None:
    """The worker has grown by so much for each of these runs, which may go on."""
    if not len(message.tasks) == len(message.runs) == len(message.peak_bytes):
        raise ProtocolError("RunsGauged has columns of different lengths")
    for number, run, nbytes in zip(message.tasks, message.runs, message.peak_bytes, strict=True):
        weight = worker.weights.get(run)
        task = core.state.task_by_id.get(number)
        is_here = task is not None and task.worker is worker and task.run == run
        if weight is None and task is not None and is_here and worker.memory_limit:
            weight = worker.weights[run] = Weight(task, core.now)
        if weight is None or nbytes <= weight.gauged_bytes:
            continue
        weight.gauged_bytes = nbytes
        weight.changed_at = core.now
        prefix = weight.task.prefix
        if nbytes > prefix.peak_bytes:
            prefix.peak_bytes = nbytes
            reconsider(core, prefix)


def learn_run(core: Core, task: Task, gauged_bytes: int) -> None:
    """A run has ended well that tells how much such runs take: its prefix weighs, or its result
    is larger than any other of its kind."""
    prefix = task.prefix
    was_unknown = not prefix.ngauged
    learn_footprint(prefix, gauged_bytes, task.nbytes)
    core.state.footprints.note_result(task.nbytes)
    reconsider(core, prefix)
    if was_unknown:
        prefix.spread.clear()
        look_at_known(core)


def learn_failed(core: Core, task: Task) -> None:
    """A run has failed of a kind that nobody knows: the first few say nothing of those that will go
    well, but what always fails must not be kept to one run at a time."""
    prefix = task.prefix
    prefix.nfailed_unknown += 1
    if prefix.nfailed_unknown < FAILED_MAX:
        return
    prefix.nfailed_unknown = 0
    prefix.ngauged = 1  # as much as the most that any has grown by
    reconsider(core, prefix)
    prefix.spread.clear()
    look_at_known(core)


def lift(core: Core, worker: Worker, run: RunId) -> int:
    """A run has ended, and what it took is there for others; returns how much that was."""
    weight = worker.weights.pop(run, None)
    if weight is None:
        return 0
    core.refill[worker] = None
    spread = weight.task.prefix.spread
    if worker in spread:
        same = [w for w in worker.weights.values() if w.task.prefix is weight.task.prefix]
        if len(same) < 2:
            del spread[worker]
    return weight.gauged_bytes


def reconsider(core: Core, prefix: Prefix) -> None:
    """Does it matter from now on what runs of this prefix take?  Twice as much turns it on as off.

    Cost: O(runs that are out) where that changes, else O(1).
    """
    footprints = core.state.footprints
    weighty_bytes = footprints.weighty_bytes >> prefix.weighs
    weighs = prefix.is_hinted or not prefix.ngauged or footprint_bytes(prefix) >= weighty_bytes
    prefix.notable_bytes = -1 if weighs else prefix.output_bytes
    if weighs == prefix.weighs:
        return
    prefix.weighs = weighs
    if weighs:
        footprints.is_mixed = footprints.is_mixed or prefix.ntasks[QUEUED] > 0
        _weigh_what_runs(core, prefix)
        return
    for line in [line for line in footprints.queues if line[0] is prefix]:
        queue = footprints.queues.pop(line)
        core.state.queue.absorb(queue)
    held = [task for task in footprints.held if task.prefix is prefix]
    for task in held:
        hold_no_more(core, task)
    ask_holders(core, held)


def _weigh_what_runs(core: Core, prefix: Prefix) -> None:
    """Runs that are out already count like those that follow."""
    if not core.state.footprints.is_limited:
        return
    for worker in core.state.workers.values():
        if worker.memory_limit and worker.nsent:
            for task in worker.processing:
                if task.prefix is prefix and task.run != NO_RUN and task.run not in worker.weights:
                    worker.weights[task.run] = Weight(task, core.now)


def note_limit(core: Core, worker: Worker) -> None:
    """A worker has come: it may be the first whose memory is limited, or have less than others."""
    if core.state.footprints.add(worker, core.settings.memory_pause_ratio):
        core.state.footprints.is_mixed = True  # nobody had a limit, or less took memory
        for prefix in list(core.state.prefixes.values()):
            reconsider(core, prefix)


def forget_limit(core: Core, worker: Worker) -> None:
    """A worker has gone; if nobody else's memory is limited, all that waits for some may run."""
    footprints = core.state.footprints
    footprints.remove(worker)
    footprints.unasked.pop(worker, None)
    for weight in worker.weights.values():
        weight.task.prefix.spread.pop(worker, None)
    if footprints.is_limited:
        return
    for queue in footprints.queues.values():
        core.state.queue.absorb(queue)
    footprints.queues.clear()
    footprints.heads.clear()
    footprints.held.clear()


def wake_held(core: Core) -> None:
    """Runs of unknown kinds may have stopped growing; some workers were not asked yet."""
    if core.state.footprints.unasked:
        ask_postponed(core)
    if any(core.admission.is_unknown(task) for task in core.state.footprints.held):
        look_again(core)


def memory_adds_up(state: SchedulerState) -> Iterator[str]:
    """What runs take is counted where they are; nothing waits for memory that nobody uses."""
    footprints = state.footprints
    for worker in state.workers.values():
        for run, weight in worker.weights.items():
            if not worker.memory_limit:
                yield f"{worker} has no limit, and run {run} weighs there: {weight!r}"
    has_some: dict[Prefix, bool] = {}
    for (prefix, _), queue in footprints.queues.items():
        if not footprints.is_limited:
            yield f"{prefix!r} waits for memory, of which everybody has enough"
        has_some[prefix] = has_some.get(prefix, False) or queue.peek() is not None
    for prefix, is_there in has_some.items():
        if not is_there and any(
            task.state == QUEUED and task.prefix is prefix and not is_demanding(task.options)
            for task in state.tasks.values()
        ):  # what is demanding waits in a line of its own
            yield f"{prefix!r} has queued tasks, and none where they wait for memory"
    queuing = LateBinding(state.settings)
    workers = [worker for worker in state.workers.values() if worker.takes_work]
    are_idle = all(is_alone(worker) and queuing.has_room(worker) for worker in workers)
    if workers and are_idle and any(queue.peek() for queue in footprints.queues.values()):
        yield "tasks wait for memory, and nobody runs anything"


HANDLERS = Handlers(
    from_worker={RunsGauged: on_runs_gauged},
    worker_joined=note_limit,
    worker_gone=forget_limit,
    woken=wake_held,
    invariant=memory_adds_up,
)
