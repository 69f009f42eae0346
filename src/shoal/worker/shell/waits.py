"""Runs that wait for what other tasks compute: each leaves its thread to a substitute meanwhile."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.worker.model.entities import Run


class WaitingRuns:
    """Which runs wait just now.

    A run that waits for many results at once, as a coroutine may, has a single thread to leave, so
    it counts once; and one that has ended waits no more, whatever it has left behind.
    """

    __slots__ = ("_nwaits_by_run",)

    def __init__(self) -> None:
        self._nwaits_by_run: dict[Run, int] = {}

    def __len__(self) -> int:
        return len(self._nwaits_by_run)

    def count(self, run: Run, change: int, *, is_executing: bool) -> bool:
        """Note that many waits more, or less; whether other runs wait now than before."""
        nruns = len(self._nwaits_by_run)
        nwaits = self._nwaits_by_run.pop(run, 0) + change
        if nwaits > 0 and is_executing:
            self._nwaits_by_run[run] = nwaits
        return len(self._nwaits_by_run) != nruns

    def end(self, runs: Iterable[Run]) -> bool:
        """These have ended; whether any of them would still be waiting."""
        nruns = len(self._nwaits_by_run)
        if nruns:
            for run in runs:
                self._nwaits_by_run.pop(run, None)
        return len(self._nwaits_by_run) != nruns
