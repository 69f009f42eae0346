"""What the control groups of Linux, which containers are made of, allow a process and count for it.

A process is in one group, which is in others: the least of their limits holds.  Both versions are
read, from the group that the process says that it is in; where a container hides the groups above
it, from those that can be seen.  `memory.low` and soft limits are no limits, and are not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path("/")

UNLIMITED: Final = 1 << 60
"""Bytes; version 1 writes a number beyond this where there is no limit."""

_LIMITS: Final = ("memory.max", "memory.high", "memory.limit_in_bytes")
_USED: Final = ("memory.current", "memory.usage_in_bytes")
_CACHED: Final = (b"inactive_file ", b"total_inactive_file ")
_KILLS: Final = ("memory.events", "memory.oom_control")


class Memory(NamedTuple):
    """Of the group whose limit is the least; bytes."""

    used: int
    """Without what the system only keeps from files, and gives away when it is needed."""
    limit: int
    """0: none."""


class Groups:
    """The control groups of one process."""

    def __init__(self, root: Path = ROOT, process: str = "self") -> None:
        """Where they are, and what they allow, is read once.

        Args:
            root: where `proc` and `sys` are.
            process: its id, or "self".
        """
        self._memory = list(_folders(root, process, "memory"))
        self._cpu = list(_folders(root, process, "cpu"))
        self._pids = list(_folders(root, process, "pids"))
        self._least = min(self._limits(), key=lambda pair: pair[1], default=(None, 0))

    def memory_limit(self) -> int:
        """The least of all limits, in bytes; 0: there is none."""
        return self._least[1]

    def memory(self) -> Memory:
        """What is used of the least limit; nothing if there is none.  Cost: two files."""
        folder, limit = self._least
        if folder is None:
            return Memory(0, 0)
        used = next((n for name in _USED if (n := _number(folder / name)) is not None), 0)
        return Memory(max(0, used - _cached(folder)), limit)

    def cpu_quota(self) -> float:
        """CPUs' worth of time that its processes may use; infinite if that is not limited."""
        return min(
            (quota for folder in self._cpu for quota in _quotas(folder)), default=float("inf")
        )

    def nthreads_max(self) -> int:
        """How many threads all its processes together may have; 0: that is not limited."""
        numbers = (_number(folder / "pids.max") for folder in self._pids)
        return min((number for number in numbers if number), default=0)

    def nkilled(self) -> int:
        """How many processes of it were ended since there was no memory left; 0 if not counted.

        Of the process's own group only.
        """
        for folder in self._memory[:1]:
            for name in _KILLS:
                for line in _text(folder / name).splitlines():
                    if line.startswith("oom_kill "):
                        return int(line.split()[1])
        return 0

    def _limits(self) -> Iterator[tuple[Path, int]]:
        for folder in self._memory:
            for name in _LIMITS:
                limit = _number(folder / name)
                if limit is not None and 0 < limit < UNLIMITED:
                    yield folder, limit


def nearest_group(controller: str, root: Path = ROOT) -> Path | None:
    """The folder of the group that this process is in for a controller; None if it is hidden."""
    return next(_folders(root, "self", controller), None)


def _folders(root: Path, process: str, controller: str) -> Iterator[Path]:
    """The group of the process for this controller, and those that it is in, nearest first."""
    for line in _text(root / "proc" / process / "cgroup").splitlines():
        words = line.split(":", 2)
        if len(words) < 3:
            continue  # as a system may have it that only resembles Linux
        _, controllers, path = words
        mounted = root / "sys/fs/cgroup"
        if controllers:
            if controller not in controllers.split(","):
                continue
            names = (controller, controllers)  # as it is linked, and as it is mounted
            mounted = next((mounted / n for n in names if (mounted / n).is_dir()), mounted)
        place = Path(path.lstrip("/"))
        for inner in (place, *place.parents):
            if ".." not in inner.parts and (mounted / inner).is_dir():
                yield mounted / inner


def _quotas(folder: Path) -> Iterator[float]:
    words = _text(folder / "cpu.max").split()
    if len(words) == 2 and words[0].isdigit() and int(words[1]) > 0:
        yield int(words[0]) / int(words[1])
    quota, period = _number(folder / "cpu.cfs_quota_us"), _number(folder / "cpu.cfs_period_us")
    if quota and period:
        yield quota / period


def _cached(folder: Path) -> int:
    try:
        lines = (folder / "memory.stat").read_bytes().splitlines()
    except OSError:
        return 0
    found = [int(line.split()[1]) for line in lines if line.startswith(_CACHED)]
    return max(found, default=0)


def _number(path: Path) -> int | None:
    """None: there is no such file, or it says "max" or less than nothing."""
    text = _text(path).strip()
    return int(text) if text.isdigit() else None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
