"""How much memory shards may take on one worker, and how much they do."""

from __future__ import annotations

import threading
from collections import deque


class ShardBudget:
    """Counts bytes of shards in memory.  For any thread, and for finalizers."""

    def __init__(self, nbytes_max: int, nbytes_hard_max: int) -> None:
        """`nbytes_max`: beyond it shards go to disk; `nbytes_hard_max`: where no disk takes them,
        they stay in memory up to this."""
        self.nbytes_max = nbytes_max
        self.nbytes_hard_max = max(nbytes_max, nbytes_hard_max)
        self._taken = 0
        self._taking = threading.Lock()
        # What is given back is only noted: a finalizer may run while its own thread has the lock.
        self._given_back: deque[int] = deque()

    @property
    def nbytes(self) -> int:
        """What is taken now."""
        with self._taking:
            self._settle()
            return self._taken

    @property
    def has_room(self) -> bool:
        """Whether there may be any more, where the disk takes nothing."""
        return self.nbytes < self.nbytes_hard_max

    def take(self, nbytes: int, *, is_hard: bool = False) -> bool:
        """Count so many bytes more, if they are within the limit; whether they are.

        `is_hard`: there is no other place for them.
        """
        limit = self.nbytes_hard_max if is_hard else self.nbytes_max
        with self._taking:
            self._settle()
            if self._taken + nbytes > limit:
                return False
            self._taken += nbytes
            return True

    def force(self, nbytes: int) -> None:
        """Count so many bytes more, whatever the limit."""
        with self._taking:
            self._taken += nbytes

    def give_back(self, nbytes: int) -> None:
        """So many bytes are in memory no more."""
        self._given_back.append(nbytes)

    def _settle(self) -> None:
        """Lock held."""
        while self._given_back:
            self._taken -= self._given_back.popleft()
