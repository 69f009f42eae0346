"""Methods of `distributed` that this version of shoal lacks, and how they are refused.

The tables here are the client's; a cluster has its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import TYPE_CHECKING, Any, ClassVar, Final

from shoal.errors import ShoalError

ABSENT: Final = frozenset(
    (
        "amm",
        "benchmark_hardware",
        "call_stack",
        "dump_cluster_state",
        "forward_logging",
        "get_dataset",
        "get_events",
        "get_executor",
        "get_metadata",
        "get_scheduler_logs",
        "get_task_stream",
        "get_versions",
        "get_worker_logs",
        "list_datasets",
        "log_event",
        "nbytes",
        "normalize_collection",
        "processing",
        "profile",
        "publish_dataset",
        "rebalance",
        "register_plugin",
        "register_scheduler_plugin",
        "register_worker_callbacks",
        "register_worker_plugin",
        "replicate",
        "restart",
        "restart_workers",
        "set_metadata",
        "subscribe_topic",
        "unforward_logging",
        "unpublish_dataset",
        "unregister_scheduler_plugin",
        "unregister_worker_plugin",
        "unsubscribe_topic",
        "upload_file",
        "write_scheduler_file",
    )
)
"""A method that comes to be leaves this table; a test says so."""

REMEDIES: Final = {
    "get_metadata": "Keep such values in tasks' results.",
    "nbytes": "client.run(lambda dask_worker: dict(dask_worker.data)) shows what workers hold.",
    "rebalance": "New tasks are placed where there is room.",
    "register_plugin": "Run a function on every worker: client.run(function).",
    "register_worker_callbacks": "Run a function on every worker: client.run(function).",
    "replicate": "Copies of local values: client.scatter(value, broadcast=True).",
    "restart": "Make a new cluster, or release the futures and scale(0), then scale(n).",
    "set_metadata": "Keep such values in tasks' results.",
    "upload_file": "Write it to a folder on the workers' sys.path: client.run(write, content).",
}
"""What to do instead, where there is something."""


class AbsentMethod(ShoalError, AttributeError):
    """A method of the released `distributed` that this version of shoal does not have."""

    def __init__(self, method: str, remedy: str = "", owner: str = "Client") -> None:
        """`remedy`: what to do instead; `owner`: the class that has it upstream."""
        super().__init__(method, remedy, owner)
        self.method, self.remedy, self.owner = method, remedy, owner

    def __str__(self) -> str:
        lack = f"This version of shoal does not have {self.owner}.{self.method}."
        return f"{lack} {self.remedy}".rstrip()


class Absent:
    """Refuses what is absent by name; `hasattr` says that it is not there."""

    _owner_of_absent: ClassVar[str] = "Client"
    _absent: ClassVar[Set[str]] = ABSENT
    _remedies: ClassVar[Mapping[str, str]] = REMEDIES

    if not TYPE_CHECKING:  # or a type checker would believe in every attribute

        def __getattr__(self, name: str) -> Any:
            if name in self._absent:
                raise AbsentMethod(name, self._remedies.get(name, ""), self._owner_of_absent)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
