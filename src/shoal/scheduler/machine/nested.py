"""What tasks had others do outlives the worker that they ran on, for a while.

A worker's tasks share one client.  If that is lost, the tasks run elsewhere, and make the same
calls again: what these gave, or are about to give, is there for them under the same keys.
"""

from collections.abc import Iterator
from typing import Final

from shoal.protocol.detached import ServeTasks
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.machine.keeping import keep, stop_keeping_all
from shoal.scheduler.model.entities import ERRED, Client
from shoal.scheduler.model.state import SchedulerState

GRACE_SECONDS: Final = 30.0
"""From the loss of a client of tasks until what it wanted is let go of."""


def on_serve_tasks(core: Core, client: Client, message: ServeTasks) -> None:
    """The client belongs to the tasks of a worker."""
    core.state.serving[client] = None


def keep_for_a_while(core: Core, client: Client) -> None:
    """Such a client has gone.  What has failed is not kept: the next run may try it again."""
    serving = core.state.serving
    if client not in serving:
        return
    del serving[client]
    name = f"lost-{client.name}"
    for task in dict.fromkeys(client.tasks.values()):
        if task.state != ERRED:
            keep(core, name, task)
    if name in core.state.keepers:
        let_go_at = core.state.let_go_at[name] = core.now + GRACE_SECONDS
        core.wake_by(let_go_at)


def let_go_of_due(core: Core) -> None:
    """The next runs have found what was kept for them, or there was none."""
    let_go_at = core.state.let_go_at
    for name, at in list(let_go_at.items()):
        if at > core.now:
            core.wake_by(at)
            break  # those that follow were lost later
        del let_go_at[name]
        stop_keeping_all(core, name)


def serving_are_clients(state: SchedulerState) -> Iterator[str]:
    """Who serves tasks is connected."""
    for client in state.serving:
        if state.clients.get(client.id) is not client:
            yield f"{client} serves tasks, and is no client"


HANDLERS = Handlers(
    from_client={ServeTasks: on_serve_tasks},
    client_gone=keep_for_a_while,
    woken=let_go_of_due,
    invariant=serving_are_clients,
)
