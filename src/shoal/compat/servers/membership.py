"""Workers that come and go, told over a comm: what a cluster of old subscribes to."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from shoal.comms.errors import CommClosedError
from shoal.compat.comm.batched import BatchedSend
from shoal.observe.hooks import SchedulerPlugin
from shoal.observe.status import Status

_FIGURES = ("metrics", "last_seen")  # they would be old at once


class WorkerStatusPlugin(SchedulerPlugin):
    """Tells `["add", {"workers": {address: facts}}]` and `["remove", address]`."""

    def __init__(self, comm: Any) -> None:
        """What happens is told over `comm` once `begin` was called."""
        self.name = f"worker-status-{uuid.uuid4().hex}"
        self._comm = comm
        self._batched = BatchedSend("5ms")

    def begin(self) -> None:
        """Tell what has happened, and what will."""
        self._batched.start(self._comm)

    def add_worker(self, scheduler: Any, worker: str, **kwargs: Any) -> None:
        """See `SchedulerPlugin`."""
        there = scheduler.workers.get(worker)
        if there is not None:  # else it has gone already
            self._say(["add", {"workers": {worker: _lasting(there.identity())}}])

    def remove_worker(self, scheduler: Any, worker: str, **kwargs: Any) -> None:
        """See `SchedulerPlugin`."""
        self._say(["remove", worker])

    def _say(self, message: list[Any]) -> None:
        if not self._batched.closed():
            self._batched.send(message)

    def abort(self) -> None:
        """Tell nothing any more."""
        self._batched.abort()


def without_figures(identity: Any) -> dict[str, Any]:
    """What a scheduler and its workers are, without what changes all the time."""
    workers = {address: _lasting(worker) for address, worker in identity["workers"].items()}
    return {**identity, "workers": workers}


def _lasting(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Facts of a worker that stay as they are."""
    return {name: value for name, value in facts.items() if name not in _FIGURES}


async def subscribe_worker_status(scheduler: Any, comm: Any) -> Status:
    """Tell who is there, and then who comes and goes, for as long as the comm lasts."""
    plugin = WorkerStatusPlugin(comm)
    there = without_figures(scheduler.identity())
    scheduler.add_plugin(plugin)  # at once, as whoever comes while we write is to be told of
    try:
        await comm.write(there)
        plugin.begin()
        while True:
            await comm.read()  # nothing is expected but the end
    except CommClosedError:
        return Status.dont_reply
    finally:
        scheduler.remove_plugin(plugin.name)
        plugin.abort()
