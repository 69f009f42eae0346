"""An array made on one worker and used on the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from benchmarks.bench import Bench, Session, check
from benchmarks.figures import Figure
from benchmarks.workloads import tasks

ITEM_BYTES = 8


def worker_to_worker(nbytes: int) -> Callable[[Bench], Iterator[Figure]]:
    """A workload that moves arrays of `nbytes`, `bench.size` times."""

    def run(bench: Bench) -> Iterator[Figure]:
        with bench.cluster() as session:
            _one_transfer(session, nbytes, first=-1_000)
            _one_transfer(session, nbytes, first=-2_000)
            seconds = [_one_transfer(session, nbytes, number) for number in range(bench.size)]
        typical = sorted(seconds)[len(seconds) // 2]
        yield Figure("p50_us", typical * 1e6, "us")
        yield Figure("gb_per_second", nbytes / typical / 1e9, "GB/s", "higher")

    return run


def _one_transfer(session: Session, nbytes: int, first: int) -> float:
    """Seconds from submitting the consumer to its answer, the round trip to the client included."""
    source, target = session.addresses[:2]
    client, nitems = session.client, nbytes // ITEM_BYTES
    array = client.submit(tasks.make_array, nitems, first, workers=[source], pure=False)
    maker = client.submit(tasks.process_of, array, workers=[source], pure=False).result()
    started_at = time.perf_counter()
    probe = client.submit(tasks.probe_array, array, workers=[target], pure=False).result()
    seconds = time.perf_counter() - started_at
    sparse = sum(range(first, first + nitems, tasks.PROBE_STRIDE))
    pid = session.meter.worker_pids[target]
    check("transfer", tuple(probe), (nitems, sparse, first + nitems - 1, pid))
    check("the maker's process", maker, session.meter.worker_pids[source])
    whole = client.submit(tasks.sum_array, array, workers=[target], pure=False).result()
    check("sum of the array", whole, nitems * (2 * first + nitems - 1) // 2)
    return seconds
