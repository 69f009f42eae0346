"""Calls that are answered once there are workers: the call for them, and whatever needs some."""

from collections.abc import Callable

from shoal.protocol.answers import answer
from shoal.protocol.membership import AwaitWorkers
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.model.entities import Client, Worker


def on_await_workers(core: Core, client: Client, call: AwaitWorkers) -> None:
    """Answer as soon as enough workers are connected."""

    def answer_if_enough() -> bool:
        nworkers = sum(not worker.is_leaving for worker in core.state.workers.values())
        if nworkers < call.nworkers:
            return False
        core.to_client(client, answer(call.request, nworkers))
        return True

    answer_when_possible(core, client, call.request, answer_if_enough)


def answer_when_possible(
    core: Core, client: Client, request: int, answers: Callable[[], bool]
) -> None:
    """Answer now if `answers` can, else as soon as workers have changed so that it can."""
    if not answers():
        core.awaiting[client, request] = answers


def answer_waiting_calls(core: Core, worker: Worker) -> None:
    """A worker has joined, or goes on working: answer the calls that waited for that."""
    for waiting, answers in list(core.awaiting.items()):
        if answers():
            del core.awaiting[waiting]


def drop_waiting_calls(core: Core, client: Client) -> None:
    """The client has gone, and nobody waits for its answers."""
    for waiting in [waiting for waiting in core.awaiting if waiting[0] is client]:
        del core.awaiting[waiting]


HANDLERS = Handlers(
    from_client={AwaitWorkers: on_await_workers},
    worker_joined=answer_waiting_calls,
    client_gone=drop_waiting_calls,
)
