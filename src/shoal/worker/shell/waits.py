"""Runs that wait for what other tasks compute, or have seceded: each has a substitute meanwhile."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.worker.model.entities import Run


class WaitingRuns:
    """Which runs wait just now; those that have seceded are not counted among them.

    A run that waits for many results at once, as a coroutine may, has a single thread to leave, so
    it counts once; and one that has ended waits no more, whatever it has left behind.
    """

    __slots__ = ("_nboth", "_nwaits_by_run", "_seceded")

    def __init__(self) -> None:
        self._nwaits_by_run: dict[Run, int] = {}
        self._seceded: dict[Run, None] = {}
        self._nboth = 0  # that wait and have seceded

    def __len__(self) -> int:
        return len(self._nwaits_by_run) - self._nboth

    def count(self, run: Run, change: int, *, is_executing: bool) -> bool:
        """Note that many waits more, or less; whether other runs wait now than before."""
        nruns = len(self)
        nwaited = self._nwaits_by_run.pop(run, 0)
        nwaits = nwaited + change
        if nwaits > 0 and is_executing:
            self._nwaits_by_run[run] = nwaits
        if run in self._seceded:
            self._nboth += (run in self._nwaits_by_run) - (nwaited > 0)
        return len(self) != nruns

    @property
    def are_any(self) -> bool:
        """Whether any run waits or has seceded."""
        return bool(self._nwaits_by_run or self._seceded)

    def secede(self, run: Run) -> None:
        """It has a substitute from now on, whether it waits or not."""
        if run not in self._seceded:
            self._seceded[run] = None
            self._nboth += run in self._nwaits_by_run

    def rejoin(self, run: Run) -> None:
        """It has one only while it waits."""
        if run in self._seceded:
            del self._seceded[run]
            self._nboth -= run in self._nwaits_by_run

    def end(self, runs: Iterable[Run]) -> bool:
        """These have ended; whether any of them would still be waiting."""
        nruns = len(self)
        for run in runs:
            self.rejoin(run)
            self._nwaits_by_run.pop(run, None)
        return len(self) != nruns
