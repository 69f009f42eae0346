"""How much of the memory that is no result has been there for long?"""

from __future__ import annotations

from collections import deque


class Ageing:
    """Follows what is no result, and says the least that it was in the last so many seconds."""

    __slots__ = ("_began_at", "_least", "_seconds")

    def __init__(self, seconds: float) -> None:
        """`seconds`: what stays so long is old."""
        self._seconds = seconds
        self._began_at: float | None = None
        # Amounts that rise, with their times: each is the least of all that came after the one
        # before it.
        self._least: deque[tuple[float, int]] = deque()

    def note(self, nbytes: int, now: float) -> int:
        """So much is there now; how much of it is old.  Amortised O(1)."""
        if self._began_at is None:
            self._began_at = now
        least = self._least
        while least and least[-1][1] >= nbytes:
            least.pop()
        least.append((now, nbytes))
        while len(least) > 1 and least[0][0] < now - self._seconds:
            least.popleft()
        return least[0][1] if now - self._began_at >= self._seconds else 0
