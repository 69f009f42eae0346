"""A list scheduler that knows everything beforehand: every duration, every size, every link.

Tasks are taken in the order of their upward rank (the longest way to the end of the graph), from a
heap; each goes to the worker on which it would end first, of those that hold its inputs and those
with the earliest free thread.  Data leaves as soon as it exists, there are no messages to wait
for, and copies are passed on.  The plan is then played once more, each worker taking the most
urgent of what has its inputs, since a plan made in one pass leaves gaps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush, heapreplace

from benchmarks.policies.graph import Graph, Shape

IDLE_LOOKED_AT = 3
HOLDERS_LOOKED_AT = 6
"""Candidates for each task."""


@dataclass
class Plan:
    """Who runs each task, in which order, and by whom each copy is given."""

    makespan_seconds: float = 0.0
    bytes_moved: int = 0
    worker_of: list[int] = field(default_factory=list)
    ranks: Sequence[float] = ()
    copies: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    """(task, worker that holds it) -> workers that it gives copies to."""


def upward_ranks(graph: Graph, shape: Shape, moved_ratio: float) -> list[float]:
    """Seconds from the start of each task to the end of the graph, on the longest way.

    Args:
        moved_ratio: how much of the time that inputs take counts; 0 if all were local.
    """
    ranks = [0.0] * len(graph)
    for task in range(len(graph) - 1, -1, -1):
        users = graph.dependents[task]
        rest = max([ranks[user] for user in users], default=0.0)
        move = graph.nbytes[task] / shape.bytes_per_second + 2 * shape.latency_seconds
        ranks[task] = graph.seconds[task] + rest + (move * moved_ratio if users else 0.0)
    return ranks


class Lister:
    """The plan in the making."""

    def __init__(self, graph: Graph, shape: Shape, ranks: Sequence[float]) -> None:
        self.graph = graph
        self.shape = shape
        self.plan = Plan(ranks=ranks, worker_of=[-1] * len(graph))
        self._out_free_at = [0.0] * shape.nworkers
        self._in_free_at = [0.0] * shape.nworkers
        self._threads = [[0.0] * shape.nthreads for _ in range(shape.nworkers)]
        self._free = [(0.0, index) for index in range(shape.nworkers)]  # heap, lazily corrected
        self._there_at: list[dict[int, float]] = [{} for _ in range(len(graph))]
        self._sources: list[list[tuple[float, int]]] = [[] for _ in range(len(graph))]

    def make(self) -> Plan:
        """Place every task."""
        graph, ranks = self.graph, self.plan.ranks
        nmissing = [len(needs) for needs in graph.inputs]
        ready = [(-ranks[task], task) for task, missing in enumerate(nmissing) if not missing]
        heapify(ready)
        while ready:
            task = heappop(ready)[1]
            self._place(task)
            for user in graph.dependents[task]:
                nmissing[user] -= 1
                if not nmissing[user]:
                    heappush(ready, (-ranks[user], user))
        return self.plan

    def _place(self, task: int) -> None:
        best, best_start = -1, float("inf")
        for worker in self._candidates(task):
            start = max(self._inputs_at(task, worker), self._threads[worker][0])
            if start < best_start:
                best, best_start = worker, start
        self._commit(task, best)

    def _candidates(self, task: int) -> list[int]:
        chosen: dict[int, None] = {}
        needs = self.graph.inputs[task]
        if len(needs) > HOLDERS_LOOKED_AT:
            nbytes = self.graph.nbytes
            needs = tuple(sorted(needs, key=nbytes.__getitem__)[-HOLDERS_LOOKED_AT:])
        for i in needs:
            for nseen, worker in enumerate(self._there_at[i]):
                if nseen == HOLDERS_LOOKED_AT:
                    break
                chosen[worker] = None
        popped: list[tuple[float, int]] = []
        free, threads = self._free, self._threads
        while len(popped) < min(IDLE_LOOKED_AT, len(free)):
            at, worker = free[0]
            if at < threads[worker][0]:
                heapreplace(free, (threads[worker][0], worker))
                continue
            popped.append(heappop(free))
            chosen[worker] = None
            if not free:
                break
        for entry in popped:
            heappush(free, entry)
        return list(chosen)

    def _inputs_at(self, task: int, worker: int) -> float:
        """When all inputs could be on `worker`; nothing is booked."""
        latest = 0.0
        in_free_at = self._in_free_at[worker]
        for i in self.graph.inputs[task]:
            at = self._there_at[i].get(worker)
            if at is None:
                at = max(self._source(i)[0], in_free_at) + self._seconds(i)
                in_free_at = at
                at += self.shape.latency_seconds
            latest = max(latest, at)
        return latest

    def _seconds(self, task: int) -> float:
        return self.graph.nbytes[task] / self.shape.bytes_per_second

    def _source(self, task: int) -> tuple[float, int]:
        """When a copy of `task` could leave at the earliest, and from where."""
        sources, out_free_at = self._sources[task], self._out_free_at
        while True:
            at, worker = sources[0]
            really = max(self._there_at[task][worker], out_free_at[worker])
            if really <= at:
                return sources[0]
            heapreplace(sources, (really, worker))

    def _commit(self, task: int, worker: int) -> None:
        plan, latency = self.plan, self.shape.latency_seconds
        start = self._threads[worker][0]
        for i in self.graph.inputs[task]:
            at = self._there_at[i].get(worker)
            if at is None:
                leaves_at, source = self._source(i)
                self._out_free_at[source] = leaves_at + self._seconds(i)
                arrived = max(leaves_at, self._in_free_at[worker]) + self._seconds(i)
                self._in_free_at[worker] = arrived
                at = self._there_at[i][worker] = arrived + latency
                heappush(self._sources[i], (at, worker))
                plan.copies.setdefault((i, source), []).append(worker)
                plan.bytes_moved += self.graph.nbytes[i]
            start = max(start, at)
        end = start + self.graph.seconds[task]
        heapreplace(self._threads[worker], end)
        self._there_at[task] = {worker: end}
        self._sources[task] = [(end, worker)]
        plan.worker_of[task] = worker
        plan.makespan_seconds = max(plan.makespan_seconds, end)


def replay(graph: Graph, shape: Shape, plan: Plan) -> float:
    """Seconds that the plan takes if no thread waits while something placed on it could run."""
    nmissing = [len(needs) for needs in graph.inputs]
    nfree = [shape.nthreads] * shape.nworkers
    ready: list[list[tuple[float, int]]] = [[] for _ in range(shape.nworkers)]
    out_free_at = [0.0] * shape.nworkers
    in_free_at = [0.0] * shape.nworkers
    users_at: dict[tuple[int, int], list[int]] = {}
    for task, needs in enumerate(graph.inputs):
        for i in needs:
            users_at.setdefault((i, plan.worker_of[task]), []).append(task)
        if not needs:
            heappush(ready[plan.worker_of[task]], (-plan.ranks[task], task))
    agenda: list[tuple[float, int, int, int]] = []  # time, serial, task, worker (~: it arrives)
    serial = 0
    touched = list(range(shape.nworkers))
    now = 0.0
    while True:
        for worker in touched:
            while nfree[worker] and ready[worker]:
                task = heappop(ready[worker])[1]
                nfree[worker] -= 1
                serial += 1
                heappush(agenda, (now + graph.seconds[task], serial, task, worker))
        if not agenda:
            return now
        now, _, task, worker = heappop(agenda)
        if worker < 0:
            worker = ~worker
        else:
            nfree[worker] += 1
        for user in users_at.get((task, worker), ()):
            nmissing[user] -= 1
            if not nmissing[user]:
                heappush(ready[worker], (-plan.ranks[user], user))
        touched = [worker]
        seconds = graph.nbytes[task] / shape.bytes_per_second
        for other in plan.copies.get((task, worker), ()):
            leaves_at = max(now, out_free_at[worker])
            out_free_at[worker] = leaves_at + seconds
            in_free_at[other] = max(leaves_at, in_free_at[other]) + seconds
            serial += 1
            at = in_free_at[other] + shape.latency_seconds
            heappush(agenda, (at, serial, task, ~other))


def best_plan(graph: Graph, shape: Shape, *, thorough: bool = True) -> tuple[float, int]:
    """Makespan in seconds and bytes moved of the best of some plans."""
    ways = [upward_ranks(graph, shape, 1.0)]
    if thorough:
        ways.append(upward_ranks(graph, shape, 0.0))
        ways.append([float(-task) for task in range(len(graph))])
    best = (float("inf"), 0)
    for ranks in ways:
        plan = Lister(graph, shape, ranks).make()
        seconds = min(plan.makespan_seconds, replay(graph, shape, plan))
        best = min(best, (seconds, plan.bytes_moved))
    return best
