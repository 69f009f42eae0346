"""A scheduler's plugin that notes how tasks end."""

from __future__ import annotations

from typing import Any, Final

from shoal.observe.hooks import SchedulerPlugin

_ENDS: Final = ("memory", "erred")


class CollectTaskMetaDataPlugin(SchedulerPlugin):
    """Notes, of tasks that are submitted while it is there, in which state they end: `state`.

    `keys` are those tasks; `metadata` has what is known about those that have ended.
    """

    name: str = "task-metadata"

    def __init__(self, scheduler: Any, name: str) -> None:
        """`scheduler`: whose tasks; `name`: what the plugin is registered as."""
        self.scheduler = scheduler
        self.name = name
        self.keys: set[Any] = set()
        self.metadata: dict[Any, Any] = {}
        self.state: dict[Any, str] = {}

    def update_graph(self, scheduler: Any, *, tasks: list[Any], **kwargs: Any) -> None:
        """See `SchedulerPlugin`."""
        self.keys.update(tasks)

    def transition(self, key: Any, start: str, finish: str, *args: Any, **kwargs: Any) -> None:
        """See `SchedulerPlugin`."""
        if finish in _ENDS and key in self.keys:
            self.keys.discard(key)
            task = self.scheduler.tasks.get(key)
            self.metadata[key] = getattr(task, "metadata", None)
            self.state[key] = finish
