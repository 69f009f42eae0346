"""Many independent tasks, by `map` and one by one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

from benchmarks.bench import Bench, check
from benchmarks.figures import Figure
from benchmarks.workloads import tasks
from benchmarks.workloads.pool import warm_pool

WARM = range(-300, 0)


def map_gather(bench: Bench) -> Iterator[Figure]:
    """`map` over no-ops, and `gather` of all results."""
    numbers = range(bench.size)
    with bench.cluster() as session:
        client = session.client
        check("warm-up", client.gather(client.map(tasks.identity, WARM)), list(WARM))
        with session.meter.span() as span:
            started_at = time.perf_counter()
            futures = client.map(tasks.identity, numbers)
            map_seconds = time.perf_counter() - started_at
            values = client.gather(futures)
        check("map", values, list(numbers))
        yield from span.per_task(bench.size)
        yield Figure("map_call_us_per_task", map_seconds * 1e6 / bench.size, "us")
        yield Figure("tasks_per_second", bench.size / span.wall_seconds, "1/s", "higher")


def submit_loop(bench: Bench) -> Iterator[Figure]:
    """One `submit` after another, then `gather`."""
    numbers = range(bench.size)
    with bench.cluster() as session:
        client = session.client
        check("warm-up", client.gather(client.map(tasks.identity, WARM)), list(WARM))
        with session.meter.span() as span:
            futures = [client.submit(tasks.identity, number) for number in numbers]
            values = client.gather(futures)
        check("submit loop", values, list(numbers))
        yield from span.per_task(bench.size)


def submit_loop_pool(bench: Bench) -> Iterator[Figure]:
    """`ProcessPoolExecutor.submit`, which has no batches: the pool's counterpart of both."""
    numbers = range(bench.size)
    with ProcessPoolExecutor(2) as pool:
        meter = warm_pool(pool)
        with meter.span() as span:
            futures = [pool.submit(tasks.identity, number) for number in numbers]
            values = [future.result() for future in futures]
        check("process pool", values, list(numbers))
        yield from span.per_task(bench.size)
        yield Figure("tasks_per_second", bench.size / span.wall_seconds, "1/s", "higher")
