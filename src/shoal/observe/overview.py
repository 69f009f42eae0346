"""What upstream's scheduler shows of all its tasks and workers together; read-only.

A part of the view in `views.py`.  Each look goes over what there is, and costs as much.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from shoal.observe.clock import seconds_ahead
from shoal.observe.status import Status
from shoal.protocol.keys import from_canonical

if TYPE_CHECKING:
    from shoal.observe.groups import TaskGroup
    from shoal.observe.memory import MemoryState

_BUSY: Final = ("waiting", "queued", "no-worker", "processing")


class ErredTask(NamedTuple):
    """A task that has failed."""

    key: object
    timestamp: float
    """When (s, wall clock); 0 if that was too long ago to be known."""
    erred_on: set[str]
    """The worker on which it raised its error."""
    exception_text: str
    traceback_text: str


class _Seen(Protocol):
    """What an overview looks at."""

    @property
    def tasks(self) -> Mapping[object, Any]: ...
    @property
    def workers(self) -> Mapping[str, Any]: ...


class OfWorkers:
    """Of a scheduler's workers, wherever it is looked at from."""

    @property
    def memory(self: _Seen) -> MemoryState:
        """What the memory of all workers is used for."""
        from shoal.observe.memory import memory_of_all  # only here, as it is rare

        return memory_of_all(worker.memory for worker in self.workers.values())

    @property
    def resources(self: _Seen) -> dict[str, dict[str, float]]:
        """Resource -> worker -> how much of it that has."""
        found: dict[str, dict[str, float]] = {}
        for worker in self.workers.values():
            for name, amount in worker.resources.items():
                found.setdefault(name, {})[worker.address] = amount
        return found

    @property
    def host_info(self: _Seen) -> dict[str, dict[str, Any]]:
        """Host -> its workers' addresses, their threads, and when one was heard last."""
        found: dict[str, dict[str, Any]] = {}
        for worker in self.workers.values():
            host = found.setdefault(
                worker.host, {"addresses": set(), "nthreads": 0, "last-seen": 0.0}
            )
            host["addresses"].add(worker.address)
            host["nthreads"] += worker.nthreads
            host["last-seen"] = max(host["last-seen"], worker.last_seen)
        return found

    @property
    def running(self: _Seen) -> set[Any]:
        """Workers that take tasks."""
        return {w for w in self.workers.values() if w.status is Status.running}

    @property
    def saturated(self: _Seen) -> set[Any]:
        """Workers that were given more than they can run at once."""
        return {w for w in self.workers.values() if w.nprocessing > w.nthreads}

    @property
    def idle_task_count(self: _Seen) -> set[Any]:
        """Workers that were given less than they can run at once."""
        return {w for w in self.workers.values() if w.nprocessing < w.nthreads}


class Overview(OfWorkers):
    """Of a scheduler."""

    _state: Any
    _story: Any

    @property
    def bandwidth(self) -> float:
        """Bytes per second that a transfer between two workers is expected to make."""
        return float(self._state.ways.bytes_per_second())

    @property
    def n_tasks(self) -> int:
        """How many tasks there have been."""
        return int(self._state.next_task_id - 1)

    @property
    def is_idle(self) -> bool:
        """Whether no task is left to be run."""
        return not any(self._state.ntasks[state] for state in _BUSY)

    @property
    def replicated_tasks(self: _Seen) -> set[Any]:
        """Tasks whose results several workers hold."""
        return {task for task in self.tasks.values() if len(task.who_has) > 1}

    @property
    def erred_tasks(self) -> list[ErredTask]:
        """Tasks that have raised an error and are known, in the order in which they failed."""
        ahead = seconds_ahead()
        failed_at = {record[1]: record[0] + ahead for record in self._story if record[3] == "erred"}
        found = [
            ErredTask(
                from_canonical(task.key),
                failed_at.get(task.key, 0.0),
                {task.failure.worker},
                task.failure.text,
                task.failure.traceback_text,
            )
            for task in self._state.tasks.values()
            if task.failure is not None and task.failure.origin == task.key
        ]
        return sorted(found, key=lambda one: one.timestamp)

    @property
    def task_groups(self: _Seen) -> dict[str, TaskGroup]:
        """Groups by name: what a collection or one call of `map` has made, for the most part."""
        from shoal.observe.groups import grouped  # only here, as it is rare

        return grouped(self.tasks.values())
