"""Clusters that scale, for clients that know the scheduler alone."""

from __future__ import annotations

from typing import Final

from shoal.protocol.answers import answer
from shoal.protocol.messages import Message
from shoal.protocol.scaling import AdaptCluster
from shoal.scheduler.shell.errors import NobodyScales
from shoal.scheduler.shell.host import Host, Operations


async def on_adapt_cluster(host: Host, call: AdaptCluster) -> Message:
    """Ask the cluster that this scheduler is one of.  Raises NobodyScales: it is of none."""
    adapt = host.scaled_by
    if adapt is None:
        raise NobodyScales(host.address)
    return answer(call.request, await adapt(call.options))


OPERATIONS: Final[Operations] = {AdaptCluster: on_adapt_cluster}
