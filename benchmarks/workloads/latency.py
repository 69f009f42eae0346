"""How long one task takes from submit to result, and a chain of tasks per link."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from benchmarks.bench import Bench, check
from benchmarks.figures import Figure, percentile
from benchmarks.workloads import graphs, tasks
from benchmarks.workloads.pool import warm_pool

PAUSE_SECONDS = 0.030  # longer than any send timer of `distributed`, so that none is running
WARMUP = 20

Submit = Callable[[Callable[[int], int], int], Any]


def round_trips(submit: Submit, ntimes: int, pause_seconds: float, first: int) -> list[float]:
    """Seconds of each submit and result; the arguments are all new, so nothing is remembered."""
    seconds: list[float] = []
    for number in range(first, first + ntimes):
        if pause_seconds:
            time.sleep(pause_seconds)
        started_at = time.perf_counter()
        value = submit(tasks.increment, number).result()
        seconds.append(time.perf_counter() - started_at)
        check("submit", value, number + 1)
    return seconds


def _figures(submit: Submit, ntimes: int, meter: Any) -> Iterator[Figure]:
    round_trips(submit, WARMUP, 0.0, first=1_000_000)
    with meter.span() as span:
        seconds = round_trips(submit, ntimes, 0.0, first=0)
    yield Figure("p50_us", percentile(seconds, 50) * 1e6, "us")
    yield Figure("p99_us", percentile(seconds, 99) * 1e6, "us")
    yield from span.cpu_per_task(ntimes)
    paused = round_trips(submit, max(ntimes // 5, 10), PAUSE_SECONDS, first=2_000_000)
    yield Figure("after_pause_p50_us", percentile(paused, 50) * 1e6, "us")
    yield Figure("after_pause_p99_us", percentile(paused, 99) * 1e6, "us")


def submit_result(bench: Bench) -> Iterator[Figure]:
    """One task at a time; then the same with a pause before each."""
    with bench.cluster() as session:
        yield from _figures(session.client.submit, bench.size, session.meter)


def submit_result_pool(bench: Bench) -> Iterator[Figure]:
    """The same on a process pool."""
    with ProcessPoolExecutor(2) as pool:
        yield from _figures(pool.submit, bench.size, warm_pool(pool))


def chain(bench: Bench) -> Iterator[Figure]:
    """A graph that is one chain: what a dependency costs."""
    plan = graphs.chain(bench.size)
    with bench.cluster() as session:
        warm = graphs.chain(20, "warm")
        check("warm-up", session.client.get(warm.graph, warm.key), 20)
        with session.meter.span() as span:
            value = session.client.get(plan.graph, plan.key)
        check("chain", value, bench.size)
        yield from span.per_task(bench.size)


def chain_futures(bench: Bench) -> Iterator[Figure]:
    """The same chain by futures, each submitted with the one before it."""
    with bench.cluster() as session:
        check("warm-up", session.client.submit(tasks.increment, -5).result(), -4)
        with session.meter.span() as span:
            future = session.client.submit(tasks.increment, 0)
            for _ in range(1, bench.size):
                future = session.client.submit(tasks.increment, future)
            value = future.result()
        check("chain of futures", value, bench.size)
        yield from span.per_task(bench.size)
