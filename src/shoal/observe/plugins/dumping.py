"""A dump of the whole cluster as it ends."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from shoal.observe.hooks import SchedulerPlugin


class ClusterDump(SchedulerPlugin):
    """Writes all that the scheduler and its workers know to a file before the scheduler closes."""

    def __init__(
        self,
        url: str,
        exclude: Collection[str] = ("run_spec",),
        format_: str = "msgpack",
        **storage_options: Any,
    ) -> None:
        """See `Client.dump_cluster_state`; `url` is where the scheduler's process finds it."""
        self.url = url
        self.exclude = exclude
        self.format = format_
        self.storage_options = storage_options
        self.scheduler: Any = None

    async def start(self, scheduler: Any) -> None:
        """Remember whose state it is."""
        self.scheduler = scheduler

    async def before_close(self) -> None:
        """Write it, while the workers can still be asked."""
        await self.scheduler.dump_cluster_state_to_url(
            self.url, self.exclude, self.format, **self.storage_options
        )
