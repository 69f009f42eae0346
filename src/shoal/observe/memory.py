"""What memory of a process is used for, as upstream's users know it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from dask.utils import format_bytes


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


def memory_of(process_bytes: int, nbytes: int) -> MemoryState:
    """Of a worker that has told these.

    Nobody tells how long what is no result has been there: all of it counts as old.  A process that
    has told nothing yet has at least its results.
    """
    process = max(process_bytes, nbytes)
    return MemoryState(process=process, unmanaged_old=process, managed=nbytes, spilled=0)


def memory_of_all(states: Iterable[MemoryState]) -> MemoryState:
    """Of several processes; nothing of none."""
    return MemoryState.sum(*states)
