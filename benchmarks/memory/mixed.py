"""What people paste: a dataframe and an array at once, on workers that are small for it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.memory.programs import Found, Ground

RELATIVE = 1e-9
ROWS_PER_DAY = 86_400
EDGE = 10_000


def frame(end: str) -> Any:
    """One row a second, a partition a day."""
    import dask.dataframe as dd

    return dd.demo.make_timeseries(
        "2000", end, freq="1s", partition_freq="1d", dtypes={"x": float, "y": float}, seed=1
    )


def mixed(ground: Ground, end: str, threads: int, limit: str) -> Found:
    """`groupby("x").mean()` and `(arr + arr.T).mean()`, computed together.

    Nearly every row is a group of its own, so that the means add up to the sum of the column.
    """
    import dask
    import dask.array as da
    import numpy as np

    with ground.client(2, threads, limit):
        df = frame(end)
        arr = da.random.default_rng(1).random((EDGE, EDGE))
        started_at = time.monotonic()
        means, mean = dask.compute(df.groupby("x").mean(), (arr + arr.T).mean())
        yield {"compute_seconds": time.monotonic() - started_at}
        nrows = len(df.divisions[:-1]) * ROWS_PER_DAY
        total = float(df.y.sum().compute())
        near = bool(np.isclose(float(means.y.sum()), total, rtol=RELATIVE, atol=1e-3))
        groups = nrows - 10 <= len(means) <= nrows
        yield {"right": near and groups and abs(float(mean) - 1.0) < 1e-3, "ngroups": len(means)}
