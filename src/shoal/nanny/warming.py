"""Modules that a zygote imports while it has nothing else to do, since its owner has them.

What tasks need of them is in each worker's memory from its start then, once for all workers: pandas
and dask.dataframe take the best part of a second and 100 MB, which each worker had to spend anew.

Libraries of linear algebra start threads as they are imported, unless told to use one, and a
process with threads can't be forked soundly.  One is what shoal tells its workers anyway.  Where a
user wants more, nothing of this is done.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Final

CANDIDATES: Final = (
    "numpy",
    "pyarrow",
    "pandas",
    "dask.bag",
    "dask.array",
    "dask.dataframe",
)
"""In this order, since the later ones need the earlier ones.  Their places are their numbers."""

THREAD_COUNTS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

_HARMLESS_THREADS: Final = ("jemalloc_bg_thd",)
"""Of pyarrow's allocator, which sees to itself in a fork."""

_THREADS: Final = Path("/proc/self/task")


def wants_threads(environ: Mapping[str, str]) -> bool:
    """Whether libraries shall have more threads than one for each task."""
    return any(environ.get(name, "1") != "1" for name in THREAD_COUNTS)


def loaded_here() -> int:
    """Which of the candidates this process has: a bit for each."""
    loaded = sys.modules
    return sum(1 << place for place, name in enumerate(CANDIDATES) if name in loaded)


def load_one(wanted: int) -> int:
    """Import the first of the `wanted` candidates; those that are left."""
    place = (wanted & -wanted).bit_length() - 1
    os.environ.update(dict.fromkeys(THREAD_COUNTS, "1"))  # a child takes on one of its own
    try:
        import_module(CANDIDATES[place])
    except Exception:
        pass  # who needs it says so: the owner's may be of a path that it has set since
    return wanted & ~(1 << place)


def reseed() -> None:
    """In a child: draw other numbers than its siblings."""
    random = sys.modules.get("numpy.random")
    if random is not None:
        random.seed()


def nthreads_that_matter() -> int:
    """How many threads this process has, but for those that see to themselves in a fork.

    1 where the system doesn't tell.
    """
    if not _THREADS.is_dir():
        return 1
    names = [(thread / "comm").read_text().strip() for thread in _THREADS.iterdir()]
    return sum(name not in _HARMLESS_THREADS for name in names)
