"""How soon is a worker's memory looked at again?  Rarely, where nothing comes and nothing runs."""

from __future__ import annotations

from typing import Final

IDLE_FACTOR: Final = 12
"""So many times less often is looked while nothing runs and nothing comes: by default a little
less often than an idle worker gives signs of life, since it looks with each of them, and is woken
once for both."""
CALM_FACTOR: Final = 4
"""So many times less often while what runs takes no more for a while,"""
CALM_LOOKS: Final = 20
"""which is so many looks,"""
CALM_BYTES: Final = 1 << 20
"""and no more means within this much."""
HIGH_FACTOR: Final = 4
"""So many times more often, while something runs and there is little room."""

LOOK_RATIO: Final = 0.02
"""Of the limit: when so much of results has come, memory is looked at, whatever the time.  A worker
that makes arrays as fast as memory takes them needs no tenth of a second for its limit."""


class LookPace:
    """Of one worker's looks."""

    __slots__ = ("_managed_bytes", "_ncalm", "_process_bytes", "factor")

    def __init__(self) -> None:
        self.factor = 1.0  # times the usual interval it is until the next look
        self._ncalm = 0  # looks since memory was other than before
        self._process_bytes = self._managed_bytes = 0  # as it was then

    def stir(self) -> None:
        """Something comes: the usual interval is right again."""
        self.factor, self._ncalm = 1.0, 0

    def looked(
        self,
        process_bytes: int,
        managed_bytes: int,
        *,
        is_executing: bool,
        is_lacking: bool,
        is_high: bool = False,
    ) -> None:
        """It was looked; `factor` is for the next time.

        Args:
            is_lacking: something waits for room; what is being sent may leave, and nobody says so.
            is_high: there is little room.
        """
        is_same = managed_bytes == self._managed_bytes
        self._ncalm += 1
        if not is_same or abs(process_bytes - self._process_bytes) > CALM_BYTES:
            self._process_bytes, self._managed_bytes = process_bytes, managed_bytes
            self._ncalm = 0
        if is_high:
            self.factor = 1 / HIGH_FACTOR if is_executing else 1.0
        elif is_lacking:
            self.factor = 1.0
        elif is_same and not is_executing:
            self.factor = IDLE_FACTOR
        else:
            self.factor = CALM_FACTOR if self._ncalm >= CALM_LOOKS else 1.0
