"""Calls of clients that the machine itself can answer; what needs sockets is in the shell."""

from collections.abc import Callable

from shoal.ids import ClientTaskId, Key, TaskId
from shoal.protocol.calls import (
    AwaitWorkers,
    DescribeTasks,
    HasWhat,
    NThreads,
    Placement,
    PlaceScatter,
    Processing,
    Story,
    TaskDescription,
    TaskStates,
    WhoHas,
    answer,
)
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.finishing import tell
from shoal.scheduler.machine.placing import to_priority
from shoal.scheduler.machine.releasing import settle_all
from shoal.scheduler.model.entities import ERRED, MEMORY, NO_OPTIONS, RELEASED, Client, Task, Worker
from shoal.scheduler.model.state import link_want
from shoal.scheduler.policies.placement import choose_scatter


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
    core.to_client(client, answer(call.request, core.story.about(call.keys)))


def on_await_workers(core: Core, client: Client, call: AwaitWorkers) -> None:
    """Answer as soon as enough workers are connected."""

    def answer_if_enough() -> bool:
        nworkers = sum(not worker.is_leaving for worker in core.state.workers.values())
        if nworkers < call.nworkers:
            return False
        core.to_client(client, answer(call.request, nworkers))
        return True

    _answer_when_possible(core, client, call.request, answer_if_enough)


def on_place_scatter(core: Core, client: Client, call: PlaceScatter) -> None:
    """Say where values shall go, as soon as there is a worker; they are wanted from now on."""
    settle_all(core)
    numbers = [ClientTaskId(call.first + index) for index in range(len(call.keys))]
    for number, key in zip(numbers, call.keys, strict=True):
        if number in client.tasks:  # asked again: where it was to go before counts no more
            _await_value(core, client, client.tasks[number])
        elif not call.again:  # else it was let go of meanwhile, and nobody would do so again
            _want_value(core, client, number, key)

    def place_if_possible() -> bool:
        workers = _takers(core, call)
        if not workers:
            return False
        placements = [_place_value(core, client, call, number, workers) for number in numbers]
        core.to_client(client, answer(call.request, placements))
        return True

    _answer_when_possible(core, client, call.request, place_if_possible)


def answer_waiting_calls(core: Core) -> None:
    """Workers changed: answer the calls that waited for that."""
    for waiting, answers in list(core.awaiting.items()):
        if answers():
            del core.awaiting[waiting]


def drop_waiting_calls(core: Core, client: Client) -> None:
    """The client has gone, and nobody waits for its answers."""
    for waiting in [waiting for waiting in core.awaiting if waiting[0] is client]:
        del core.awaiting[waiting]


def _answer_when_possible(
    core: Core, client: Client, request: int, answers: Callable[[], bool]
) -> None:
    if not answers():
        core.awaiting[client, request] = answers


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


def _takers(core: Core, call: PlaceScatter) -> list[Worker]:
    """Workers that may take scattered values, in the order in which they joined."""
    state = core.state
    workers = state.workers_named(call.workers) if call.workers else state.workers.values()
    return [worker for worker in workers if not worker.is_leaving]


def _want_value(core: Core, client: Client, number: ClientTaskId, key: Key) -> None:
    """The client wants a scattered value under a new number; its task is made if it is new."""
    task = core.state.tasks.get(key)
    if task is None:
        task = _new_scattered(core, key)
    link_want(task, client, number)
    _await_value(core, client, task)
    tell(core, task, client, number)


def _await_value(core: Core, client: Client, task: Task) -> None:
    """The client is about to bring the value, unless it is here or a task will compute it."""
    if task.code is None and task.state == ERRED:  # it was lost; here it comes again
        core.move(task, RELEASED)
        task.failure = None
    if task.code is None and task.state != MEMORY:
        core.state.scattering.setdefault(task, {})[client] = {}
    core.starting.append(task)


def _place_value(
    core: Core, client: Client, call: PlaceScatter, number: ClientTaskId, workers: list[Worker]
) -> Placement:
    """The workers that shall hold one scattered value.

    None for a key that is in memory or that a task will compute, and none if the value is no
    longer wanted: there is nothing to send.
    """
    task = client.tasks.get(number)
    if task is None:
        return Placement(TaskId(0), [])
    if task.code is not None or task.state == MEMORY:
        return Placement(task.id, [])
    _await_value(core, client, task)
    brought = core.state.scattering[task]
    chosen: dict[Worker, None] = {}
    if call.ncopies == 0:
        chosen.update(dict.fromkeys(workers))
    while len(chosen) < min(call.ncopies, len(workers)):
        chosen[choose_scatter(workers, core.state.scatter_cursor)] = None
        core.state.scatter_cursor += 1
    brought[client] = chosen
    return Placement(task.id, [worker.address for worker in chosen])


def _new_scattered(core: Core, key: Key) -> Task:
    """A task without a run spec: its value comes from a client, and can't be computed again."""
    prefix = key.rpartition("-")[0] or "scattered"
    priority = to_priority(0.0, core.state.next_sequence)
    return core.state.new_task(key, None, b"", prefix, priority, NO_OPTIONS)
