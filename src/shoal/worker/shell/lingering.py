"""Which runs go on for long: those that were being executed at an earlier sign of life already.

Nobody notes when a run begins, as most are over before anybody could ask.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from shoal.ids import RunId
from shoal.worker.model.entities import Run

TOLD_MAX: Final = 64
"""Runs that are told of at once; the longest."""


class Lingering:
    """Looks at what is being executed, as often as a sign of life is given."""

    def __init__(self) -> None:
        self._since: dict[Run, float] = {}  # seen first, those seen longest ago first

    def look(self, executing: Iterable[Run], now: float) -> tuple[list[RunId], list[float]]:
        """Runs that were seen before, and for how long (s), the longest first.

        Cost: O(threads).
        """
        there = dict.fromkeys(run for run in executing if not run.abandoned)
        since = {run: at for run, at in self._since.items() if run in there}
        found = list(since.items())[:TOLD_MAX]
        for run in there:
            since.setdefault(run, now)
        self._since = since
        return [run.message.run for run, _ in found], [now - at for _, at in found]
