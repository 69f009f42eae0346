"""The join of `exchanging` by DuckDB: one process, no cluster, for a sense of what is possible.

The tables are made by the same code, a part at a time, and DuckDB takes each as it is made.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.memory.exchanging import NKEYS, ROW_BYTES, make_part
from benchmarks.memory.inside import FOLDER

if TYPE_CHECKING:
    from benchmarks.memory.programs import Found, Ground

QUERY = """
select count(*), sum(l.row), count(distinct l.k),
       sum(l.x + l.y + l.z), sum(r.x + r.y + r.z)
from l join r on l.k = r.row
"""
"""Every column is of use, or DuckDB would leave it out."""


def joining(
    ground: Ground, nbytes: int, limit_bytes: int, part_bytes: int = 32 << 20, seed: int = 0
) -> Found:
    """Seconds for the join of `nbytes`, the smaller table a quarter, by two threads in one process.

    Args:
        limit_bytes: what DuckDB may take.
    """
    import duckdb

    # As a preload says of a worker: this process is the one that is watched.
    (Path(os.environ[FOLDER]) / f"{os.getpid()}.jsonl").touch()
    settings = {
        "memory_limit": f"{limit_bytes >> 20}MiB",
        "threads": 2,
        "temp_directory": str(ground.folder),
        "preserve_insertion_order": False,
    }
    with duckdb.connect(config=settings) as database:
        nleft, nright = (3 * nbytes // 4) // part_bytes, (nbytes // 4) // part_bytes
        nrows = part_bytes // ROW_BYTES
        started_at = time.monotonic()
        database.register("l", _stream(nleft, nrows, seed))
        database.register("r", _stream(nright, nrows, seed + 1))
        # It knows the size of neither, and might build its hash table of the larger one.
        database.execute("set disabled_optimizers = 'join_order,build_side_probe_side'")
        [found] = database.sql(QUERY).fetchall()
        seconds = time.monotonic() - started_at
    n = nleft * nrows
    right = list(map(int, found[:3])) == [n, n * (n - 1) // 2, NKEYS]
    yield {"compute_seconds": seconds, "right": right}


def _stream(nparts: int, nrows: int, seed: int) -> Any:
    """A table as Arrow's batches, which can be read once."""
    import pyarrow as pa

    schema = pa.Schema.from_pandas(make_part(0, 2, seed, 0.0), preserve_index=False)

    def batches() -> Iterator[Any]:
        for number in range(nparts):
            part = make_part(number, nrows, seed, 0.0)
            yield pa.RecordBatch.from_pandas(part, schema, preserve_index=False)

    return pa.RecordBatchReader.from_batches(schema, batches())
