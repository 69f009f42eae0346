"""The other half of `formulas.py`: every second, work is taken from those who have too much."""

from __future__ import annotations

from math import log2

from benchmarks.policies.cluster import REFUSED, RETURNED, Cluster, Event
from benchmarks.policies.formulas import Formulas

INTERVAL_SECONDS = 1.0
NLEVELS = 15
LATENCY_SECONDS = 0.1
FAILURES_MAX = 16
"""Tasks of one level and victim that don't pay, in a row, until the rest is taken not to."""


class Stealing(Formulas):
    """Formulas, with work stealing."""

    def __init__(self, cluster: Cluster, seed: int = 0) -> None:
        super().__init__(cluster, seed)
        nworkers = cluster.shape.nworkers
        self._levels: list[list[dict[int, None]]] = [
            [{} for _ in range(NLEVELS)] for _ in range(nworkers)
        ]
        self._level_of: dict[int, int] = {}
        self._unknown: dict[str, dict[int, None]] = {}
        self._moving: dict[int, int] = {}  # task -> thief

    def start(self) -> None:
        """As before, and a first look in a second."""
        super().start()
        self.cluster.wake_at(INTERVAL_SECONDS)

    def wake(self) -> None:
        """Look for what is better done elsewhere."""
        self.hear_bandwidth()
        self._balance()
        self.flush()
        self.cluster.wake_at(self.cluster.now + INTERVAL_SECONDS)

    def assign(self, worker: int, task: int) -> None:
        """Send it, and note how cheap it is to move."""
        super().assign(worker, task)
        self._enter(task)

    def unassign(self, task: int) -> None:
        """It can't be taken any more."""
        level = self._level_of.pop(task, None)
        if level is not None:
            self._levels[self.worker_of[task]][level].pop(task, None)
        else:
            self._unknown.get(self.prefix_of[task], {}).pop(task, None)
        super().unassign(task)

    def on_other(self, worker: int, event: Event) -> None:
        """A victim has answered."""
        if event[0] is RETURNED:
            run = event[1]
            thief = self._moving.pop(run.task)
            self.unassign(run.task)
            self.assign(thief, run.task)
        elif event[0] is REFUSED:
            self._moving.pop(event[1], None)

    def _enter(self, task: int) -> None:
        prefix = self.prefix_of[task]
        needs = self.graph.inputs[task]
        if not needs:
            level = 0
        elif prefix not in self.seconds_of:
            self._unknown.setdefault(prefix, {})[task] = None
            return
        else:
            nbytes = self.graph.nbytes
            transfer = sum([nbytes[i] for i in needs]) / self.bytes_per_second + LATENCY_SECONDS
            level = max(0, round(log2(transfer / max(1e-6, self.seconds_of[prefix])) + 6))
            if level >= NLEVELS:
                return
        self._level_of[task] = level
        self._levels[self.worker_of[task]][level][task] = None

    def _balance(self) -> None:
        for prefix in [prefix for prefix in self._unknown if prefix in self.seconds_of]:
            for task in self._unknown.pop(prefix):
                self._enter(task)
        thieves = [self.slots[index] for index in self.idle]
        if not thieves or len(thieves) == len(self.slots):
            return
        victims = [self.slots[index] for index in self.saturated]
        if not victims:
            busiest = sorted(self.slots, key=self.occupancy, reverse=True)[:10]
            victims = [
                slots
                for slots in busiest
                if self.occupancy(slots) > 0.2 and len(slots.tasks) > self.nthreads
            ]
        occupancy = {slots.index: self.occupancy(slots) for slots in (*victims, *thieves)}
        pool = sorted(thieves, key=lambda slots: occupancy[slots.index], reverse=True)
        victims.sort(key=lambda slots: -occupancy[slots.index])
        for level in range(NLEVELS):
            for victim in victims:
                if victim.index in self.idle:
                    continue
                nfailures = 0
                for task in list(self._levels[victim.index][level]):
                    if task in self._moving:
                        continue
                    if not pool:
                        return
                    thief = pool[-1]  # the least occupied, until it has enough
                    if not self._pays(task, victim.index, thief.index, occupancy):
                        nfailures += 1
                        if nfailures == FAILURES_MAX:
                            break
                        continue
                    nfailures = 0
                    self._moving[task] = thief.index
                    self.say(victim.index, ("recall", task, self.run_of[task]))
                    busy = occupancy[thief.index] / self.nthreads
                    if busy > self.average() or busy > self.expected(task):
                        pool.pop()

    def _pays(self, task: int, victim: int, thief: int, occupancy: dict[int, float]) -> bool:
        compute = self.expected(task)
        here = self.missing_bytes(task, thief) / self.bytes_per_second
        there = self.missing_bytes(task, victim) / self.bytes_per_second
        if occupancy[thief] + here + compute > occupancy[victim] - (there + compute) / 2:
            return False
        occupancy[thief] += here + compute
        occupancy[victim] -= there + compute
        return True
