"""How much of its host a worker may use."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import psutil
from dask.system import CPU_COUNT

from shoal.units import to_nbytes

_CGROUP_LIMITS: Final = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def cpu_count() -> int:
    """CPUs that this process may use; container limits count."""
    return max(1, int(CPU_COUNT))


def thread_count(asked: int | None) -> int:
    """How many tasks a worker runs at once: as asked, or one for each CPU if None.

    Raises:
        ValueError: fewer than one.
    """
    if asked is None:
        return cpu_count()
    if asked < 1:
        raise ValueError(
            f"A worker needs at least one thread, so nthreads={asked} can't be. Leave it out for "
            "one thread for each CPU."
        )
    return asked


def host_memory_bytes() -> int:
    """Memory that the processes of this host, or container, share."""
    total = int(psutil.virtual_memory().total)
    for path in _CGROUP_LIMITS:
        try:
            text = path.read_text().strip()
        except OSError:
            continue
        if text.isdigit() and int(text) > 0:
            total = min(total, int(text))
    return total


def memory_limit_bytes(limit: str | float | None, nthreads: int) -> int:
    """A worker's limit in bytes; 0 = none.

    Args:
        limit: bytes, a text such as "2 GiB", a fraction of the host's memory when at most 1,
            "auto" for the share of `nthreads` among the CPUs, or None or 0 for none.

    Raises:
        ValueError: a text that is no size.
    """
    total = host_memory_bytes()
    return min(asked_memory_bytes(limit, nthreads, cpu_count(), total), total)


def asked_memory_bytes(limit: str | float | None, nthreads: int, ncores: int, total: int) -> int:
    """As `memory_limit_bytes`, of `ncores` CPUs and `total` bytes of memory; it may be more than
    there is."""
    if limit is None or limit == 0:
        return 0
    if limit == "auto":
        return int(total * min(1.0, nthreads / ncores))
    if isinstance(limit, str):
        try:
            limit = float(limit)
        except ValueError:
            return to_nbytes(limit)
    return int(total * limit) if limit <= 1 else int(limit)
