"""Results that are kept for a name: a queue, a data set, work that nobody waits for.

A keeper wants results as a client does, but has no connection that could end, so what it keeps
survives whoever gave it.  Each want has a number, which ends it.
"""

from collections.abc import Iterator
from itertools import islice

from shoal.ids import ClientTaskId
from shoal.protocol.messages import TaskCancelled, TaskErred, TaskInMemory
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.model.entities import RELEASED, Task
from shoal.scheduler.model.keepers import DETACHED, Keeper
from shoal.scheduler.model.state import SchedulerState, link_want, unlink_want


def keep(core: Core, name: str, task: Task) -> ClientTaskId:
    """Want `task` in the name of `name`, once more; the number by which to let go of it.

    However often it is kept in one name, it is wanted once: a want costs O(wants of the task).
    """
    keepers = core.state.keepers
    keeper = keepers.get(name)
    if keeper is None:
        keeper = keepers[name] = Keeper(name, core.now)
        if core.state.journal is not None:
            core.state.journal.watch(keeper)
    for owner, number in task.wants:
        if owner is keeper:
            keeper.further[number] = keeper.further.get(number, 0) + 1
            return number
    number = keeper.new_number()
    link_want(task, keeper, number)
    if task.state == RELEASED:
        core.starting.append(task)
    return number


def stop_keeping(core: Core, name: str, number: ClientTaskId) -> None:
    """Let go of one want; nothing happens if it has ended, as it does if it is cancelled."""
    keeper = core.state.keepers.get(name)
    if keeper is None:
        return
    nfurther = keeper.further.pop(number, 0)
    task = keeper.tasks.get(number)
    if task is not None:
        if nfurther:
            if nfurther > 1:
                keeper.further[number] = nfurther - 1
            return
        unlink_want(task, keeper, number)
        core.releasing.append(task)
    if not keeper.tasks:
        del core.state.keepers[name]


def stop_keeping_all(core: Core, name: str) -> None:
    """Let go of all that is kept in that name; of much a part at a time, in steps to come, as
    others would have to wait too long."""
    state = core.state
    keeper = state.keepers.pop(name, None)
    if keeper is None or not keeper.tasks:  # what it kept was cancelled before
        return
    keeper.further.clear()
    if len(keeper.tasks) <= core.settings.forgets_max:
        for number, task in list(keeper.tasks.items()):
            unlink_want(task, keeper, number)
            core.releasing.append(task)
        return
    while keeper.name == name or keeper.name in state.keepers:  # `name` is free for others
        keeper.name = f"left-{keeper.name}"
    state.keepers[keeper.name] = keeper
    state.letting_go[keeper] = None


def let_go_of_left(core: Core, ntasks_max: int) -> int:
    """Go on with what `stop_keeping_all` has left to be done; of how many results it let go."""
    nleft, letting_go = ntasks_max, core.state.letting_go
    while letting_go and nleft > 0:
        keeper = next(iter(letting_go))
        for number, task in list(islice(keeper.tasks.items(), nleft)):
            unlink_want(task, keeper, number)
            core.releasing.append(task)
            nleft -= 1
        if not keeper.tasks:
            del letting_go[keeper]
            core.state.keepers.pop(keeper.name, None)
    return ntasks_max - nleft


def let_go_of_ended(core: Core) -> bool:
    """Detached tasks that have ended are kept no longer; whether there were any.

    A keeper is told what clients are told, so its outbox says what ended in this step.
    """
    keeper = core.state.keepers.get(DETACHED)
    if keeper is None or not keeper.outbox:
        return False
    heard, keeper.outbox = keeper.outbox, []
    for message in heard:
        if isinstance(message, (TaskInMemory, TaskErred, TaskCancelled)):
            stop_keeping(core, DETACHED, message.task)
    return True


def keepers_mirror(state: SchedulerState) -> Iterator[str]:
    """What is kept is known to be."""
    for name, keeper in state.keepers.items():
        if keeper.name != name:
            yield f"{keeper} is filed under {name!r}"
        if keeper.held or keeper.codes or keeper.sequences:
            yield f"{keeper} has what only clients have"
        if len(set(keeper.tasks.values())) < len(keeper.tasks):
            yield f"{keeper} wants a task more than once"
        for number, task in keeper.tasks.items():
            if (keeper, number) not in task.wants or state.tasks.get(task.key) is not task:
                yield f"{keeper} keeps {task!r} as {number}, which does not know it"


HANDLERS = Handlers(invariant=keepers_mirror)
