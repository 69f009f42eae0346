"""`distributed.worker_memory.parse_memory_limit`, with the arguments that it had."""

from __future__ import annotations

import logging

from dask.system import CPU_COUNT

from shoal.observe.limits import asked_memory_bytes, host_memory_bytes, process_memory_bytes


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
    there = min(host_memory_bytes(), process_memory_bytes())
    wanted = asked_memory_bytes(memory_limit, nthreads, total_cores, there)
    if wanted > there:
        logger.warning("memory_limit=%s is more than this machine has: %d", memory_limit, there)
    return min(wanted, there) or None
