"""All-to-all exchange: tables shuffled and merged, arrays rechunked, every row accounted for."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.memory.programs import Found, Ground

NKEYS = 10_000
ROW_BYTES = 40
NUMBERS_AT_ONCE = 8
MASK = (1 << 64) - 1


def exchanging(
    ground: Ground,
    kind: str,
    nbytes: int,
    limit_bytes: int,
    part_bytes: int = 32 << 20,
    threads: int = 1,
    seed: int = 0,
    skew: float = 0.0,
) -> Found:
    """Seconds for one exchange of `nbytes` by method "p2p" on two workers, and whether it is right.

    Args:
        kind: "shuffle", "merge" (of a table with a smaller one), "rechunk" or "grouping" (a
            groupby whose function needs whole groups).
        nbytes: of all inputs together.
        skew: the part of all rows that has one key.
    """
    import dask

    programs = {"shuffle": shuffled, "merge": merged, "rechunk": rechunked, "grouping": grouped}
    methods = {"dataframe.shuffle.method": "p2p", "array.rechunk.method": "p2p"}
    with ground.client(2, threads, limit_bytes) as client, dask.config.set(methods):
        warm, _ = programs[kind](8 * part_bytes // 16, part_bytes // 16, seed, skew)
        dask.compute(warm)  # what is imported at first use is there
        del warm
        client.run(_collect)
        yield {"rest_bytes": sum(client.run(_resident_bytes).values()) // 2}
        asked, is_right = programs[kind](nbytes, part_bytes, seed, skew)
        started_at = time.monotonic()
        [found] = dask.compute(asked)
        yield {"compute_seconds": time.monotonic() - started_at, "right": bool(is_right(found))}


def _collect() -> None:
    import gc

    gc.collect()


def _resident_bytes() -> int:
    import psutil

    return int(psutil.Process().memory_info().rss)


def make_part(number: int, nrows: int, seed: int, skew: float) -> Any:
    """Rows with a key of chance, their number in the whole, and three columns of values."""
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng((seed, number))
    keys = rng.integers(0, NKEYS, nrows)
    if skew:
        keys[rng.random(nrows) < skew] = 0
    return pd.DataFrame(
        {
            "k": keys,
            "row": np.arange(number * nrows, (number + 1) * nrows),
            "x": rng.random(nrows),
            "y": rng.random(nrows),
            "z": rng.random(nrows),
        }
    )


def _table(nbytes: int, part_bytes: int, seed: int, skew: float) -> tuple[Any, int]:
    import dask.dataframe as dd

    nrows = part_bytes // ROW_BYTES
    nparts = max(1, nbytes // part_bytes)
    meta = make_part(0, 2, seed, 0.0)
    table = dd.from_map(make_part, range(nparts), nrows=nrows, seed=seed, skew=skew, meta=meta)
    return table, nparts * nrows


def counted(part: Any) -> Any:
    """A line of what a partition holds: rows, the sum of their numbers, distinct keys."""
    import pandas as pd

    line = [len(part), int(part["row"].sum()), int(part["k"].nunique())]
    return pd.DataFrame([line], columns=["n", "rows", "keys"])


_LINE = {"n": "i8", "rows": "i8", "keys": "i8"}


def _is_whole(found: Any, nrows: int) -> bool:
    total = found.sum()
    expected = [nrows, nrows * (nrows - 1) // 2, NKEYS]
    return [int(total.n), int(total.rows), int(total["keys"])] == expected


def shuffled(nbytes: int, part_bytes: int, seed: int, skew: float) -> tuple[Any, Any]:
    """A table, by one of its columns."""
    table, nrows = _table(nbytes, part_bytes, seed, skew)
    lines = table.shuffle("k").map_partitions(counted, meta=_LINE)
    return lines, lambda found: _is_whole(found, nrows)


def merged(nbytes: int, part_bytes: int, seed: int, skew: float) -> tuple[Any, Any]:
    """Three quarters of the bytes, and a table of the other quarter that has each key as often."""
    left, nrows = _table(3 * nbytes // 4, part_bytes, seed, skew)
    right, nright = _table(nbytes // 4, part_bytes, seed + 1, 0.0)
    right = right.assign(k=right["row"])[["k", "x", "y", "z"]]  # every key once, most unmatched
    lines = left.merge(right, on="k", how="inner").map_partitions(counted, meta=_LINE)
    nmatched = NKEYS if nright >= NKEYS else nright
    return lines, lambda found: nmatched == NKEYS and _is_whole(found, nrows)


def widest(group: Any) -> Any:
    """What needs all rows of a group at once."""
    return group["x"].max() - group["x"].min()


def grouped(nbytes: int, part_bytes: int, seed: int, skew: float) -> tuple[Any, Any]:
    """`groupby("k").apply`, one result a key."""
    table, _ = _table(nbytes, part_bytes, seed, skew)
    spans = table.groupby("k")[["x"]].apply(widest, meta=("x", "f8"))
    return spans, lambda found: len(found) == NKEYS and bool(((found >= 0) & (found < 1)).all())


def numbered(block: Any, width: int, band: int, block_id: Any = None) -> Any:
    """Each element is its own number, rows first."""
    import numpy as np

    top = block_id[0] * band
    rows = np.arange(top, top + block.shape[0], dtype="f8")[:, None] * width
    return rows + np.arange(block.shape[1], dtype="f8")[None, :]


def is_numbered(block: Any, width: int, band: int, block_id: Any = None) -> Any:
    """One element: whether each of them is where it belongs."""
    import numpy as np

    left = block_id[1] * band
    nrows, ncolumns = block.shape
    for row in range(0, nrows, NUMBERS_AT_ONCE):
        upto = min(row + NUMBERS_AT_ONCE, nrows)
        expected = np.arange(row, upto, dtype="f8")[:, None] * width
        expected = expected + np.arange(left, left + ncolumns, dtype="f8")[None, :]
        if not np.array_equal(block[row:upto], expected):
            return np.zeros((1, 1), dtype=bool)
    return np.ones((1, 1), dtype=bool)


def rechunked(nbytes: int, part_bytes: int, seed: int, skew: float) -> tuple[Any, Any]:
    """A square array, from bands of rows to bands of columns."""
    import dask.array as da

    edge = math.isqrt(nbytes // 8)
    band = max(1, part_bytes // 8 // edge)
    template = da.empty((edge, edge), chunks=(band, edge))
    array = template.map_blocks(numbered, width=edge, band=band, dtype="f8", meta=template._meta)
    turned = array.rechunk((edge, band), method="p2p")
    verdicts = turned.map_blocks(
        is_numbered,
        width=edge,
        band=band,
        dtype=bool,
        chunks=tuple((1,) * n for n in turned.numblocks),
    )
    return verdicts.sum(), lambda found: int(found) == math.prod(turned.numblocks)
