"""One graph on one cluster, played by every rival; and many of them, on two processors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from typing import Any

from benchmarks.machine import collector_at_rest
from benchmarks.policies.cluster import Cluster
from benchmarks.policies.graph import Graph, Shape
from benchmarks.policies.kinds import make
from benchmarks.policies.listing import best_plan
from benchmarks.policies.ours import BEAT_SECONDS, Ours
from benchmarks.policies.randomly import Randomly, Rule
from benchmarks.policies.stealing import Stealing

THOROUGH_TASKS_MAX = 30_000
"""Up to so many tasks, several plans are made with full knowledge, and the best one counts."""

RANDOM_TASKS_MAX = 100_000
"""Beyond so many, nobody throws dice: it takes long, and loses as it does with fewer."""

PATIENCE = 8.0
"""Times the makespan of the plan after which a play is given up, and counts as ended."""

SENDS_MAX = 50
"""Values that a rival's worker sends at once; who comes beyond that is told to come back later."""


@dataclass(frozen=True, slots=True)
class Play:
    """How one brain did."""

    seconds: float
    bytes_moved: int
    peak_bytes: int
    """Of results on the worker that held most."""

    was_given_up: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """What is to be played."""

    graph: str
    nworkers: int
    seed: int
    tasks_per_thread: int
    nthreads: int = 2


@dataclass(frozen=True, slots=True)
class Result:
    """One graph on one cluster: every rival, and what our machine took for it."""

    entry: Entry
    ntasks: int
    nlinks_max: int
    """Of one task: its inputs, or those that need it."""

    floor_seconds: float
    """No schedule is shorter: the critical path, or all work on all threads."""

    plan_seconds: float
    """Of the list scheduler that knows everything."""

    plan_bytes: int
    ours: Play
    formulas: Play
    random: Play | None
    """None: it was not played."""

    us_per_task: float
    us_per_step: float
    """Of messages that come together: where inputs travel there are several for each task."""

    longest_step_ms: float
    longest_step: str
    nreturned: int
    """Runs that were recalled before they began."""

    @property
    def bound_seconds(self) -> float:
        """The full-knowledge bound: the shortest schedule that anybody found, knowing all."""
        found = [self.plan_seconds, self.ours.seconds, self.formulas.seconds]
        if self.random is not None:
            found.append(self.random.seconds)
        return max(self.floor_seconds, min(found))

    @property
    def to_bound(self) -> float:
        """Our makespan over the bound's."""
        return self.ours.seconds / self.bound_seconds

    @property
    def to_formulas(self) -> float:
        """Our makespan over the one by the formulas."""
        return self.ours.seconds / self.formulas.seconds

    @property
    def to_random(self) -> float | None:
        """Our makespan over the one of random placement, if that was played."""
        return None if self.random is None else self.ours.seconds / self.random.seconds

    def to_json(self) -> dict[str, Any]:
        """One line of the record."""
        line = asdict(self)
        line.update(line.pop("entry"))
        line["bound_seconds"] = self.bound_seconds
        return line


def play(entry: Entry) -> Result:
    """Play one entry with all brains.  Cost: about 0.2 ms of processor time per task."""
    shape = Shape(entry.nworkers, entry.nthreads)
    graph = make(entry.graph, shape, entry.tasks_per_thread, entry.seed)
    with collector_at_rest():
        plan_seconds, plan_bytes = best_plan(
            graph, shape, thorough=len(graph) <= THOROUGH_TASKS_MAX
        )
        until = PATIENCE * plan_seconds
        cluster = Cluster(graph, shape, beat_seconds=BEAT_SECONDS)
        ours = Ours(cluster)
        cluster.run(ours, until)
        random = None
        if len(graph) <= RANDOM_TASKS_MAX:
            random = _play_rule(Randomly, graph, shape, entry.seed, until)
        return Result(
            entry=entry,
            ntasks=len(graph),
            nlinks_max=max(map(len, (*graph.inputs, *graph.dependents))),
            floor_seconds=max(graph.critical_seconds(), graph.work_seconds / shape.nslots),
            plan_seconds=plan_seconds,
            plan_bytes=plan_bytes,
            ours=_outcome(cluster),
            formulas=_play_rule(Stealing, graph, shape, entry.seed, until),
            random=random,
            us_per_task=ours.spent_ns / 1000 / len(graph),
            us_per_step=ours.spent_ns / 1000 / ours.nsteps,
            longest_step_ms=ours.longest_ns / 1e6,
            longest_step=ours.longest_in,
            nreturned=ours.nreturned,
        )


def longest_step_ms(entry: Entry) -> float:
    """The longest step of our machine, in two plays: of each step, the shorter time.

    Both have the same steps, and what the system does meanwhile falls on different ones.
    """
    shape = Shape(entry.nworkers, entry.nthreads)
    graph = make(entry.graph, shape, entry.tasks_per_thread, entry.seed)
    plays: list[list[int]] = []
    for _ in range(2):
        with collector_at_rest():
            cluster = Cluster(graph, shape, beat_seconds=BEAT_SECONDS)
            ours = Ours(cluster)
            ours.steps_ns = []
            cluster.run(ours, PATIENCE * shape.nworkers * graph.work_seconds)
            plays.append(ours.steps_ns)
    first, second = plays
    return max(min(pair) for pair in zip(first, second, strict=True)) / 1e6


def play_all(entries: Sequence[Entry], nprocesses: int) -> Iterator[Result]:
    """Play entries, each in some process, the largest first; results as they come in order."""
    if nprocesses == 1:
        yield from map(play, entries)
        return
    with ProcessPoolExecutor(nprocesses, mp_context=get_context("spawn")) as pool:
        yield from pool.map(play, entries)


def entries_of(
    graphs: Iterable[str],
    nworkers: Iterable[int],
    nseeds: int,
    tasks_per_thread: int,
    nthreads: int,
) -> list[Entry]:
    """All combinations."""
    return [
        Entry(graph, n, seed, tasks_per_thread, nthreads)
        for n in nworkers
        for graph in graphs
        for seed in range(nseeds)
    ]


def _play_rule(kind: type[Rule], graph: Graph, shape: Shape, seed: int, until: float) -> Play:
    cluster = Cluster(graph, shape, refuse_beyond=SENDS_MAX)
    cluster.run(kind(cluster, seed), until)
    return _outcome(cluster)


def _outcome(cluster: Cluster) -> Play:
    peak_bytes = max(worker.peak_bytes for worker in cluster.workers)
    return Play(cluster.done_at, cluster.bytes_moved, peak_bytes, cluster.was_given_up)
