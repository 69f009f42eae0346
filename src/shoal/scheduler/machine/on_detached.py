"""Tasks that nobody waits for: kept in the name `fire-and-forget` until they have ended.

Whoever knows the key may cancel one; other clients that hold a future of it still get it.
"""

from shoal.protocol.answers import answer
from shoal.protocol.detached import CancelKeys, DetachedTasks, DetachTasks
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.machine.journaling import say_when_durable
from shoal.scheduler.machine.keeping import keep
from shoal.scheduler.machine.on_client import cancel_all
from shoal.scheduler.model.entities import ERRED, MEMORY, Client
from shoal.scheduler.model.keepers import DETACHED

ENDED = (MEMORY, ERRED)


def on_detach_tasks(core: Core, client: Client, message: DetachTasks) -> None:
    """Keep each until it has ended; one that is not known, or has ended, needs nothing."""
    for number in message.tasks:
        task = client.tasks.get(number)
        if task is None or task.state in ENDED:
            continue
        if not any(owner.name == DETACHED for owner, _ in task.wants):
            keep(core, DETACHED, task)


def on_cancel_keys(core: Core, client: Client, message: CancelKeys) -> None:
    """As CancelTasks, of tasks that the client may hold no future of."""
    known = core.state.tasks
    tasks = [known[key] for key in message.keys if key in known]
    cancel_all(core, client, tasks, message.force, message.reason)


def on_detached_tasks(core: Core, client: Client, call: DetachedTasks) -> None:
    """Those that have not ended; a journal has all of them by the time that they are told."""
    keeper = core.state.keepers.get(DETACHED)
    tasks = {} if keeper is None else {task.key: task.state for task in keeper.tasks.values()}
    say_when_durable(core, client, answer(call.request, tasks))


HANDLERS = Handlers(
    from_client={
        DetachTasks: on_detach_tasks,
        CancelKeys: on_cancel_keys,
        DetachedTasks: on_detached_tasks,
    },
)
