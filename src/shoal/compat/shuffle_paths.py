"""Rows of `paths.py` for `distributed.shuffle`: what dask makes graphs of shuffles with."""

from __future__ import annotations

from typing import Final

from shoal.compat.homes import homes_of

_ERRORS: Final = homes_of(
    ("shoal.shuffle.errors", "P2PConsistencyError, P2POutOfDiskError, ShuffleClosedError")
)
_NAMES: Final = homes_of(("shoal.shuffle.graph", "ShuffleId"))
_BARRIER: Final = homes_of(("shoal.shuffle.graph", "P2PBarrierTask, barrier_key, p2p_barrier"))
_SCHEDULERS: Final = homes_of(("shoal.observe.extensions", "Shuffles as ShuffleSchedulerPlugin"))
_WORKERS: Final = homes_of(("shoal.compat.unbuilt", "ShuffleWorkerPlugin"))
_RECHUNK: Final = homes_of(("shoal.shuffle.rechunk", "rechunk_p2p"))
_RUNS: Final = homes_of(("shoal.compat.unbuilt", "ShuffleRun"))

SHUFFLE_PATHS: Final[dict[str, dict[str, str]]] = {
    "distributed.shuffle": _RECHUNK | _SCHEDULERS | _WORKERS,
    "distributed.shuffle._arrow": homes_of(("shoal.shuffle.schema", "check_dtype_support")),
    "distributed.shuffle._core": _ERRORS
    | _NAMES
    | _BARRIER
    | _RUNS
    | homes_of(
        ("shoal.shuffle.exchange", "Exchange as ShuffleSpec"),
        ("shoal.shuffle.graph", "id_from_key"),
    ),
    "distributed.shuffle._exceptions": _ERRORS
    | homes_of(("shoal.shuffle.errors", "P2PIllegalStateError")),
    "distributed.shuffle._limiter": homes_of(("shoal.compat.unbuilt", "ResourceLimiter")),
    "distributed.shuffle._merge": _NAMES
    | homes_of(("shoal.shuffle.graph", "merge_transfer, merge_unpack, shuffle_transfer")),
    "distributed.shuffle._rechunk": _NAMES
    | _BARRIER
    | _RECHUNK
    | homes_of(
        ("shoal.shuffle.arrays", "ArrayExchange as ArrayRechunkSpec"),
        ("shoal.shuffle.graph", "rechunk_transfer, rechunk_unpack"),
        ("shoal.shuffle.rechunk", "RechunkLayer as P2PRechunkLayer"),
        ("shoal.compat.unbuilt", "ArrayRechunkRun, Split, _calculate_prechunking, split_axes"),
    ),
    "distributed.shuffle._scheduler_plugin": _SCHEDULERS,
    "distributed.shuffle._shuffle": _NAMES
    | _BARRIER
    | homes_of(
        ("shoal.shuffle.exchange", "Exchange as ShuffleSpec"),
        ("shoal.shuffle.graph", "shuffle_transfer, shuffle_unpack"),
        ("shoal.shuffle.tables", "DataFrameShuffleSpec"),
    ),
    "distributed.shuffle._worker_plugin": _WORKERS,
}
