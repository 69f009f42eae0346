"""Who is there, and who is to go."""

from __future__ import annotations

from typing import Final

from shoal.protocol.answers import answer
from shoal.protocol.membership import CloseWorkers, TerminateCluster
from shoal.protocol.messages import Message, Shutdown
from shoal.protocol.questions import SchedulerIdentity
from shoal.scheduler.shell.host import Host, Operations


async def on_scheduler_identity(host: Host, call: SchedulerIdentity) -> Message:
    """What the scheduler and its workers are."""
    return answer(call.request, host.describe(call.nworkers))


async def on_close_workers(host: Host, call: CloseWorkers) -> Message:
    """Let workers go; they are told, and what they ran is run elsewhere without blame."""
    closing = list(host.machine.state.workers_named(call.workers))
    for worker in closing:
        host.dismiss(worker, "a client asked for it")
    return answer(call.request, [worker.address for worker in closing])


async def on_terminate_cluster(host: Host, call: TerminateCluster) -> Message:
    """Tell every worker to close; this scheduler closes once the answer is out."""
    for function in host.before_shutdown:
        function()
    for worker in list(host.machine.state.workers.values()):
        host.peer_of(worker).send([Shutdown("the cluster is shut down")])
    return answer(call.request, None)


OPERATIONS: Final[Operations] = {
    SchedulerIdentity: on_scheduler_identity,
    CloseWorkers: on_close_workers,
    TerminateCluster: on_terminate_cluster,
}
