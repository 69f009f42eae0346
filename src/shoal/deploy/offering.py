"""A cluster lets its scheduler know that it can scale, for clients that know only that."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec

from shoal.comms.cancellation import is_our_cancellation
from shoal.deploy.errors import ClusterClosed
from shoal.nanny.process import ServiceProcess
from shoal.nanny.questions import answer_to, argument_of
from shoal.observe.status import Status
from shoal.protocol.exceptions import to_failure
from shoal.protocol.running import Outcome


def offer_to_scale(cluster: Any, scheduler: Any) -> None:
    """From now on a client's `adapt` has this cluster adapt; the cluster is not kept alive by that.

    Args:
        scheduler: as the cluster has started it; one that can't pass that on is left alone.
    """
    ourselves = weakref.ref(cluster)
    process = getattr(scheduler, "process", scheduler)
    if isinstance(process, ServiceProcess):
        process.on_ask = partial(_asked, ourselves)
    elif hasattr(scheduler, "scaled_by"):
        scheduler.scaled_by = partial(_adapt, ourselves)


async def _adapt(ourselves: weakref.ref[Any], options: Mapping[str, Any]) -> str:
    """What is done, in a line.  Raises ClusterClosed: nobody is left to do it."""
    cluster = ourselves()
    if cluster is None:
        raise ClusterClosed("?", Status.closed)
    return repr(cluster.adapt(**options))


def _asked(ourselves: weakref.ref[Any], process: ServiceProcess, words: dict[str, Any]) -> None:
    """The scheduler's process asks on behalf of a client; it is answered, whatever happens."""

    async def do() -> None:
        try:
            options = msgspec.msgpack.decode(argument_of(words))
            outcome = Outcome((await _adapt(ourselves, options)).encode())
        except BaseException as error:
            if is_our_cancellation(error):
                raise
            outcome = Outcome(failure=to_failure(error))
        await process.answer(answer_to(words, outcome))

    cluster = ourselves()
    if cluster is not None:
        cluster._in_background(do())
