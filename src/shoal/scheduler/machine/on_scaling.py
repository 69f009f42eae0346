"""Clusters that adapt ask how many workers the load deserves, and say what they do about it."""

from shoal.protocol.answers import answer
from shoal.protocol.scaling import WorkersDeserved
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.model.entities import Client
from shoal.scheduler.policies.scaling import deserved


def on_workers_deserved(core: Core, client: Client, call: WorkersDeserved) -> None:
    """Answer, and keep what the cluster says until it says something else, or goes."""
    if call.said:
        core.state.adapting[client] = call.said
    found = deserved(core.state, call.target_seconds, call.nthreads, call.memory_limit)
    core.to_client(client, answer(call.request, found))


def forget_what_it_said(core: Core, client: Client) -> None:
    """The cluster adapts no more, as it has gone."""
    core.state.adapting.pop(client, None)


HANDLERS = Handlers(
    from_client={WorkersDeserved: on_workers_deserved},
    client_gone=forget_what_it_said,
)
