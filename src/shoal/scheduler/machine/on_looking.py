"""Looks at the cluster that the machine answers, and clients that are kept up to date."""

from collections.abc import Iterator

from shoal.errors import NotATask
from shoal.protocol.answers import Refusal, answer
from shoal.protocol.exceptions import to_failure
from shoal.protocol.looking import (
    CallOfTask,
    MemberJoined,
    MemberLeft,
    Members,
    TaskCall,
)
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.model.entities import ERRED, Client, Task, Worker
from shoal.scheduler.model.state import SchedulerState


def on_call_of_task(core: Core, client: Client, call: CallOfTask) -> None:
    """How to call a task, or the one that it failed with."""
    task = core.state.tasks.get(call.key)
    if task is not None and task.state == ERRED:
        task = _culprit(core, task)
    elif call.is_error:
        task = None
    if task is None or task.code is None:
        refused = to_failure(NotATask(call.key, call.is_error))
        core.to_client(client, Refusal(call.request, refused))
        return
    dependencies = [dependency.key for dependency in task.dependencies]
    found = TaskCall(task.key, task.code.payload, task.argument, dependencies)
    core.to_client(client, answer(call.request, found))


def _culprit(core: Core, task: Task) -> Task:
    """The task whose failure this is; the task itself if that one is forgotten."""
    origin = None if task.failure is None else core.state.tasks.get(task.failure.origin)
    return task if origin is None else origin


def watch_members(core: Core, client: Client) -> None:
    """Tell a client who is there, and from now on who comes and goes."""
    core.state.watching[client] = None
    core.to_client(client, Members([w.identity() for w in core.state.workers.values()]))


def tell_of_joined(core: Core, worker: Worker) -> None:
    """A worker has joined."""
    for client in core.state.watching:
        core.to_client(client, MemberJoined(worker.identity()))


def tell_of_gone(core: Core, worker: Worker) -> None:
    """A worker has gone."""
    for client in core.state.watching:
        core.to_client(client, MemberLeft(worker.address))


def watch_no_more(core: Core, client: Client) -> None:
    """A client has gone."""
    core.state.watching.pop(client, None)


def watchers_are_there(state: SchedulerState) -> Iterator[str]:
    """Whoever watches is registered."""
    for client in state.watching:
        if client.id not in state.clients:
            yield f"{client} watches, and has gone"


HANDLERS = Handlers(
    from_client={
        CallOfTask: on_call_of_task,
    },
    worker_joined=tell_of_joined,
    worker_gone=tell_of_gone,
    client_gone=watch_no_more,
    invariant=watchers_are_there,
)
