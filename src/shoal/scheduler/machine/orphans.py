"""Results of another life of the scheduler, and runs: who asks for one by its key gets it.

A worker that registers tells what it has under numbers that mean nothing here.  Once a client
defines a task of such a key, and it is needed, its holders are told the number that it has now;
when they have said that they know it by that, the task is in memory, and was not run.  Until then,
and while a worker computes it, the task stays released, and nothing that it needs is begun for it.
What nobody has asked for after a while is dropped.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from shoal.ids import Key, TaskId
from shoal.protocol.framing import ProtocolError
from shoal.protocol.messages import RegisterWorker
from shoal.protocol.orphans import (
    AdoptReplicas,
    FreeOrphans,
    OrphanFinished,
    OrphansGone,
    ReplicasAdopted,
)
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.finishing import adopt_actor, adopt_replica
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.machine.placing import unplace
from shoal.scheduler.machine.waiting import begin, stop_needing_inputs
from shoal.scheduler.model.entities import (
    ERRED,
    MEMORY,
    NO_RUN,
    NO_WORKER,
    RELEASED,
    Task,
    Worker,
)
from shoal.scheduler.model.shuffles import Shuffle
from shoal.scheduler.model.state import SchedulerState


def take_orphans(core: Core, worker: Worker, message: RegisterWorker) -> None:
    """Note what a worker has that is of no number here, and take up what is needed of that.

    Cost: O(its inventory).
    """
    orphans = core.state.orphans
    is_ours = message.epoch == core.state.epoch
    keys: dict[Key, None] = {}
    for item in message.inventory:
        if item.task < 0 or not is_ours:
            orphans.link(item.key, worker).holders[worker] = item.nbytes
            keys[item.key] = None
    for run in message.executing:
        if run.task < 0 or not is_ours:
            orphans.link(run.key, worker).runners[worker] = None
            keys[run.key] = None
    if not keys:
        return
    due_at = core.now + core.settings.orphan_seconds
    orphans.due.append((due_at, worker))
    core.wake_by(due_at)
    for key in keys:
        task = core.state.tasks.get(key)
        if task is not None:
            _take_up(core, task)


def adopt_all(core: Core) -> None:
    """Of the noted tasks, which are about to begin, those wait that somebody has, or may have.

    Cost: O(tasks).
    """
    asking: dict[Worker, tuple[list[Key], list[TaskId]]] = {}
    by_key = core.state.orphans.by_key
    while core.adopting:
        task = core.adopting.pop()
        orphan = by_key.get(task.key)
        if orphan is None or not task.is_needed:
            core.starting.append(task)
            continue
        if task.state == RELEASED and core.state.barriers and _is_of_another_cut(core, task):
            _free(core, task.key)
            _hope_no_more(core, task.key)
            core.starting.append(task)
            continue
        if task.state == RELEASED and task in core.state.scattering:
            begin(core, task)
        for worker in orphan.holders:
            keys, tasks = asking.setdefault(worker, ([], []))
            keys.append(task.key)
            tasks.append(task.id)
            orphan.asked[worker] = task.id
        orphan.holders.clear()
    for worker, (keys, tasks) in asking.items():
        core.to_worker(worker, AdoptReplicas(keys, tasks))


def on_replicas_adopted(core: Core, worker: Worker, message: ReplicasAdopted) -> None:
    """The worker has results under the numbers that they were given: they are in memory."""
    columns = (message.keys, message.tasks, message.nbytes, message.values, message.kinds)
    if len(frozenset([len(column) for column in columns])) != 1:
        raise ProtocolError("ReplicasAdopted has columns of different lengths")
    actors = dict.fromkeys(message.actors)
    for key, number, nbytes, value, kind in zip(*columns, strict=True):
        core.state.orphans.unlink(key, worker)
        task = core.state.task_by_id.get(number)
        if key in actors and task is not None and task in core.state.orphans.named:
            task.options = replace(task.options, actor=True)
        if task is None or task.key != key:
            core.free(worker, number)
        elif task.options.actor:
            adopt_actor(core, task, worker, nbytes, value, kind)
        elif core.state.barriers and task.state != MEMORY and _is_of_another_cut(core, task):
            core.free(worker, number)
        else:
            adopt_replica(core, task, worker, nbytes, value, kind)
            if core.state.barriers and task.state == MEMORY:
                for shuffle in _shuffles_of(core, task):
                    shuffle.adopted[task] = None
        _begin_if_lost(core, key)


def on_orphan_finished(core: Core, worker: Worker, message: OrphanFinished) -> None:
    """A run of before has ended well: whoever waited for it has its result."""
    orphan = core.state.orphans.by_key.get(message.key)
    if orphan is None or worker not in orphan.runners:
        core.to_worker(worker, FreeOrphans([message.key]))
        return
    del orphan.runners[worker]
    orphan.holders[worker] = message.nbytes
    task = core.state.tasks.get(message.key)
    if task is not None and _is_awaited(core, message.key):
        _take_up(core, task)
    elif not any(worker is other for _, other in core.state.orphans.due):
        _let_go(core, [message.key], worker)


def on_orphans_gone(core: Core, worker: Worker, message: OrphansGone) -> None:
    """The worker has nothing of these: what nobody else has is run as usual."""
    for key in message.keys:
        core.state.orphans.unlink(key, worker)
        _begin_if_lost(core, key)


def drop_worker(core: Core, worker: Worker) -> None:
    """The worker has gone, and with it what it had from before."""
    for key in list(core.state.orphans.of_worker.get(worker, ())):
        core.state.orphans.unlink(key, worker)
        _begin_if_lost(core, key)


def let_go_of_unasked(core: Core) -> None:
    """Drop what a worker has that nobody has asked for in all the time since it came.

    Cost: O(orphans of workers whose time is over).
    """
    orphans = core.state.orphans
    due = orphans.due
    while due and due[0][0] <= core.now:
        _, worker = due.popleft()
        keys = orphans.of_worker.get(worker, {})
        _let_go(core, [key for key in keys if not _is_awaited(core, key)], worker)
    if due:
        core.wake_by(due[0][0])


def _take_up(core: Core, task: Task) -> None:
    """Somebody has the result of a task that is known here: have it, if that is of use."""
    if task in core.state.barriers or (task.options.actor and task.state == MEMORY):
        _free(core, task.key)
    elif task.state == ERRED or not task.is_needed:
        return  # it may be tried again, or wanted
    elif task.state == MEMORY or task.run != NO_RUN or task.state == RELEASED or task.code is None:
        core.adopting.append(task)
    else:
        _put_off(core, task)
        core.starting.append(task)


def _put_off(core: Core, task: Task) -> None:
    """A task that has begun, and was not sent, is as if it had not: nothing is done for it."""
    if task.worker is not None:
        unplace(core, task, recall=False)
    if task.state == NO_WORKER:
        del core.state.unrunnable[task]
    stop_needing_inputs(core, task)
    core.move(task, RELEASED)


def _begin_if_lost(core: Core, key: Key) -> None:
    """A task that has waited for what others had, and have no longer, is run like any other."""
    if key not in core.state.orphans.by_key:
        task = core.state.tasks.get(key)
        if task is not None and task.state == RELEASED:
            core.starting.append(task)


def _is_of_another_cut(core: Core, task: Task) -> bool:
    """Whether such a result would not fit: it is what a shuffle's input was cut to, of which nobody
    knows any more what is in it; or was made of that, and others are made of another cut."""
    barriers = core.state.barriers
    if any(dependent in barriers for dependent in task.dependents or ()):
        return True
    return any(shuffle.nepochs for shuffle in _shuffles_of(core, task))


def _shuffles_of(core: Core, output: Task) -> list[Shuffle]:
    barriers = core.state.barriers
    return [barriers[each] for each in output.dependencies if each in barriers]


def _is_awaited(core: Core, key: Key) -> bool:
    task = core.state.tasks.get(key)
    return task is not None and task.is_needed and task.state != ERRED


def _free(core: Core, key: Key) -> None:
    """Whoever has something of it drops that."""
    orphan = core.state.orphans.by_key.get(key)
    if orphan is not None:
        for worker in [*orphan.holders, *orphan.runners]:
            _let_go(core, [key], worker)


def _hope_no_more(core: Core, key: Key) -> None:
    """Whatever somebody may bring of it would be of no use."""
    orphan = core.state.orphans.by_key.get(key)
    if orphan is not None:
        orphan.is_hoped_for = False
        if not orphan.is_of_use:
            del core.state.orphans.by_key[key]


def _let_go(core: Core, keys: list[Key], worker: Worker) -> None:
    if keys:
        core.to_worker(worker, FreeOrphans(keys))
    for key in keys:
        core.state.orphans.unlink(key, worker)


def orphans_are_known(state: SchedulerState) -> Iterator[str]:
    """An orphan is somebody's, who is there, and both know it."""
    orphans = state.orphans
    for key, orphan in orphans.by_key.items():
        if not orphan.is_of_use:
            yield f"nobody has anything of the orphan {key!r}"
        for worker in [*orphan.holders, *orphan.runners, *orphan.asked]:
            if state.worker_by_id.get(worker.id) is not worker:
                yield f"{worker} has the orphan {key!r}, and has gone"
            if key not in orphans.of_worker.get(worker, {}):
                yield f"{worker} does not know that it has the orphan {key!r}"
    for worker, keys in orphans.of_worker.items():
        for key in keys:
            found = orphans.by_key.get(key)
            if found is None or worker not in {**found.holders, **found.runners, **found.asked}:
                yield f"{worker} is to have the orphan {key!r}, and has nothing of it"
    for task in orphans.named:
        if state.tasks.get(task.key) is not task:
            yield f"{task!r} was named by somebody, and has gone"


HANDLERS = Handlers(
    from_worker={
        ReplicasAdopted: on_replicas_adopted,
        OrphanFinished: on_orphan_finished,
        OrphansGone: on_orphans_gone,
    },
    worker_gone=drop_worker,
    woken=let_go_of_unasked,
    invariant=orphans_are_known,
)
