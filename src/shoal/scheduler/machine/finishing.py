"""To memory and back: results arrive, are told to whom they concern, and get lost."""

from shoal.ids import ClientTaskId
from shoal.protocol.messages import TaskErred, TaskInMemory, TaskLost
from shoal.scheduler.machine.actors import lose_actor
from shoal.scheduler.machine.barriers import barriers_lost_with, holders_changed
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.placing import unplace
from shoal.scheduler.machine.reducing import note_copies
from shoal.scheduler.machine.running_again import note_lost
from shoal.scheduler.machine.scattering import fail_lost
from shoal.scheduler.machine.waiting import stop_needing_inputs, wait_again
from shoal.scheduler.model.entities import (
    ERRED,
    MEMORY,
    NEEDS_INPUTS,
    NO_RUN,
    NO_WORKER,
    PROCESSING,
    QUEUED,
    RELEASED,
    WAITING,
    Client,
    Task,
    Worker,
)
from shoal.scheduler.model.state import link_replica, unlink_replica
from shoal.scheduler.policies.placement import first

HOLDERS_TOLD = 3
"""Holders of a result that a client is told."""


def to_memory(core: Core, task: Task) -> None:
    """The result exists: its replicas and value are recorded, its placement is undone."""
    assert task.who_has is not None or task.value is not None
    if task.state in NEEDS_INPUTS:
        stop_needing_inputs(core, task)
    if task.state == NO_WORKER:
        del core.state.unrunnable[task]
    core.move(task, MEMORY)
    if core.state.reruns:
        core.state.reruns.pop(task, None)
    if core.attended is not None:
        core.attended[task] = None
    if task.code is None:
        core.state.scattering.pop(task, None)
        core.state.withheld.pop(task, None)
    for client, number in task.wants:
        tell(core, task, client, number)
    if task.dependents is not None:
        for dependent in task.dependents:
            if dependent.state == WAITING:
                dependent.nwaiting -= 1
                if dependent.nwaiting == 0:
                    core.ready.append(dependent)
    if not task.is_needed:
        core.releasing.append(task)


def tell(core: Core, task: Task, client: Client, number: ClientTaskId) -> None:
    """Tell a client how the task ended, if it has."""
    if task.state == MEMORY:
        if task.value is not None:
            message = TaskInMemory(number, task.id, task.nbytes, task.value, [], task.kind)
        else:
            assert task.who_has is not None
            holders = [worker.address for worker in first(task.who_has, HOLDERS_TOLD)]
            message = TaskInMemory(number, task.id, task.nbytes, None, holders, task.kind)
        core.to_client(client, message)
    elif task.state == ERRED:
        assert task.failure is not None
        core.to_client(client, TaskErred(number, task.failure))


def adopt_replica(
    core: Core, task: Task, worker: Worker, nbytes: int, value: bytes | None = None, kind: str = ""
) -> None:
    """`worker` holds a result: record it if it is of use, whatever the task is doing, else free it.

    A scattered value arrives like this, and a copy that was fetched just before the others died.

    Args:
        value: the result itself, pickled, if it is small and was told.
        kind: of which type it is, if that was told instead.
    """
    if task.options.actor or task in core.state.barriers:  # there is one, and it is not this
        core.free(worker, task.id)
        return
    if task.state == MEMORY:
        link_replica(task, worker)
        if task.who_has is not None and len(task.who_has) > 1:
            note_copies(core, task)
        if core.state.barriers:
            holders_changed(core, task)
        if core.attended is not None:
            core.attended[task] = None
        return
    if not task.is_needed or (task.state == ERRED and task.code is not None):
        core.free(worker, task.id)
        return
    if task.state == ERRED:  # a scattered value was given up as lost, and is here after all
        core.move(task, RELEASED)
        task.failure = None
    worker.leftovers.pop(task.id, None)  # it is a replica now
    if task.worker is not None:
        unplace(core, task, recall=True)
    task.nbytes = nbytes
    task.value = value
    task.kind = kind
    link_replica(task, worker)
    to_memory(core, task)


def adopt_actor(
    core: Core, task: Task, worker: Worker, nbytes: int, value: bytes | None, kind: str
) -> None:
    """`worker` has an actor that was made for another life of the scheduler: go on with that.

    Unless there is one already.  `value`: its proxy, pickled.
    """
    if value is None or task.state in (MEMORY, ERRED) or not task.is_needed:
        core.free(worker, task.id)
        return
    worker.leftovers.pop(task.id, None)
    if task.worker is not None:
        unplace(core, task, recall=True)
    task.nbytes = nbytes
    task.value = value
    task.kind = kind
    link_replica(task, worker)
    worker.actors[task] = None
    to_memory(core, task)


def lose_replica(
    core: Core, task: Task, worker: Worker, why: str = "it no longer has the actor"
) -> None:
    """`worker` no longer holds this result; if it was the last copy, it is needed anew.

    What is queued has small inputs only, whose values are here, so it never waits for one again;
    unless it is queued for resources.
    """
    unlink_replica(task, worker)
    if core.attended is not None:
        core.attended[task] = None
    if task.options.actor:
        lose_actor(core, task, worker, why)
        return
    if task.who_has is not None or task.value is not None or task.state != MEMORY:
        if core.state.barriers:
            holders_changed(core, task)
        return
    lose_result(core, task, worker)


def lose_result(core: Core, task: Task, worker: Worker | None) -> None:
    """Nobody holds this result any more, so it is needed anew; and so are barriers that kept it.

    `worker`: the last that held it, if one did.
    """
    _need_again(core, task, worker)
    if core.state.barriers:
        for barrier in barriers_lost_with(core, task, worker):
            _need_again(core, barrier, worker)


def _need_again(core: Core, task: Task, worker: Worker | None) -> None:
    """The result has gone: whatever was about to use it waits for it again."""
    core.move(task, RELEASED)
    core.state.reduction.doubled.pop(task, None)
    for dependent in list(task.dependents or ()):
        if dependent.state == WAITING:
            dependent.nwaiting += 1
        elif dependent.state in (NO_WORKER, QUEUED):
            wait_again(core, dependent)
        elif dependent.state == PROCESSING and dependent.run == NO_RUN:
            unplace(core, dependent, recall=False)
            wait_again(core, dependent)
    for client, number in task.wants:
        core.to_client(client, TaskLost(number))
    if not task.is_needed:
        core.releasing.append(task)
    elif task.code is None:
        if worker is not None and worker.silence is not None:
            core.state.withheld[task] = worker
            core.starting.append(task)  # it waits
        else:
            fail_lost(core, task, worker)
    else:
        note_lost(core, task, worker)
        core.starting.append(task)
