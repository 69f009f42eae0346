"""What the scheduler and the workers have logged."""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from shoal.protocol.answers import Refusal, answer
from shoal.protocol.directions import answered
from shoal.protocol.logs import LogLine, RecentLogs, SchedulerLogs, WorkerLogs
from shoal.protocol.messages import Message
from shoal.scheduler.model.entities import Worker
from shoal.scheduler.shell.host import Host, Operations
from shoal.scheduler.shell.reaching import ask_nanny


async def on_scheduler_logs(host: Host, call: SchedulerLogs) -> Message:
    """The latest lines of our own log."""
    return answer(call.request, host.recent_logs.latest(call.n))


async def on_worker_logs(host: Host, call: WorkerLogs) -> Message:
    """The latest lines of workers' logs."""
    return answer(call.request, await logs_of_workers(host, call))


async def logs_of_workers(host: Host, call: WorkerLogs) -> dict[str, list[LogLine]]:
    """The latest lines of workers' logs; one that is lost meanwhile is left out."""
    state = host.machine.state
    if call.workers is None:
        workers = list(state.workers.values())
    else:
        workers = list(state.workers_named(call.workers))
    asked = await asyncio.gather(*(_logs_of(host, worker, call) for worker in workers))
    found = zip(workers, asked, strict=True)
    return {worker.address: lines for worker, lines in found if lines is not None}


async def _logs_of(host: Host, worker: Worker, call: WorkerLogs) -> list[LogLine] | None:
    try:
        peer = host.peer_of(worker)
        if call.nanny:
            outcome = await ask_nanny(peer, "logs", msgspec.msgpack.encode(call.n))
            if outcome.failure is not None:
                return None
            return msgspec.msgpack.decode(outcome.value, type=list[LogLine])
        request, reply = peer.calls.open("its log")
        peer.send([RecentLogs(request, call.n)])
        said = await reply
    except OSError:
        return None
    if isinstance(said, Refusal):
        return None
    lines: list[LogLine] = answered(RecentLogs, said)
    return lines


OPERATIONS: Final[Operations] = {
    SchedulerLogs: on_scheduler_logs,
    WorkerLogs: on_worker_logs,
}
"""Call → what answers it."""
