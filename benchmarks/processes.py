"""Processor time, wake-ups and memory of every process of a cluster, each under its role."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from benchmarks.figures import Figure

ROLES = ("client", "scheduler", "client+scheduler", "workers", "other")


@dataclass(frozen=True)
class Usage:
    """What one process has used since it was started."""

    cpu_seconds: float
    nwakeups: int


@dataclass
class Span:
    """What happened between the two ends of a `Meter.span`."""

    wall_seconds: float = 0.0
    cpu_seconds_by_role: dict[str, float] = field(default_factory=dict)
    nwakeups: int = 0

    @property
    def cpu_seconds(self) -> float:
        """Processor time of all processes; the sum over roles counts no process twice."""
        combined = {"client", "scheduler"} if "scheduler" in self.cpu_seconds_by_role else set()
        skipped = {"client+scheduler"} if combined else set()
        return sum(n for role, n in self.cpu_seconds_by_role.items() if role not in skipped)

    def per_task(self, ntasks: int, noun: str = "task") -> Iterator[Figure]:
        """Wall time, processor time by role and wake-ups, each divided by `ntasks`."""
        micro = 1e6 / ntasks
        yield Figure(f"us_per_{noun}", self.wall_seconds * micro, "us")
        yield from self.cpu_per_task(ntasks, noun)

    def cpu_per_task(self, ntasks: int, noun: str = "task") -> Iterator[Figure]:
        """The processor time and the wake-ups of `per_task` alone."""
        micro = 1e6 / ntasks
        yield Figure(f"cpu_us_per_{noun}", self.cpu_seconds * micro, "us")
        for role in ROLES:
            seconds = self.cpu_seconds_by_role.get(role)
            if seconds is not None:
                yield Figure(f"cpu_us_per_{noun}.{role}", seconds * micro, "us")
        yield Figure(f"wakeups_per_{noun}", self.nwakeups / ntasks, "wake-ups")


class Meter:
    """Reads the clocks of this process and all its descendants, told apart by role.

    `scheduler_pid` is None when there is no scheduler (a process pool).  Descendants without a
    role of their own (a nanny, a process that starts others) are reported as `other`.
    """

    def __init__(self, scheduler_pid: int | None, worker_pids: Mapping[str, int]) -> None:
        self.client_pid = os.getpid()
        self.scheduler_pid = scheduler_pid
        self.worker_pids = dict(worker_pids)

    def role(self, pid: int) -> str:
        """The role of a process of the tree."""
        if pid in self.worker_pids.values():
            return "workers"
        if pid == self.client_pid:
            return "client+scheduler" if pid == self.scheduler_pid else "client"
        return "scheduler" if pid == self.scheduler_pid else "other"

    def pids(self) -> list[int]:
        """Every process concerned that lives now, each once."""
        tree = [process.pid for process in psutil.Process().children(recursive=True)]
        named = [self.client_pid, *self.worker_pids.values()]
        if self.scheduler_pid is not None:
            named.append(self.scheduler_pid)
        return list(dict.fromkeys(named + tree))

    def usage(self) -> dict[int, Usage]:
        """What each process has used so far; costs some 100 us per process."""
        found: dict[int, Usage] = {}
        for pid in self.pids():
            try:
                found[pid] = Usage(cpu_seconds(pid), wakeups(pid))
            except (OSError, psutil.Error):
                continue  # it ended since we listed it
        return found

    @contextmanager
    def span(self) -> Iterator[Span]:
        """Measure the block; the span is filled in when the block ends."""
        span = Span()
        before = self.usage()
        started_at = time.perf_counter()
        yield span
        span.wall_seconds = time.perf_counter() - started_at
        by_role: dict[str, float] = {}
        for pid, after in self.usage().items():
            was = before.get(pid, Usage(0.0, 0))
            role = self.role(pid)
            by_role[role] = by_role.get(role, 0.0) + after.cpu_seconds - was.cpu_seconds
            span.nwakeups += after.nwakeups - was.nwakeups
        if "scheduler" in by_role:  # so that both layouts have a row in common
            by_role["client+scheduler"] = by_role.get("client", 0.0) + by_role["scheduler"]
        span.cpu_seconds_by_role = by_role

    def rss_bytes_by_role(self) -> dict[str, int]:
        """Resident memory, summed over the processes of each role."""
        found: dict[str, int] = {}
        for pid in self.pids():
            try:
                resident = psutil.Process(pid).memory_info().rss
            except psutil.Error:
                continue  # it ended since we listed it
            found[self.role(pid)] = found.get(self.role(pid), 0) + resident
        return found


def _linux_cpu_seconds(pid: int) -> float:
    """The processor clock of another process: nanoseconds, ended threads included.

    The kernel's number of such a clock is the inverted process id, shifted, with 2 for "scheduler
    time"; it is what `clock_getcpuclockid` of the C library returns.
    """
    return time.clock_gettime((~pid << 3) | 2)


def _portable_cpu_seconds(pid: int) -> float:
    """The same from psutil, where there is no such clock: resolution 10 ms."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def _choose_clock() -> Callable[[int], float]:
    try:
        _linux_cpu_seconds(os.getpid())
    except (AttributeError, OSError):
        return _portable_cpu_seconds
    return _linux_cpu_seconds


cpu_seconds = _choose_clock()


def wakeups(pid: int) -> int:
    """How often the threads of `pid` went to sleep: about one per message batch waited for."""
    folder = Path(f"/proc/{pid}/task")
    if not folder.is_dir():
        return int(psutil.Process(pid).num_ctx_switches().voluntary)
    return sum(_voluntary_switches(thread / "status") for thread in folder.iterdir())


def _voluntary_switches(status: Path) -> int:
    try:
        text = status.read_text()
    except OSError:
        return 0  # the thread ended since we listed it
    for line in text.splitlines():
        if line.startswith("voluntary_ctxt_switches:"):
            return int(line.split()[1])
    return 0
