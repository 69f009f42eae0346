"""Questions of clients that the machine itself can answer; what needs sockets is in the shell."""

from shoal.protocol.answers import answer
from shoal.protocol.questions import (
    DescribeTasks,
    HasWhat,
    NThreads,
    Processing,
    Story,
    TaskDescription,
    TaskStates,
    WhoHas,
)
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.model.entities import MEMORY, Client, Task, Worker


def on_who_has(core: Core, client: Client, call: WhoHas) -> None:
    """Addresses of the holders of each key; of all that are in memory if none is named."""
    tasks = core.state.tasks
    if call.keys is None:
        asked = [(task.key, task) for task in tasks.values() if task.state == MEMORY]
    else:
        asked = [(key, task) for key in call.keys if (task := tasks.get(key)) is not None]
    holders = {key: [worker.address for worker in task.who_has or ()] for key, task in asked}
    core.to_client(client, answer(call.request, holders))


def on_has_what(core: Core, client: Client, call: HasWhat) -> None:
    """Keys that each worker holds."""
    held = {worker.address: [task.key for task in worker.has_what] for worker in _asked(core, call)}
    core.to_client(client, answer(call.request, held))


def on_n_threads(core: Core, client: Client, call: NThreads) -> None:
    """Number of threads of each worker."""
    threads = {worker.address: worker.nthreads for worker in _asked(core, call)}
    core.to_client(client, answer(call.request, threads))


def on_processing(core: Core, client: Client, call: Processing) -> None:
    """What was given to each worker, and how many seconds each task is expected to take."""
    given = {
        worker.address: {task.key: us * 1e-6 for task, us in worker.processing.items()}
        for worker in _asked(core, call)
    }
    core.to_client(client, answer(call.request, given))


def on_task_states(core: Core, client: Client, call: TaskStates) -> None:
    """The state of each task that is known."""
    tasks = core.state.tasks
    if call.keys is None:
        states = {key: task.state for key, task in tasks.items()}
    else:
        states = {key: task.state for key in call.keys if (task := tasks.get(key)) is not None}
    core.to_client(client, answer(call.request, states))


def on_describe_tasks(core: Core, client: Client, call: DescribeTasks) -> None:
    """All about each task that is known."""
    tasks = core.state.tasks
    found = [_describe(task) for key in call.keys if (task := tasks.get(key)) is not None]
    core.to_client(client, answer(call.request, found))


def on_story(core: Core, client: Client, call: Story) -> None:
    """Recorded transitions of the keys, oldest first.  Cost: O(records of the story)."""
    found = core.story.where(frozenset(call.keys), frozenset(call.causes))
    core.to_client(client, answer(call.request, found))


def _describe(task: Task) -> TaskDescription:
    failure = task.failure
    return TaskDescription(
        task.key,
        nbytes=task.nbytes,
        kind=task.kind,
        retries=task.retries,
        blame=task.blame,
        run=task.run,
        holders=[worker.address for worker in task.who_has or ()],
        placed_on="" if task.worker is None else task.worker.address,
        dependencies=[dependency.key for dependency in task.dependencies],
        dependents=[dependent.key for dependent in task.dependents or ()],
        error="" if failure is None else failure.text,
        traceback="" if failure is None else failure.traceback_text,
    )


def _asked(core: Core, call: HasWhat | NThreads | Processing) -> list[Worker]:
    if call.workers is None:
        return list(core.state.workers.values())
    return list(core.state.workers_named(call.workers))


HANDLERS = Handlers(
    from_client={
        WhoHas: on_who_has,
        HasWhat: on_has_what,
        NThreads: on_n_threads,
        Story: on_story,
        Processing: on_processing,
        TaskStates: on_task_states,
        DescribeTasks: on_describe_tasks,
    },
)
