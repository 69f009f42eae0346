"""What a worker has done for shuffles so far."""

from __future__ import annotations

import threading


class ShuffleCounters:
    """Sums since the worker began.  For any thread."""

    __slots__ = (
        "_lock", "cut_bytes", "fetched_bytes", "fetched_from_here_bytes", "ncuts", "njoins",
        "nlost", "nrefused", "served_bytes", "written_bytes",
    )  # fmt: skip

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.ncuts = 0
        """Input partitions that were cut here."""
        self.cut_bytes = 0
        self.written_bytes = 0
        """Of these, those that went to disk."""
        self.nrefused = 0
        """Input partitions that had no room here."""
        self.served_bytes = 0
        """Sent to other workers."""
        self.njoins = 0
        """Output partitions whose shards were fetched."""
        self.fetched_bytes = 0
        """Of their shards, from wherever they were."""
        self.fetched_from_here_bytes = 0
        """Of these, those that were here."""
        self.nlost = 0
        """Kept shards whose file was found missing or damaged."""

    def add(self, **amounts: int) -> None:
        """Add to each of these."""
        with self._lock:
            for name, amount in amounts.items():
                setattr(self, name, getattr(self, name) + amount)

    def as_dict(self) -> dict[str, int]:
        """All of them, by name."""
        with self._lock:
            return {name: getattr(self, name) for name in self.__slots__ if name != "_lock"}
