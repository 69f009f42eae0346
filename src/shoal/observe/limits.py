"""How much of its host a worker may use."""

from __future__ import annotations

import logging
from functools import cache
from typing import Final

import psutil
from dask.system import CPU_COUNT

from shoal.observe.containers import UNLIMITED, Groups, Memory
from shoal.units import format_nbytes, to_nbytes

logger = logging.getLogger("shoal.worker.memory")

_LIMITS_OF_PROCESSES: Final = ("RLIMIT_RSS", "RLIMIT_AS", "RLIMIT_DATA")


@cache
def _groups() -> Groups:
    """Those of this process; a fork is in the same."""
    return Groups()


def cpu_count(groups: Groups | None = None) -> int:
    """CPUs that this process may use; container limits count.

    Args:
        groups: whose quota counts; None: this process's.
    """
    quota = (groups or _groups()).cpu_quota()
    return max(1, int(min(CPU_COUNT, quota)))


def container_memory() -> Memory:
    """What the processes of this container, or control group, use and may use.

    Nothing of all that, if nothing limits them.  Cost: 10 us then, else 100 us.
    """
    return _groups().memory()


def nkilled_by_system() -> int:
    """Processes of this container that the system has ended for want of memory, so far.

    0 if that is not counted.  Cost: two files.
    """
    return _groups().nkilled()


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


def host_memory_bytes(groups: Groups | None = None) -> int:
    """Memory that the processes of this host, or container, share.

    Args:
        groups: whose limits count; None: this process's.
    """
    total = int(psutil.virtual_memory().total)
    limit = (groups or _groups()).memory_limit()
    return min(total, limit) if limit else total


def process_memory_bytes() -> int:
    """What the system allows one process (`ulimit -m`, `-v`, `-d`); `UNLIMITED` if it allows all.

    That much address space, too: what a library only reserves counts in there.
    """
    try:
        import resource  # not on every system
    except ImportError:
        return UNLIMITED
    names = [name for name in _LIMITS_OF_PROCESSES if hasattr(resource, name)]
    softs = [resource.getrlimit(getattr(resource, name))[0] for name in names]
    return min([UNLIMITED, *[soft for soft in softs if soft > 0]])  # without a limit: -1


def memory_limit_bytes(limit: str | float | None, nthreads: int, *, warns: bool = True) -> int:
    """A worker's limit in bytes; 0 = none.

    Args:
        limit: bytes, a text such as "2 GiB", a fraction of the host's memory when at most 1,
            "auto" for the share of `nthreads` among the CPUs, or None or 0 for none.
        warns: in the log, if it is more than there is.

    Raises:
        ValueError: a text that is no size.
    """
    total = host_memory_bytes()
    asked = asked_memory_bytes(limit, nthreads, cpu_count(), total)
    most = min(total, process_memory_bytes())
    if asked > most and warns and limit != "auto":
        logger.warning(
            "memory_limit=%s is more than this machine lets a process have: it is %s",
            limit,
            format_nbytes(most),
        )
    return min(asked, most)


def asked_memory_bytes(limit: str | float | None, nthreads: int, ncores: int, total: int) -> int:
    """As `memory_limit_bytes`, of `ncores` CPUs and `total` bytes of memory; it may be more than
    there is."""
    if limit is None or limit == 0:
        return 0
    if not isinstance(limit, str) and limit < 0:
        raise ValueError(
            f"A worker can't have less than no memory, so memory_limit={limit} can't be. Say "
            'bytes, a text such as "2 GiB", a fraction of the host\'s memory, or 0 for no limit.'
        )
    if limit == "auto":
        return int(total * min(1.0, nthreads / ncores))
    if isinstance(limit, str):
        try:
            limit = float(limit)
        except ValueError:
            return to_nbytes(limit)
    return int(total * limit) if limit <= 1 else int(limit)
