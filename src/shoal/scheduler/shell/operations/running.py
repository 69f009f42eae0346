"""Functions that clients have called in the scheduler's process and in workers'."""

from __future__ import annotations

import asyncio
from typing import Final

from shoal.comms.functions import call_function
from shoal.observe.errors import OperationBlocked
from shoal.protocol.answers import Refusal, answer
from shoal.protocol.directions import answered
from shoal.protocol.exceptions import to_failure
from shoal.protocol.messages import Message
from shoal.protocol.running import Outcome, RunFunction, RunOnScheduler, RunOnWorkers
from shoal.scheduler.model.entities import Worker
from shoal.scheduler.shell.host import Host, Operations
from shoal.scheduler.shell.reaching import ask_nanny

RUN_FUNCTION: Final = "run_function"
"""What the operation is called by those who block it."""


async def on_run_on_scheduler(host: Host, call: RunOnScheduler) -> Message:
    """Call a client's function here.

    Raises:
        OperationBlocked: no functions are called here.
    """
    if RUN_FUNCTION in host.blocked_handlers:
        raise OperationBlocked("the scheduler", RUN_FUNCTION)
    outcome = await call_function(call.payload, {"dask_scheduler": host}, wait=call.wait)
    return answer(call.request, outcome)


async def on_run_on_workers(host: Host, call: RunOnWorkers) -> Message:
    """Have workers call a client's function; one that is lost meanwhile answers as an error."""
    state = host.machine.state
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
    if call.nanny:
        workers = [worker for worker in workers if worker.has_nanny]
    run = _run_beside if call.nanny else _run_on
    outcomes = await asyncio.gather(*(run(host, worker, call) for worker in workers))
    by_address = {w.address: outcome for w, outcome in zip(workers, outcomes, strict=True)}
    return answer(call.request, by_address)


async def _run_on(host: Host, worker: Worker, call: RunOnWorkers) -> Outcome:
    try:
        peer = host.peer_of(worker)
        request, reply = peer.calls.open("a function")
        peer.send([RunFunction(request, call.payload, call.wait)])
        answer_of_worker = await reply
        if isinstance(answer_of_worker, Refusal):
            return Outcome(failure=answer_of_worker.failure)
        outcome: Outcome = answered(RunFunction, answer_of_worker)
    except OSError as error:
        return Outcome(failure=to_failure(error, worker=worker.address))
    return outcome


async def _run_beside(host: Host, worker: Worker, call: RunOnWorkers) -> Outcome:
    """Have a worker's nanny call it."""
    try:
        return await ask_nanny(host.peer_of(worker), "run", call.payload)
    except OSError as error:
        return Outcome(failure=to_failure(error, worker=worker.address))


OPERATIONS: Final[Operations] = {
    RunOnScheduler: on_run_on_scheduler,
    RunOnWorkers: on_run_on_workers,
}
