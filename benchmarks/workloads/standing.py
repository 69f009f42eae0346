"""What a cluster costs by being there: start, idle time, memory."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise

from benchmarks.bench import CLUSTER, Bench, check
from benchmarks.errors import ClusterNotComplete
from benchmarks.figures import Figure, percentile
from benchmarks.processes import Meter
from benchmarks.workloads import tasks

SETTLE_SECONDS = 1.5
CROWD_SECONDS = 5.0
BATCH = 1_000
IMPORT_TIMER = """
import sys, time
import dask
started_at = time.perf_counter()
module = __import__(sys.argv[1])
module.Client, module.LocalCluster
print(time.perf_counter() - started_at)
"""


def startup(bench: Bench) -> Iterator[Figure]:
    """Import over dask; then a cluster of two, its first task, its end; and a second cluster."""
    command = [sys.executable, "-c", IMPORT_TIMER, bench.module_name]
    seconds = [
        float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        for _ in range(bench.size)
    ]
    yield Figure("import_over_dask_seconds", percentile(seconds, 50), "s")
    yield from _life(bench, "")
    yield from _life(bench, "second_")


def _life(bench: Bench, prefix: str) -> Iterator[Figure]:
    module = bench.module
    instants = [time.perf_counter()]
    cluster = module.LocalCluster(**CLUSTER)
    instants.append(time.perf_counter())
    client = module.Client(cluster)
    check("first task", client.submit(tasks.increment, 1).result(), 2)
    instants.append(time.perf_counter())
    client.close()
    cluster.close()
    instants.append(time.perf_counter())
    start, first_task, close = (b - a for a, b in pairwise(instants))
    yield Figure(f"{prefix}start_seconds", start, "s")
    yield Figure(f"{prefix}first_task_seconds", first_task, "s")
    yield Figure(f"{prefix}close_seconds", close, "s")


def idle(bench: Bench) -> Iterator[Figure]:
    """Processor time of a cluster with nothing to do, in percent of one core."""
    with bench.separate_cluster() as session:
        check("first task", session.client.submit(tasks.increment, 1).result(), 2)
        time.sleep(SETTLE_SECONDS)
        with session.meter.span() as span:
            time.sleep(bench.size)
        rss = session.meter.rss_bytes_by_role()
    percent = 100 / span.wall_seconds
    yield Figure("cpu_percent", span.cpu_seconds * percent, "%")
    for role in ("client", "scheduler", "workers", "other"):
        seconds = span.cpu_seconds_by_role.get(role)
        if seconds is not None:
            yield Figure(f"cpu_percent.{role}", seconds * percent, "%")
    yield Figure("wakeups_per_second", span.nwakeups / span.wall_seconds, "1/s")
    yield Figure("rss_mb", sum(rss.values()) / 1e6, "MB")
    for role, nbytes in rss.items():
        yield Figure(f"rss_mb.{role}", nbytes / 1e6, "MB")


def crowd(bench: Bench) -> Iterator[Figure]:
    """`bench.size` workers in this process, each with a connection and a thread of its own."""
    module = bench.module
    started_at = time.perf_counter()
    cluster = module.LocalCluster(
        n_workers=bench.size, threads_per_worker=1, processes=False, dashboard_address=None
    )
    client = module.Client(cluster)
    nworkers = len(client.scheduler_info()["workers"])
    yield Figure("start_seconds", time.perf_counter() - started_at, "s")
    if nworkers != bench.size:
        raise ClusterNotComplete(nworkers, bench.size)
    numbers = range(20 * bench.size)
    check("a map", client.gather(client.map(tasks.increment, numbers)), [n + 1 for n in numbers])
    time.sleep(SETTLE_SECONDS)
    with Meter(None, {}).span() as span:
        time.sleep(CROWD_SECONDS)
    yield Figure("cpu_percent", 100 * span.cpu_seconds / span.wall_seconds, "%")
    started_at = time.perf_counter()
    client.close()
    cluster.close()
    yield Figure("close_seconds", time.perf_counter() - started_at, "s")


def gone_tasks(bench: Bench) -> Iterator[Figure]:
    """Growth of each process for a task that has come, been gathered and been released."""
    with bench.separate_cluster() as session:

        def batches(first: int, ntasks: int) -> None:
            for start in range(first, first + ntasks, BATCH):
                numbers = range(start, start + BATCH)
                futures = session.client.map(tasks.identity, numbers)
                check("map", session.client.gather(futures), list(numbers))

        batches(-4 * BATCH, 4 * BATCH)  # pools, caches and logs of bounded size fill up first
        before = session.meter.rss_bytes_by_role()
        batches(0, bench.size)
        after = session.meter.rss_bytes_by_role()
    for role, nbytes in after.items():
        grown = (nbytes - before.get(role, 0)) / bench.size
        yield Figure(f"bytes_per_task.{role}", grown, "B")


def held_tasks(bench: Bench) -> Iterator[Figure]:
    """Memory for a finished task whose future the client still holds."""
    numbers = range(bench.size)
    with bench.separate_cluster() as session:
        warm = range(-BATCH, 0)
        check("warm-up", session.client.gather(session.client.map(tasks.identity, warm)), [*warm])
        before = session.meter.rss_bytes_by_role()
        futures = session.client.map(tasks.identity, numbers)
        check("map", session.client.gather(futures), list(numbers))
        after = session.meter.rss_bytes_by_role()
    for role, nbytes in after.items():
        grown = (nbytes - before.get(role, 0)) / bench.size
        yield Figure(f"bytes_per_task.{role}", grown, "B")
