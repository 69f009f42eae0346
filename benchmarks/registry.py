"""The table of all workloads, in the order in which they are run and reported."""

from __future__ import annotations

from fnmatch import fnmatchcase

from benchmarks.bench import Workload
from benchmarks.errors import UnknownWorkload
from benchmarks.workloads import graphs, latency, standing, throughput
from benchmarks.workloads.collections import COLLECTIONS
from benchmarks.workloads.plain_graphs import graph_workload, growth, scheduler_cost, stencil
from benchmarks.workloads.relay import relay
from benchmarks.workloads.transfer import worker_to_worker

GROWTH = "independent tasks that note when they start; client and scheduler apart"

WORKLOADS: tuple[Workload, ...] = (
    Workload(
        "latency",
        "submit and result, one task at a time; and after a pause of 30 ms",
        latency.submit_result,
        full=300,
        quick=50,
        pool=latency.submit_result_pool,
    ),
    Workload(
        "relay",
        "the road of `latency` with nothing on it: its floor",
        relay,
        full=300,
        quick=50,
        only_shoal=True,
    ),
    Workload(
        "map_10k",
        "map and gather of no-ops; pool: submit one by one",
        throughput.map_gather,
        full=10_000,
        quick=1_500,
        pool=throughput.submit_loop_pool,
    ),
    Workload(
        "submit_loop",
        "submit one by one, then gather",
        throughput.submit_loop,
        full=5_000,
        quick=1_000,
        pool=throughput.submit_loop_pool,
    ),
    Workload("chain", "a graph that is one chain", latency.chain, full=1_000, quick=100),
    Workload("chain_futures", "a chain of futures", latency.chain_futures, full=500, quick=60),
    Workload("tree", "binary reduction", graph_workload(graphs.tree), full=13, quick=9),
    Workload("merge", "many into one", graph_workload(graphs.merge), full=10_000, quick=800),
    Workload("shuffle", "all to all", graph_workload(graphs.shuffle), full=70, quick=25),
    Workload("stencil", "grid with neighbours", graph_workload(stencil), full=17, quick=8),
    Workload("bag", "map, filter, sum", graph_workload(graphs.bag), full=1_200, quick=200),
    Workload(
        "scheduler_merge",
        "the scheduler's processor time, one process of its own: many into one",
        scheduler_cost(graphs.merge),
        full=10_000,
        quick=800,
    ),
    Workload(
        "scheduler_tree",
        "the scheduler's processor time, one process of its own: two inputs each",
        scheduler_cost(graphs.tree),
        full=13,
        quick=9,
    ),
    Workload("growth_1k", GROWTH, growth, full=1_000, quick=500),
    Workload("growth_10k", GROWTH, growth, full=10_000, quick=1_500),
    Workload(
        "growth_100k",
        GROWTH,
        growth,
        full=100_000,
        quick=4_000,
        timeout_seconds=600,
        rounds_max=3,
    ),
    Workload(
        "growth_500k",
        GROWTH,
        growth,
        full=500_000,
        quick=8_000,
        timeout_seconds=600,
        only_shoal=True,
        rounds_max=3,
    ),
    Workload("transfer_1kB", "worker to worker", worker_to_worker(1_000), full=60, quick=15),
    Workload("transfer_1MB", "worker to worker", worker_to_worker(1_000_000), full=40, quick=10),
    Workload("transfer_100MB", "worker to worker", worker_to_worker(100_000_000), full=9, quick=3),
    Workload("startup", "import, start, first task, close", standing.startup, full=3, quick=1),
    Workload("idle", "a cluster with nothing to do", standing.idle, full=5, quick=3),
    Workload(
        "crowd",
        "so many workers in one process, with nothing to do; distributed comes to no end",
        standing.crowd,
        full=200,
        quick=20,
        only_shoal=True,
        rounds_max=3,
    ),
    Workload(
        "gone_tasks",
        "memory left behind by tasks that are gone",
        standing.gone_tasks,
        full=20_000,
        quick=2_000,
        timeout_seconds=240,
        rounds_max=3,
    ),
    Workload(
        "held_tasks",
        "memory of tasks whose futures are held",
        standing.held_tasks,
        full=20_000,
        quick=3_000,
        timeout_seconds=240,
        rounds_max=3,
    ),
    *COLLECTIONS,
)


def select(patterns: tuple[str, ...]) -> tuple[Workload, ...]:
    """The workloads that a pattern names (`*` and `?` allowed); all of them without patterns.

    Raises `UnknownWorkload` for a pattern that names none.
    """
    names = tuple(workload.name for workload in WORKLOADS)
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise UnknownWorkload(pattern, names)
    return tuple(
        workload
        for workload in WORKLOADS
        if not patterns or any(fnmatchcase(workload.name, pattern) for pattern in patterns)
    )
