"""How often a policy of a program is asked that keeps the scheduler's loop for long."""

from __future__ import annotations

from typing import Final

SLOW_SECONDS: Final = 0.02
"""Of one run of a policy, in which the scheduler does nothing else; more is slow."""

SLOW_RUNS: Final = 3
"""After so many slow runs in a row a policy is asked in fewer rounds."""

SKIPPED_MAX: Final = 63
"""Rounds that are passed between two runs of one that is always slow."""


class Pace:
    """How one policy has done so far."""

    __slots__ = ("_nskipped", "_nslow", "_nto_skip", "is_told")

    def __init__(self) -> None:
        self.is_told = False  # whether somebody was told that it is slow
        self._nslow = 0  # slow runs in a row
        self._nto_skip = 0  # rounds between two runs
        self._nskipped = 0

    def is_due(self) -> bool:
        """Whether it is asked in this round; else the round counts as passed."""
        if self._nskipped < self._nto_skip:
            self._nskipped += 1
            return False
        self._nskipped = 0
        return True

    def note_run(self, seconds: float) -> bool:
        """It has run for so long; returns whether that is slow.

        Each slow run beyond some doubles the rounds until the next; one that isn't slow ends that.
        """
        if seconds <= SLOW_SECONDS:
            self._nslow = self._nto_skip = 0
            return False
        self._nslow += 1
        if self._nslow >= SLOW_RUNS:
            self._nto_skip = min(2 * self._nto_skip + 1, SKIPPED_MAX)
        return True
