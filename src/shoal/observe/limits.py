"""How much of its host a worker may use."""

from __future__ import annotations

import logging
import os
import sys
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Final

import psutil
from dask.system import CPU_COUNT

from shoal.observe.containers import ROOT, UNLIMITED, Groups, Memory
from shoal.observe.errors import TooManyThreads, UnusableMemoryLimit
from shoal.units import MIB, format_nbytes, to_count, to_nbytes

logger = logging.getLogger("shoal.worker.memory")

_FRACTION_BYTES_MIN: Final = MIB
"""From here on a number that is not whole is bytes all the same: a share that was reckoned."""

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
        TypeError: no whole number.
        ValueError: fewer than one.
        TooManyThreads: more than the system lets anybody have (a ValueError).

    Cost: 0.1 ms, if it is asked for.
    """
    if asked is None:
        return cpu_count()
    nthreads = to_count("nthreads", asked, least=-sys.maxsize)
    if nthreads < 1:
        raise ValueError(
            f"A worker needs at least one thread, so nthreads={asked} can't be. Leave it out for "
            "one thread for each CPU."
        )
    most = threads_max()
    if nthreads > most:
        raise TooManyThreads(nthreads, most)
    return nthreads


def threads_max(root: Path = ROOT, groups: Groups | None = None) -> int:
    """More threads than that a process can't have, as far as the system says; some are taken.

    Args:
        root: where `proc` is.
        groups: whose limits count; None: this process's.
    """
    try:
        in_all = int((root / "proc/sys/kernel/threads-max").read_text(encoding="ascii"))
    except (OSError, ValueError):
        in_all = 0  # not on every system
    of_group = (groups or _groups()).nthreads_max()
    return min([sys.maxsize, *[n for n in (in_all, of_group, _nprocesses_of_user()) if n > 0]])


def _nprocesses_of_user() -> int:
    """What `ulimit -u` says, which counts threads; 0: no limit, as for root, who is not bound."""
    try:
        import resource  # not on every system
    except ImportError:
        return 0
    if not hasattr(resource, "RLIMIT_NPROC") or os.geteuid() == 0:
        return 0
    return max(0, resource.getrlimit(resource.RLIMIT_NPROC)[0])  # without a limit: -1


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
        UnusableMemoryLimit: no size, less than nothing, or a number with a fraction that is more
            than 1 and too little for bytes (a ValueError).
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
    if limit is None:
        return 0
    if limit == "auto":
        return int(total * min(1.0, nthreads / ncores))
    try:
        number = float(limit)
    except ValueError:
        return _nbytes_of_text(str(limit))
    except TypeError:
        raise UnusableMemoryLimit(limit, "that is no size") from None
    if not isfinite(number):
        raise UnusableMemoryLimit(limit, "that is no number")
    if 1 < number < _FRACTION_BYTES_MIN and number != int(number):
        raise UnusableMemoryLimit(limit, "fractions of the host's memory end at 1")
    return _not_negative(limit, int(total * number) if number <= 1 else int(number))


def _nbytes_of_text(text: str) -> int:
    """A size with a unit; "1 B" is no fraction."""
    try:
        nbytes = to_nbytes(text)
    except ValueError:
        raise UnusableMemoryLimit(text, "that is no size") from None
    return _not_negative(text, nbytes)


def _not_negative(limit: object, nbytes: int) -> int:
    if nbytes < 0:
        raise UnusableMemoryLimit(limit, "no worker can have less than no memory")
    return nbytes
