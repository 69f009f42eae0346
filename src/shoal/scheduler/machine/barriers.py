"""Barriers of shuffles: tasks that nobody runs, and that keep what they depend on.

A barrier is in memory while every transfer's shards are there.  With the last replica of one of
them its value has gone too, so what follows waits for it again, and only that transfer is run
again.  What has joined its shards by then stays as it is.
"""

from collections.abc import Sequence

from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.journaling import note_barrier
from shoal.scheduler.model.entities import MEMORY, RELEASED, WAITING, Client, Task, Worker
from shoal.scheduler.model.shuffles import Shuffle


def bind(core: Core, client: Client, tasks: Sequence[Task]) -> None:
    """Of tasks that a client has just submitted, those are barriers that it has defined before.

    What another client has defined stays: the barrier may be over by the time that it submits.
    """
    state = core.state
    for task in tasks:
        definition = client.defined.pop(task.key, None)
        if definition is None or task in state.barriers or task.state not in (RELEASED, WAITING):
            continue
        if definition.id in state.shuffles:  # of another barrier, though ids are made of what it is
            continue
        state.barriers[task] = state.shuffles[definition.id] = Shuffle(definition, task)
        note_barrier(core, task, definition)


def keep_inputs(shuffle: Shuffle) -> None:
    """The barrier is about to be in memory: the shards of its transfers are needed from now on."""
    shuffle.keeps_inputs = True
    for transfer in shuffle.barrier.dependencies:
        transfer.nholds += 1


def let_go_of_inputs(core: Core, barrier: Task) -> None:
    """The barrier's value has gone, or will; nothing happens if it is no barrier."""
    shuffle = core.state.barriers.get(barrier)
    if shuffle is None or not shuffle.keeps_inputs:
        return
    shuffle.keeps_inputs = False
    for transfer in barrier.dependencies:
        transfer.nholds -= 1
        if not transfer.is_needed:
            core.releasing.append(transfer)


def barriers_lost_with(core: Core, transfer: Task, worker: Worker | None) -> list[Task]:
    """The last replica of a task has gone with `worker`: barriers whose value is lost with it, no
    longer held by anybody; the caller moves them on."""
    lost: list[Task] = []
    for dependent in transfer.dependents or ():
        shuffle = core.state.barriers.get(dependent)
        if shuffle is None:
            continue
        if dependent.state in (MEMORY, WAITING):
            shuffle.lost[transfer] = "" if worker is None else worker.name
        if dependent.state == MEMORY:
            let_go_of_inputs(core, dependent)
            dependent.value = None
            lost.append(dependent)
    return lost


def holders_changed(core: Core, transfer: Task) -> None:
    """Somebody has come to hold a result, or holds it no more: who asks where shards are is told
    anew.

    Cost: O(dependents) if somebody holds the task, as a barrier in memory does; else nothing.
    """
    if not transfer.nholds:
        return
    barriers = core.state.barriers
    for dependent in transfer.dependents or ():
        shuffle = barriers.get(dependent)
        if shuffle is not None:
            shuffle.located = None


def may_come_back(core: Core, output: Task) -> bool:
    """Whether a result that a worker has as it comes back may count; True if it is of no shuffle.

    It may have joined its shards before they were lost, with nobody hearing of it.  From now on
    others have to fit to it; if others were made of other rows by then, it does not fit to those.
    """
    barriers = core.state.barriers
    shuffles = [barriers[each] for each in output.dependencies if each in barriers]
    if any(shuffle.has_changed for shuffle in shuffles):
        return False
    for shuffle in shuffles:
        shuffle.njoined = max(1, shuffle.njoined)
    return True


def forget_barrier(core: Core, barrier: Task) -> None:
    """A task is forgotten; with a barrier all that is known of its shuffle."""
    shuffle = core.state.barriers.pop(barrier, None)
    if shuffle is not None:
        del core.state.shuffles[shuffle.id]


def number_of_holds(barriers: dict[Task, Shuffle]) -> int:
    """How often barriers hold a transfer, all together."""
    return sum(
        len(barrier.dependencies) for barrier, shuffle in barriers.items() if shuffle.keeps_inputs
    )
