"""Collections: what people compute with Dask, each checked against numpy, pandas or plain Python.

The same code on both sides, by public names only.  What is timed is the call that computes; that
the collection was described before, and that a smaller one ran first, is not.
"""

from __future__ import annotations

import importlib
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.bench import Bench, Workload
from benchmarks.errors import WrongResult
from benchmarks.figures import Figure
from benchmarks.workloads.gauge import read_gauge, start_gauge

ARRAYS = "benchmarks.workloads.collections_arrays"
FRAMES = "benchmarks.workloads.collections_frames"
OBJECTS = "benchmarks.workloads.collections_objects"
PREFIX = "collection_"


@dataclass(frozen=True)
class Case:
    """One computation, and what it has to give.

    Args:
        compute: what is timed; a client is there and is Dask's default.
        expected: the same without any scheduler, in numpy, pandas or plain Python.
        agree: whether the two are the same.
    """

    compute: Callable[[], Any]
    expected: Callable[[], Any]
    agree: Callable[[Any, Any], Any] = operator.eq

    def check(self, name: str, value: Any) -> None:
        """Raise `WrongResult` unless `value` is what it has to be."""
        expected = self.expected()
        if not self.agree(value, expected):
            raise WrongResult(name, value, expected)


def collection(module: str, name: str, about: str, *, full: int, quick: int) -> Workload:
    """A workload whose case is `module.name(size)`.

    The module is imported when the workload runs: numpy and pandas are not needed for others.
    """

    def run(bench: Bench) -> Iterator[Figure]:
        make_case = getattr(importlib.import_module(module), name)
        with bench.cluster() as session:
            warm: Case = make_case(quick)
            warm.check(f"{name}, the warm-up", warm.compute())
            case: Case = make_case(bench.size)
            session.client.run_on_scheduler(start_gauge)
            with session.meter.span() as span:
                value = case.compute()
            gauge = session.client.run_on_scheduler(read_gauge)
            case.check(name, value)
        yield Figure("seconds", span.wall_seconds, "s")
        yield Figure("cpu_seconds", span.cpu_seconds, "s")
        yield Figure("loop_late_ms", 1e3 * gauge.late_seconds, "ms")
        yield Figure("loop_busy_ms", 1e3 * gauge.busy_seconds, "ms")

    return Workload(PREFIX + name, about, run, full=full, quick=quick)


COLLECTIONS: tuple[Workload, ...] = (
    collection(ARRAYS, "transpose_mean", "(x + x.T).mean()", full=6_000, quick=600),
    collection(ARRAYS, "rechunk", "rows to columns, by tasks", full=6_000, quick=600),
    collection(ARRAYS, "svd", "of a tall and skinny array", full=200, quick=8),
    collection(ARRAYS, "overlap", "map_overlap, a mean of neighbours", full=2_700, quick=450),
    collection(ARRAYS, "reduction", "the sum of many small chunks", full=2_000, quick=20),
    collection(FRAMES, "groupby", "mean, least and largest by key", full=100, quick=4),
    collection(FRAMES, "merge", "two dataframes, by tasks", full=30, quick=3),
    collection(FRAMES, "shuffle", "by tasks", full=60, quick=4),
    collection(FRAMES, "set_index", "divisions and all, each side's default", full=60, quick=4),
    collection(FRAMES, "chain", "four operations on a dataframe", full=150, quick=4),
    collection(OBJECTS, "bag", "frequencies of words, and a fold", full=300, quick=10),
    collection(OBJECTS, "delayed", "map-reduce of delayed leaves", full=10_000, quick=200),
    collection(OBJECTS, "joblib", "Parallel, backend dask", full=20_000, quick=200),
)
"""The rows of the comparison, in the order in which they are run."""
