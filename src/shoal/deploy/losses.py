"""Workers that a scheduler has lost, and that do not come back in time: a cluster lets them go."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

from shoal.observe.hooks import SchedulerPlugin


class LostWorkers(SchedulerPlugin):
    """Tells a cluster the names of workers that have been gone for so long.

    It hears of workers from the scheduler, on that one's loop, and knows those that came since it
    was added.
    """

    def __init__(self, patience_seconds: float, expired: Callable[[str], None]) -> None:
        """Nothing is told yet.

        Args:
            patience_seconds: how long a worker that has gone may take to come back.
            expired: called with the name of one that has not.
        """
        self._patience_seconds = patience_seconds
        self._expired = expired
        self._names: dict[str, str] = {}
        """Address → name of the workers that are there."""
        self._nthere: Counter[str] = Counter()
        """Name → how many of them have it: for a moment they may be two."""
        self._timers: dict[str, asyncio.TimerHandle] = {}
        """Name → until when it may come back."""

    def add_worker(self, scheduler: Any, worker: str) -> None:
        """It has come, or come back."""
        seen = scheduler.workers.get(worker)
        if seen is not None:  # else it has gone already, in the same step
            name = self._names[worker] = str(seen.name)
            self._nthere[name] += 1
            self.forget(name)

    def remove_worker(self, scheduler: Any, worker: str, **kwargs: Any) -> None:
        """It has gone, and its time runs; unless another of its name has come already."""
        name = self._names.pop(worker, None)
        if name is None:
            return
        self._nthere[name] -= 1
        if not self._nthere[name]:
            del self._nthere[name]
            loop = asyncio.get_running_loop()
            self._timers[name] = loop.call_later(self._patience_seconds, self._expire, name)

    def is_there(self, name: str) -> bool:
        """Whether a worker of that name is connected."""
        return name in self._nthere

    def forget(self, name: str) -> None:
        """Nobody waits for it any more."""
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()

    async def close(self) -> None:
        """The scheduler has closed, or the cluster has."""
        for name in list(self._timers):
            self.forget(name)

    def _expire(self, name: str) -> None:
        del self._timers[name]
        self._expired(name)
