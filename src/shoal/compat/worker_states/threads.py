"""Who runs what next, in place of a worker's threads: slots, and amounts that runs demand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from shoal.worker.model.entities import Run


class Threads:
    """Runs that were handed over, the most urgent first, and those that have begun."""

    def __init__(self, nslots: int, amounts: Mapping[str, float]) -> None:
        self.nslots = nslots
        self.total = dict(amounts)
        self.available = dict(amounts)
        self.waiting: list[Run] = []
        self.executing: dict[Any, Run] = {}
        self.long_running: dict[Any, Run] = {}
        self.demands: dict[Any, Mapping[str, float]] = {}
        self.priorities: dict[Any, tuple[int, ...]] = {}
        self.unwanted: set[Any] = set()  # keys of runs that go on though nobody wants their result

    def take(self, runs: Iterable[Run]) -> None:
        """These are ready."""
        self.waiting += runs
        self.waiting.sort(key=lambda run: self.priorities[run.key])

    def begin(self) -> list[Run]:
        """Those that begin now, as far as there are slots and amounts.  Cost: O(runs waiting)."""
        begun: list[Run] = []
        left: list[Run] = []
        for run in self.waiting:
            busy = len(self.executing) >= self.nslots
            if busy or run.key in self.executing or not self._can_have(self.demands[run.key]):
                left.append(run)
                continue
            for name, amount in self.demands[run.key].items():
                self.available[name] -= amount
            self.executing[run.key] = run
            begun.append(run)
        self.waiting = left
        return begun

    def _can_have(self, demands: Mapping[str, float]) -> bool:
        return all(self.available.get(name, 0) >= amount for name, amount in demands.items())

    def withdraw(self, runs: Iterable[Run]) -> list[Run]:
        """Take these back; those that had not begun."""
        taken = [run for run in runs if run in self.waiting]
        for run in taken:
            self.waiting.remove(run)
        return taken

    def secede(self, key: Any) -> Run | None:
        """A run gives its slot to others, and keeps its amounts; None if it has none."""
        run = self.executing.pop(key, None)
        if run is not None:
            self.long_running[key] = run
        return run

    def unwant(self, key: Any) -> None:
        """Nobody wants what a run of this key is about to give, if there is one."""
        if key in self.executing or key in self.long_running:
            self.unwanted.add(key)

    def forget(self, key: Any) -> None:
        """Nothing of this key waits or runs, and nobody asks for it any more."""
        self.demands.pop(key, None)
        self.priorities.pop(key, None)

    def end(self, key: Any) -> Run | None:
        """A run that had begun is over; None if none of this key has."""
        run = self.executing.pop(key, None) or self.long_running.pop(key, None)
        self.unwanted.discard(key)
        if run is not None:
            for name, amount in self.demands[key].items():
                self.available[name] += amount
        return run
