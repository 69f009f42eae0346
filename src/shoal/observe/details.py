"""What upstream's tasks and workers show beside what is often asked for; read-only.

Parts of the views in `views.py`; nothing here is kept, and each look costs what it says.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, cast

from shoal.observe.clock import seconds_ahead
from shoal.observe.facts import facts_of_worker
from shoal.protocol.exceptions import from_failure
from shoal.protocol.keys import from_canonical

if TYPE_CHECKING:
    from shoal.observe.memory import MemoryState


class _View(Protocol):
    """What a view is made of."""

    __slots__ = ()

    @property
    def _entity(self) -> Any:
        """What is looked at, with the scheduler's names."""


class TaskDetails(_View, Protocol):
    """Of a task."""

    __slots__ = ()

    @property
    def actor(self) -> bool:
        """Whether its result is an actor."""
        return bool(self._entity.options.actor)

    @property
    def group_key(self) -> str:
        """What the keys of its group have in common."""
        from shoal.observe.groups import key_split_group  # only here, as it is rare

        return key_split_group(from_canonical(self._entity.key))

    @property
    def run_spec(self) -> bytes | None:
        """The function, or the graph that it is part of, pickled; None of scattered values."""
        code = self._entity.code
        return None if code is None else code.payload

    @property
    def exception(self) -> BaseException | None:
        """The error that it ended with, if it raised that itself; read at each look."""
        failure = self._entity.failure
        return from_failure(failure) if failure is not None and self._has_raised else None

    @property
    def traceback(self) -> TracebackType | None:
        """Of that error."""
        raised = self.exception
        return None if raised is None else raised.__traceback__

    @property
    def erred_on(self) -> set[str]:
        """The worker on which it has raised its error."""
        return {self._entity.failure.worker} if self._has_raised else set()

    @property
    def exception_blame(self) -> Self | None:
        """The task that raised the error that this one ended with: it, or one that it needs.

        Cost: O(tasks on the way).
        """
        failure = self._entity.failure
        if failure is None:
            return None
        for task in _erred_above(self._entity):
            if task.key == failure.origin:
                return self._of(task)
        return self._of(self._entity)

    @classmethod
    def _of(cls, entity: Any) -> Self:
        """A view of another task."""
        kind: Any = cls
        return cast(Self, kind(entity))

    @property
    def _has_raised(self) -> bool:
        failure = self._entity.failure
        return failure is not None and failure.origin == self._entity.key


def _erred_above(task: Any) -> Iterator[Any]:
    """A task, and those that it needs, directly or not, that have failed like it."""
    seen, left = {task: None}, deque([task])
    while left:
        current = left.popleft()
        yield current
        for dependency in current.dependencies:
            if dependency.failure is not None and dependency not in seen:
                seen[dependency] = None
                left.append(dependency)


class WorkerDetails(_View, Protocol):
    """Of a worker."""

    __slots__ = ()

    @property
    def last_seen(self) -> float:
        """When it was heard last (s, wall clock)."""
        return float(self._entity.heard_at) + seconds_ahead()

    @property
    def local_directory(self) -> str:
        """Where its tasks may leave files."""
        return str(self._entity.local_directory)

    @property
    def services(self) -> dict[str, int]:
        """What else it serves -> the port."""
        return dict(self._entity.services)

    @property
    def nanny(self) -> str | None:
        """Address of who keeps its process, or a word for it; None if nobody does."""
        nanny: str | None = self.identity()["nanny"]
        return nanny

    @property
    def memory(self) -> MemoryState:
        """What its memory is used for, as it told last."""
        from shoal.observe.memory import memory_of  # only here, as it is rare

        return memory_of(self._entity)

    @property
    def metrics(self) -> dict[str, Any]:
        """What it told last of its process."""
        metrics: dict[str, Any] = self.identity()["metrics"]
        return metrics

    @property
    def used_resources(self) -> dict[str, float]:
        """What runs have of its resources."""
        entity = self._entity
        return {name: has - entity.available[name] for name, has in entity.resources.items()}

    @property
    def task_prefix_count(self) -> dict[str, int]:
        """Tasks that were given to it, by prefix.  Cost: O(those)."""
        return dict(Counter(task.prefix.name for task in self._entity.processing))

    def identity(self) -> dict[str, Any]:
        """What it is, as `client.scheduler_info()` has it."""
        return {"type": "Worker", **facts_of_worker(self._entity.identity(seconds_ahead()))}
