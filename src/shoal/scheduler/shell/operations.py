"""Calls that need more than the machine: user functions, workers' answers, other connections."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from shoal.comms import AuthenticationError
from shoal.comms.functions import call_function
from shoal.ids import TaskId
from shoal.protocol.calls import (
    CloseWorkers,
    FetchThroughScheduler,
    Outcome,
    Refusal,
    RunFunction,
    RunOnScheduler,
    RunOnWorkers,
    SchedulerIdentity,
    TerminateCluster,
    answer,
    answered,
)
from shoal.protocol.exceptions import to_failure
from shoal.protocol.handshake import CLIENT
from shoal.protocol.messages import Message, ReplicaHeader, Replicas, Shutdown
from shoal.scheduler.model.entities import Worker
from shoal.scheduler.shell.host import Asker, Host

Operation = Callable[[Any, Any], Awaitable[Message | tuple[Message, list[Any]]]]


class Operations:
    """Answers calls in tasks of their own, so that none holds up the loop or another call."""

    def __init__(self, scheduler: Host) -> None:
        self._scheduler = scheduler
        self._running: set[asyncio.Task[None]] = set()  # only to keep them alive

    def begin(self, peer: Asker, call: Any) -> None:
        """Start to answer `call`, whose answer or refusal goes to `peer`."""
        operation = OPERATIONS[type(call)]
        task = asyncio.create_task(self._answer(peer, call, operation), name=type(call).__name__)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def close(self) -> None:
        """Give up what is still being answered."""
        running = [task for task in self._running if task is not asyncio.current_task()]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _answer(self, peer: Asker, call: Any, operation: Operation) -> None:
        """Every call ends in one answer or refusal, whatever happens."""
        try:
            if peer.connection.role != CLIENT:
                raise AuthenticationError(
                    f"{peer.connection.peer_address} proved itself a worker, and "
                    f"{type(call).__name__} is for clients"
                )
            reply = await operation(self, call)
        except Exception as error:
            reply = Refusal(call.request, to_failure(error))
        try:
            if isinstance(reply, tuple):
                peer.send_with_buffers(*reply)
            else:
                peer.send([reply])
        except Exception as error:  # too large for a frame
            peer.send([Refusal(call.request, to_failure(error))])
        if isinstance(call, TerminateCluster):
            self._scheduler.close_soon("a client asked for it")

    async def on_scheduler_identity(self, call: SchedulerIdentity) -> Message:
        """What the scheduler and its workers are."""
        return answer(call.request, self._scheduler.describe())

    async def on_run_on_scheduler(self, call: RunOnScheduler) -> Message:
        """Call a client's function here."""
        outcome = await call_function(
            call.payload, {"dask_scheduler": self._scheduler}, wait=call.wait
        )
        return answer(call.request, outcome)

    async def on_run_on_workers(self, call: RunOnWorkers) -> Message:
        """Have workers call a client's function; one that is lost meanwhile answers as an error."""
        state = self._scheduler.machine.state
        if call.workers is None:
            workers = list(state.workers.values())
        else:
            workers = list(state.workers_named(call.workers))
            unknown = [name for name in call.workers if name not in state.workers_by_alias]
            if unknown:
                raise ValueError(
                    f"No worker is known by the name or address {unknown[0]!r}. "
                    "client.scheduler_info()['workers'] has all that are connected."
                )
        outcomes = await asyncio.gather(*(self._run_on(worker, call) for worker in workers))
        by_address = {w.address: outcome for w, outcome in zip(workers, outcomes, strict=True)}
        return answer(call.request, by_address)

    async def _run_on(self, worker: Worker, call: RunOnWorkers) -> Outcome:
        try:
            peer = self._scheduler.peer_of(worker)
            request, reply = peer.calls.open("a function")
            peer.send([RunFunction(request, call.payload, call.wait)])
            answer_of_worker = await reply
            if isinstance(answer_of_worker, Refusal):
                return Outcome(failure=answer_of_worker.failure)
            outcome: Outcome = answered(RunFunction, answer_of_worker)
        except OSError as error:
            return Outcome(failure=to_failure(error, worker=worker.address))
        return outcome

    async def on_close_workers(self, call: CloseWorkers) -> Message:
        """Let workers go; they are told, and what they ran is run elsewhere without blame."""
        closing = list(self._scheduler.machine.state.workers_named(call.workers))
        for worker in closing:
            self._scheduler.dismiss(worker, "a client asked for it")
        return answer(call.request, [worker.address for worker in closing])

    async def on_terminate_cluster(self, call: TerminateCluster) -> Message:
        """Tell every worker to close; this scheduler closes once the answer is out."""
        for function in self._scheduler.before_shutdown:
            function()
        for worker in list(self._scheduler.machine.state.workers.values()):
            self._scheduler.peer_of(worker).send([Shutdown("the cluster is shut down")])
        return answer(call.request, None)

    async def on_fetch_through_scheduler(
        self, call: FetchThroughScheduler
    ) -> tuple[Message, list[Any]]:
        """Fetch values for a client that can't reach their holders."""
        replicas: list[ReplicaHeader] = []
        buffers: list[Any] = []
        missing: list[TaskId] = []
        failed: list[Any] = []
        for number in call.tasks:
            reply = await self._fetch(number)
            if reply is None:
                missing.append(number)
            else:
                replicas.extend(reply[0].replicas)
                missing.extend(reply[0].missing)
                failed.extend(reply[0].failed)
                buffers.extend(reply[1])
        return Replicas(call.request, replicas, missing, failed), buffers

    async def _fetch(self, number: TaskId) -> tuple[Replicas, list[Any]] | None:
        """One value from any holder that can be reached; None if there is none."""
        state = self._scheduler.machine.state
        task = state.task_by_id.get(number)
        for worker in list(task.who_has or ()) if task is not None else ():
            try:
                reply = await self._scheduler.exchange.get(worker.address, [number], state.epoch)
            except OSError:
                continue
            if not reply[0].missing:
                return reply
        return None


OPERATIONS: Final[dict[type[Message], Operation]] = {
    SchedulerIdentity: Operations.on_scheduler_identity,
    RunOnScheduler: Operations.on_run_on_scheduler,
    RunOnWorkers: Operations.on_run_on_workers,
    CloseWorkers: Operations.on_close_workers,
    TerminateCluster: Operations.on_terminate_cluster,
    FetchThroughScheduler: Operations.on_fetch_through_scheduler,
}
