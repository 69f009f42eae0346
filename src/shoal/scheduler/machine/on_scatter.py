"""Values that clients bring: where each shall go, and that it is awaited from then on."""

from shoal.ids import ClientTaskId, Key, TaskId
from shoal.protocol.actors import BreakPromise, PromiseValue
from shoal.protocol.answers import Refusal, answer
from shoal.protocol.exceptions import to_failure
from shoal.protocol.framing import ProtocolError
from shoal.protocol.keys import to_text
from shoal.protocol.transfers import Placement, PlaceScatter
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.errors import NotEnoughMemory
from shoal.scheduler.machine.finishing import tell
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.machine.naming import new_scattered
from shoal.scheduler.machine.on_holding import keep_copies
from shoal.scheduler.machine.releasing import settle_all
from shoal.scheduler.machine.scattering import lose_scattered
from shoal.scheduler.machine.waiting import fail
from shoal.scheduler.machine.waiting_calls import answer_when_possible
from shoal.scheduler.model.entities import ERRED, MEMORY, RELEASED, Client, Task, Worker
from shoal.scheduler.model.state import link_want
from shoal.scheduler.policies.placement import choose_scatter


def on_place_scatter(core: Core, client: Client, call: PlaceScatter) -> None:
    """Say where values shall go, as soon as there is a worker; they are wanted from now on.

    Refused if one of them is larger than any worker's memory.
    """
    limit = core.state.footprints.limit_max
    if limit and max(call.nbytes, default=0) > limit:
        nbytes, key = max(zip(call.nbytes, call.keys, strict=False))
        error = NotEnoughMemory(to_text(key), nbytes, limit)
        core.to_client(client, Refusal(call.request, to_failure(error, key)))
        return
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

    answer_when_possible(core, client, call.request, place_if_possible)


def on_promise_value(core: Core, client: Client, message: PromiseValue) -> None:
    """The value of a call that has not ended: it is awaited as if it was about to be scattered."""
    if message.task in client.tasks:
        raise ProtocolError("PromiseValue uses a number that has a task already")
    settle_all(core)
    _want_value(core, client, message.task, message.key)


def on_break_promise(core: Core, client: Client, message: BreakPromise) -> None:
    """There is no value to come, unless somebody else has one."""
    task = client.tasks.get(message.task)
    if task is None or task.code is not None or task.state in (MEMORY, ERRED):
        return
    brought = core.state.scattering.pop(task, {})
    brought.pop(client, None)
    if brought:
        core.state.scattering[task] = brought
    else:
        fail(core, task, message.failure)


def _takers(core: Core, call: PlaceScatter) -> list[Worker]:
    """Workers that may take scattered values, in the order in which they joined."""
    state = core.state
    if call.nearby and not call.workers:
        nearby = state.workers.get(call.nearby)
        if nearby is not None and nearby.takes_work:
            return [nearby]
    workers = state.workers_named(call.workers) if call.workers else state.workers.values()
    return [worker for worker in workers if worker.takes_work]


def _want_value(core: Core, client: Client, number: ClientTaskId, key: Key) -> None:
    """The client wants a scattered value under a new number; its task is made if it is new."""
    task = core.state.tasks.get(key)
    if task is None:
        task = new_scattered(core, key)
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
    if call.ncopies != 1:
        keep_copies(core, task, call.ncopies, call.workers, chosen)
    return Placement(task.id, [worker.address for worker in chosen])


HANDLERS = Handlers(
    from_client={
        PlaceScatter: on_place_scatter,
        PromiseValue: on_promise_value,
        BreakPromise: on_break_promise,
    },
    worker_gone=lose_scattered,
)
