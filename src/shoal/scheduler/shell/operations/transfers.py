"""Values that go through the scheduler, as their client can't reach who holds them."""

from __future__ import annotations

from typing import Any, Final

from shoal.ids import TaskId
from shoal.protocol.messages import Message, ReplicaHeader, Replicas
from shoal.protocol.transfers import FetchThroughScheduler
from shoal.scheduler.shell.host import Host, Operations


async def on_fetch_through_scheduler(
    host: Host, call: FetchThroughScheduler
) -> tuple[Message, list[Any]]:
    """Fetch values for a client that can't reach their holders."""
    replicas: list[ReplicaHeader] = []
    buffers: list[Any] = []
    missing: list[TaskId] = []
    failed: list[Any] = []
    for number in call.tasks:
        reply = await _fetch(host, number)
        if reply is None:
            missing.append(number)
        else:
            replicas.extend(reply[0].replicas)
            missing.extend(reply[0].missing)
            failed.extend(reply[0].failed)
            buffers.extend(reply[1])
    return Replicas(call.request, replicas, missing, failed), buffers


async def _fetch(host: Host, number: TaskId) -> tuple[Replicas, list[Any]] | None:
    """One value from any holder that can be reached; None if there is none."""
    state = host.machine.state
    task = state.task_by_id.get(number)
    for worker in list(task.who_has or ()) if task is not None else ():
        try:
            reply = await host.exchange.get(worker.address, [number], state.epoch)
        except OSError:
            continue
        if not reply[0].missing:
            return reply
    return None


OPERATIONS: Final[Operations] = {
    FetchThroughScheduler: on_fetch_through_scheduler,
}
