"""How a machine is divided among workers: processes, threads, memory."""

from __future__ import annotations

import math

from dask.system import CPU_COUNT

from shoal.units import to_count


def nprocesses_nthreads(n: int = CPU_COUNT) -> tuple[int, int]:
    """How many processes of how many threads make good use of `n` cores.

    Few cores get a process each, since threads share one interpreter lock; many cores get fewer
    processes than that, since each costs memory: the smallest divisor of `n` that is at least its
    square root.
    """
    if n <= 4:
        nprocesses = n
    else:
        nprocesses = min(d for d in range(math.isqrt(n - 1) + 1, n + 1) if n % d == 0)
    return nprocesses, n // nprocesses


def workers_and_threads(
    n_workers: int | None, threads_per_worker: int | None, *, processes: bool
) -> tuple[int, int]:
    """Fill in what the user left open, for the cores of this machine.

    Raises:
        TypeError, ValueError: a number of workers or threads that there can't be.
    """
    if n_workers is not None:
        n_workers = to_count("n_workers", n_workers)
    if threads_per_worker is not None:
        threads_per_worker = to_count("threads_per_worker", threads_per_worker, 1)
    if n_workers is None and threads_per_worker is None:
        return nprocesses_nthreads() if processes else (1, CPU_COUNT)
    if n_workers is None:
        assert threads_per_worker is not None
        n_workers = max(1, CPU_COUNT // threads_per_worker) if processes else 1
    if threads_per_worker is None:
        threads_per_worker = max(1, math.ceil(CPU_COUNT / (n_workers or 1)))
    return n_workers, threads_per_worker


def memory_limit_nbytes(limit: float | str | None, nworkers: int) -> int:
    """The limit of each of `nworkers` equal workers, in bytes; 0 = none.

    Args:
        limit: "auto" for an equal share of this machine's or container's memory; all else as for
            `Worker(memory_limit=...)`.

    Raises:
        ValueError: a text that is no size.
    """
    from shoal.observe.limits import (
        host_memory_bytes,
        memory_limit_bytes,
        process_memory_bytes,
    )

    if limit == "auto":
        return min(host_memory_bytes() // max(1, nworkers), process_memory_bytes())
    return memory_limit_bytes(limit, 1)
