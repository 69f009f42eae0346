"""What memory of a process is used for, as upstream's users know it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, Self

from dask.utils import format_bytes

from shoal import config


class Counted(Protocol):
    """A worker, as a scheduler knows it or says what it is; all in bytes."""

    @property
    def nbytes(self) -> int:
        """Of all results that it holds."""

    @property
    def spilled_bytes(self) -> int:
        """Of those that are on disk only."""

    @property
    def memory_bytes(self) -> int:
        """Of its process."""

    @property
    def unmanaged_old_bytes(self) -> int:
        """In there, no result, and there for long."""


class MemoryState:
    """Bytes of one worker, or of several together.

    What results take is estimated as they are made, so it may seem to be more than the process
    has; then it is taken for all of that.
    """

    __slots__ = ("managed", "process", "spilled", "unmanaged_old")

    def __init__(self, *, process: int, unmanaged_old: int, managed: int, spilled: int) -> None:
        """All in bytes.

        Args:
            process: of the process, as the system counts (RSS).
            unmanaged_old: in there, of what is no result and has been there for long.
            managed: results in memory.
            spilled: results on disk, which count for no memory.
        """
        self.process = process
        self.managed = min(managed, process)
        self.unmanaged_old = min(unmanaged_old, process - self.managed)
        self.spilled = spilled

    @classmethod
    def sum(cls, *states: MemoryState) -> Self:
        """Of several processes."""
        return cls(
            process=sum(state.process for state in states),
            unmanaged_old=sum(state.unmanaged_old for state in states),
            managed=sum(state.managed for state in states),
            spilled=sum(state.spilled for state in states),
        )

    @property
    def managed_total(self) -> int:
        """Of results, in memory and on disk."""
        return self.managed + self.spilled

    @property
    def unmanaged(self) -> int:
        """In memory, of what is no result: libraries, what tasks use, leaks."""
        return self.process - self.managed

    @property
    def unmanaged_recent(self) -> int:
        """In memory, of what is no result and has come lately."""
        return self.unmanaged - self.unmanaged_old

    @property
    def optimistic(self) -> int:
        """In memory, if what has come lately goes again by itself."""
        return self.managed + self.unmanaged_old

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MemoryState) and self._all() == other._all()

    def __hash__(self) -> int:
        return hash(self._all())

    def __repr__(self) -> str:
        return (
            f"Process memory (RSS)  : {format_bytes(self.process)}\n"
            f"  - managed by Dask   : {format_bytes(self.managed)}\n"
            f"  - unmanaged (old)   : {format_bytes(self.unmanaged_old)}\n"
            f"  - unmanaged (recent): {format_bytes(self.unmanaged_recent)}\n"
            f"Spilled to disk       : {format_bytes(self.spilled)}\n"
        )

    def _all(self) -> tuple[int, int, int, int]:
        return self.process, self.unmanaged_old, self.managed, self.spilled


def memory_of(worker: Counted) -> MemoryState:
    """Of a worker, by what it has told last.

    A process that has told nothing yet has at least its results.
    """
    managed = max(0, worker.nbytes - worker.spilled_bytes)
    return MemoryState(
        process=max(worker.memory_bytes, managed),
        unmanaged_old=worker.unmanaged_old_bytes,
        managed=managed,
        spilled=worker.spilled_bytes,
    )


def memory_of_all(states: Iterable[MemoryState]) -> MemoryState:
    """Of several processes; nothing of none."""
    return MemoryState.sum(*states)


class MemoryView:
    """What a worker does as its memory fills; fractions of its limit, False: that is not done."""

    def __init__(self, memory_limit: int, settings: config.Memory) -> None:
        """`memory_limit`: bytes; 0: none."""
        self.memory_limit: int | None = memory_limit or None
        self.memory_target_fraction = settings.target_ratio or False
        self.memory_spill_fraction = settings.spill_ratio or False
        self.memory_pause_fraction = settings.pause_ratio or False
        self.memory_terminate_fraction = settings.terminate_ratio or False
        self.memory_monitor_interval = settings.monitor_seconds
        self.max_spill = settings.spill_bytes_max or False

    def __repr__(self) -> str:
        return f"<memory of a worker, limit {self.memory_limit}>"
