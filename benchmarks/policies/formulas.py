"""A rival that follows the formulas that users of Dask know, from what is documented of them.

Root-ish tasks queue for workers with a free slot (1.1 a thread); other tasks go to the holder of an
input that looks least busy, at once; every second, what may start sooner elsewhere is asked back
and moved.  Not modelled: durations of tasks that still run, limits on transfers.  A choice among
many equals is made among the first `LOOKED_AT` of them.
"""

from __future__ import annotations

from heapq import heappop, heappush
from math import ceil

from benchmarks.policies.cluster import Cluster, Run
from benchmarks.policies.randomly import Rule

SATURATION = 1.1
UNKNOWN_SECONDS = 0.5
LOOKED_AT = 64


class Slots:
    """What one worker was given, and the sums over it."""

    __slots__ = ("comm_bytes", "counts", "index", "is_saturated", "measured", "nbytes", "tasks")

    def __init__(self, index: int) -> None:
        self.index = index
        self.tasks: dict[int, int] = {}  # task -> bytes to be fetched for it
        self.counts: dict[str, int] = {}  # by prefix
        self.comm_bytes = 0
        self.nbytes = 0  # that it holds
        self.measured = 100e6  # bytes per second, a moving average
        self.is_saturated = False


class Formulas(Rule):
    """The rival; `stealing.py` has its other half."""

    def __init__(self, cluster: Cluster, seed: int = 0) -> None:
        super().__init__(cluster, seed)
        shape = cluster.shape
        self.nthreads = shape.nthreads
        self.nslots = max(1, ceil(SATURATION * shape.nthreads))
        self.bytes_per_second = 100e6
        self.slots = [Slots(index) for index in range(shape.nworkers)]
        self.seconds_of: dict[str, float] = {}  # by prefix, moving averages
        self.prefix_of = [self.graph.prefixes[layer] for layer in self.graph.layers]
        self.worker_of: dict[int, int] = {}
        self.run_of: dict[int, int] = {}
        self.idle = dict.fromkeys(range(shape.nworkers))
        self.saturated: dict[int, None] = {}
        self._counts: dict[str, int] = {}  # of all workers
        self._comm_bytes = 0
        self._queue: list[int] = []
        self._by_count: list[dict[int, None]] = [{} for _ in range(self.nslots)]
        self._by_count[0] = dict.fromkeys(range(shape.nworkers))
        self._nsent = 0
        self._nplaced = 0
        self._is_rootish = self._find_rootish()

    # --- what is said ------------------------------------------------------------------------

    def place(self, ready: list[int]) -> None:
        """Queue what is root-ish, send the rest."""
        for task in ready:
            if self._is_rootish[self.graph.layers[task]]:
                heappush(self._queue, task)
            else:
                self.assign(self._choose(task), task)
        while self._queue:
            worker = self._least_busy()
            if worker is None:
                break
            self.assign(worker, heappop(self._queue))

    def on_finished(self, worker: int, run: Run) -> None:
        """Learn how long it took; the worker has room."""
        prefix = self.prefix_of[run.task]
        before = self.seconds_of.get(prefix, -1.0)
        self.seconds_of[prefix] = run.seconds if before < 0 else (before + run.seconds) / 2
        self.slots[worker].nbytes += self.graph.nbytes[run.task]
        self.unassign(run.task)

    def on_arrived(self, worker: int, task: int, seconds: float) -> None:
        """Learn how fast links are."""
        slots, nbytes = self.slots[worker], self.graph.nbytes[task]
        slots.nbytes += nbytes
        if nbytes > 1e6:
            slots.measured = 0.95 * slots.measured + 0.05 * nbytes / seconds

    def hear_bandwidth(self) -> None:
        """What workers have measured comes with their signs of life."""
        n = len(self.slots)
        for slots in self.slots:
            if slots.measured != 100e6:
                self.bytes_per_second += (slots.measured - self.bytes_per_second) / n

    # --- sums --------------------------------------------------------------------------------

    def expected(self, task: int) -> float:
        """Seconds that a task is expected to take."""
        return self.seconds_of.get(self.prefix_of[task], UNKNOWN_SECONDS)

    def occupancy(self, slots: Slots) -> float:
        """Seconds of work that a worker was given and hasn't answered for."""
        total = slots.comm_bytes / self.bytes_per_second
        seconds_of = self.seconds_of
        for prefix, count in slots.counts.items():
            total += seconds_of.get(prefix, UNKNOWN_SECONDS) * count
        return total

    def average(self) -> float:
        """Occupancy per thread of all workers."""
        total = self._comm_bytes / self.bytes_per_second
        for prefix, count in self._counts.items():
            total += self.seconds_of.get(prefix, UNKNOWN_SECONDS) * count
        return total / self.cluster.shape.nslots

    def missing_bytes(self, task: int, worker: int) -> int:
        """Bytes of inputs that are not on a worker."""
        held = self.cluster.workers[worker].held
        nbytes = self.graph.nbytes
        return sum([nbytes[i] for i in self.graph.inputs[task] if i not in held])

    def assign(self, worker: int, task: int) -> None:
        """Send `task` to `worker`."""
        self._nsent += 1
        self.worker_of[task], self.run_of[task] = worker, self._nsent
        slots, prefix = self.slots[worker], self.prefix_of[task]
        self._move(slots, 1)
        comm = slots.tasks[task] = self.missing_bytes(task, worker)
        slots.comm_bytes += comm
        self._comm_bytes += comm
        slots.counts[prefix] = slots.counts.get(prefix, 0) + 1
        self._counts[prefix] = self._counts.get(prefix, 0) + 1
        self.check(slots)
        self.send(worker, task, self._nsent)

    def unassign(self, task: int) -> None:
        """`task` is no longer where it was placed."""
        slots, prefix = self.slots[self.worker_of.pop(task)], self.prefix_of[task]
        del self.run_of[task]
        self._move(slots, -1)
        comm = slots.tasks.pop(task)
        slots.comm_bytes -= comm
        self._comm_bytes -= comm
        self._counts[prefix] -= 1
        slots.counts[prefix] -= 1
        if not slots.counts[prefix]:
            del slots.counts[prefix]
        self.check(slots)

    def check(self, slots: Slots) -> None:
        """Whether a worker is idle, or saturated."""
        nprocessing, nthreads = len(slots.tasks), self.nthreads
        average = self.average()
        occupancy = self.occupancy(slots)
        if nprocessing < nthreads or occupancy < nthreads * average / 2:
            self.idle[slots.index] = None
            self.saturated.pop(slots.index, None)
            return
        self.idle.pop(slots.index, None)
        pending = 0.0
        if nprocessing > nthreads:
            pending = occupancy * (nprocessing - nthreads) / (nprocessing * nthreads)
        if pending > 0.4 and pending > 1.9 * average:
            self.saturated[slots.index] = None
        else:
            self.saturated.pop(slots.index, None)

    # --- choices -----------------------------------------------------------------------------

    def _move(self, slots: Slots, by: int) -> None:
        """Keep workers with free slots sorted by what they have; called before `tasks` changes."""
        before, by_count = len(slots.tasks), self._by_count
        if before < self.nslots:
            by_count[before].pop(slots.index, None)
        if before + by < self.nslots:
            by_count[before + by][slots.index] = None

    def _least_busy(self) -> int | None:
        for workers in self._by_count:
            if workers:
                return next(iter(workers))
        return None

    def _choose(self, task: int) -> int:
        needs = self.graph.inputs[task]
        if not needs:
            return self._choose_any()
        candidates: dict[int, None] = {}
        for i in needs:
            for worker in self.who_has[i][:LOOKED_AT]:
                candidates[worker] = None
            if len(candidates) > LOOKED_AT:
                break
        if len(candidates) == 1:
            return next(iter(candidates))

        def objective(worker: int) -> tuple[float, int]:
            slots = self.slots[worker]
            comm = self.missing_bytes(task, worker) / self.bytes_per_second
            return self.occupancy(slots) / self.nthreads + comm, slots.nbytes

        return min(candidates, key=objective)

    def _choose_any(self) -> int:
        self._nplaced += 1
        pool = self.idle or range(len(self.slots))
        if len(pool) >= 20:
            if pool is self.idle:  # in turns: the first goes to the end
                worker: int = next(iter(self.idle))
                del self.idle[worker]
                self.idle[worker] = None
                return worker
            return self._nplaced % len(self.slots)
        return min(pool, key=lambda worker: self.occupancy(self.slots[worker]))

    def _find_rootish(self) -> list[bool]:
        """Of each layer: many tasks, which need next to nothing."""
        graph = self.graph
        ntasks = [0] * len(graph.prefixes)
        needs: list[dict[int, None]] = [{} for _ in graph.prefixes]
        for task, layer in enumerate(graph.layers):
            ntasks[layer] += 1
            for i in graph.inputs[task]:
                needs[layer][graph.layers[i]] = None
        return [
            ntasks[layer] > 2 * self.cluster.shape.nslots
            and len(needs[layer]) < 5
            and sum(ntasks[other] for other in needs[layer]) < 5
            for layer in range(len(graph.prefixes))
        ]
