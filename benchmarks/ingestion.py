"""What it takes to take in a large graph: `python -m benchmarks.ingestion`.

From the call of `compute` until the scheduler knows every task, on a cluster without workers, so
that nothing else happens: processor time of all processes per task, and the longest time that the
scheduler's loop was kept from everything else.
"""

from __future__ import annotations

import argparse
import operator
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import dask

from benchmarks.processes import Meter
from benchmarks.workloads.gauge import read_gauge, start_gauge
from shoal import Client, LocalCluster

TICK_SECONDS = 0.001
"""How often the scheduler's loop is asked whether it is free."""


class Ingestion(NamedTuple):
    """What one graph took."""

    kind: str
    ntasks: int
    processor_us: float  # per task, of all processes
    client_us: float  # of that, in the client's process
    wall_us: float  # per task; more than the above if others use the machine
    blocked_ms: float  # longest turn of the scheduler's loop, in processor time of its thread

    def __str__(self) -> str:
        return (
            f"{self.kind:12} {self.ntasks:8} tasks  {self.processor_us:6.1f} us/task in all "
            f"processes, {self.client_us:.1f} in the client's, {self.wall_us:.1f} by the clock; "
            f"loop kept for {self.blocked_ms:.1f} ms"
        )


def array_sum(ntasks: int) -> Any:
    """Blocks, one more, summed up."""
    import dask.array as da

    n = round((ntasks / 1.33) ** 0.5)
    return (da.ones((4 * n, 4 * n), chunks=4) + 1).sum()


def overlap(ntasks: int) -> Any:
    """Blocks that need edges of their neighbours."""
    import dask.array as da

    n = round((ntasks / 10.5) ** 0.5)
    x = da.ones((10 * n, 10 * n), chunks=10)
    return da.map_overlap(operator.neg, x, depth=1, boundary="none").sum()


def bag(ntasks: int) -> Any:
    """A chain of operations on each partition, and a sum."""
    import dask.bag as db

    n = round(ntasks / 1.1)
    return db.range(2 * n, npartitions=n).map(operator.neg).filter(bool).sum()


def groupby(ntasks: int) -> Any:
    """A mean by group, in a tree that ends in a shuffle by tasks."""
    import dask.dataframe as dd
    import pandas as pd

    meta = pd.DataFrame({"a": [1], "b": [1.0]})
    frame = dd.from_map(_partition, range(round(ntasks / 7.5)), meta=meta)
    return frame.groupby("a").b.mean()


def delayed(ntasks: int) -> Any:
    """Calls, and calls that put sixteen of them together, up to one."""
    call = dask.delayed(len, pure=False)
    level = [call(str(i)) for i in range(round(ntasks * 15 / 16))]
    while len(level) > 1:
        level = [call(level[i : i + 16]) for i in range(0, len(level), 16)]
    return level[0]


KINDS: dict[str, Callable[[int], Any]] = {
    "array sum": array_sum,
    "overlap": overlap,
    "bag": bag,
    "groupby": groupby,
    "delayed": delayed,
}


def measure(kind: str, ntasks: int) -> Ingestion:
    """Have a new cluster without workers take in about `ntasks` tasks."""
    settings = {"n_workers": 0, "processes": True, "dashboard_address": None}
    with LocalCluster(**settings) as cluster, Client(cluster) as client:
        client.submit(len, "")  # the client is at work already
        collection = KINDS[kind](ntasks)
        client.run_on_scheduler(start_gauge, TICK_SECONDS)
        with Meter(None, {}).span() as span:
            future = client.compute(collection)
            # What is asked after the graph is answered after it.
            gauge = client.run_on_scheduler(read_gauge)
        known = client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))
        del future
    each = 1e6 / known
    return Ingestion(
        kind,
        known,
        span.cpu_seconds * each,
        span.cpu_seconds_by_role["client"] * each,
        span.wall_seconds * each,
        1e3 * gauge.busy_seconds,
    )


def _partition(i: int) -> Any:
    import pandas as pd

    return pd.DataFrame({"a": [i], "b": [1.0]})


def main() -> None:
    """Print a line for each kind and size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", action="append", choices=list(KINDS), default=[])
    parser.add_argument("--ntasks", action="append", type=int, default=[])
    options = parser.parse_args()
    for kind in options.kind or KINDS:
        for ntasks in options.ntasks or (10_000, 100_000):
            print(measure(kind, ntasks), flush=True)


if __name__ == "__main__":
    # What a graph calls shall be sent by its name, and this module's is another one now.
    import_module("benchmarks.ingestion").main()
