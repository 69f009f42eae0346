"""`distributed.worker_memory.parse_memory_limit`, with the arguments that it had."""

from __future__ import annotations

import logging

from dask.system import CPU_COUNT

from shoal.observe.limits import host_memory_bytes
from shoal.units import to_nbytes


def parse_memory_limit(
    memory_limit: str | float | None,
    nthreads: int,
    total_cores: int = CPU_COUNT,
    *,
    logger: logging.Logger,
) -> int | None:
    """Bytes; None for no limit.

    Args:
        memory_limit: bytes, "4GB", a fraction of this machine's memory, "auto" for an equal share
            by threads, None or 0 for none.
        logger: told if it is more than there is, which is what is given then.
    """
    if memory_limit is None or memory_limit in (0, "0"):
        return None
    there = host_memory_bytes()
    if memory_limit == "auto":
        return int(there * min(1, nthreads / total_cores))
    if not isinstance(memory_limit, str) and memory_limit <= 1:
        return int(there * memory_limit)
    wanted = to_nbytes(memory_limit)
    if wanted > there:
        logger.warning("memory_limit=%s is more than this machine has: %d", memory_limit, there)
    return min(wanted, there)
