"""The last resort against a process that takes more memory than it may: to end it.

All milder means are the worker's own.  This one works from outside, since a process that is about
to be ended by the system has no say, and it leaves word of the reason, which the system doesn't.
"""

from __future__ import annotations

import signal
import time
from typing import Any, Final

import psutil

GROWTH_BYTES_PER_SECOND: Final = 8 << 30
"""No process takes memory faster: the system clears each page first, at 2 us for 4 kB a thread."""
GRACE_SECONDS: Final = 0.5
"""A process that has just got above its limit is about to write results to disk, and to give free
memory back: it may take so long for that,"""
GRACE_RATIO: Final = 1.02
"""if it is no further above,"""
GRACE_LOOK_SECONDS: Final = 0.01
"""and is looked at so often meanwhile."""
PAUSE_SECONDS_MAX: Final = 1.0
"""Between two looks, however far away the limit is."""


class MemoryGuard:
    """Looks at the memory of one process, and kills it above a limit."""

    def __init__(self, pid: int, kill_above_nbytes: int, interval_seconds: float) -> None:
        """Nothing is looked at yet.

        Args:
            pid: of a process that can't vanish unnoticed: a child that is not yet reaped.
            kill_above_nbytes: resident memory above which it is killed.
            interval_seconds: how long to pause at least.
        """
        self.kill_above_nbytes = kill_above_nbytes
        self.nbytes: int | None = None
        """Resident memory at the last look."""
        self.has_killed = False
        self._above_since: float | None = None  # without a break
        self._process: psutil.Process | None = None
        self._pid, self._interval_seconds = pid, interval_seconds

    @property
    def pause_seconds(self) -> float:
        """How long not to look: the limit can't be reached before."""
        if self.nbytes is None:
            return self._interval_seconds
        if self._above_since is not None and not self.has_killed:
            return min(self._interval_seconds, GRACE_LOOK_SECONDS)
        room_nbytes = self.kill_above_nbytes - self.nbytes
        seconds = min(PAUSE_SECONDS_MAX, room_nbytes / GROWTH_BYTES_PER_SECOND)
        return max(self._interval_seconds, seconds)

    def is_too_much(self, nbytes: int, now: float) -> bool:
        """Whether the process is to be ended that has so much; `now`: of a monotonic clock."""
        if nbytes <= self.kill_above_nbytes:
            self._above_since = None
            return False
        if self._above_since is None:
            self._above_since = now
        is_far = nbytes > GRACE_RATIO * self.kill_above_nbytes
        return is_far or now - self._above_since >= GRACE_SECONDS

    def look(self) -> None:
        """Read the process's memory, and kill it if that is too much.  Cost: about 20 us."""
        if self.has_killed:
            return
        try:
            if self._process is None:
                self._process = psutil.Process(self._pid)
            nbytes = self._process.memory_info().rss
            if nbytes:  # else it has ended, and waits to be reaped
                self.nbytes = nbytes
            if self.is_too_much(nbytes, time.monotonic()):
                self._process.kill()
                self.has_killed = True
        except psutil.Error:
            pass  # it has ended; whoever waits for that is told


def seen_by(guard: MemoryGuard | None, exit_code: int | None) -> dict[str, Any]:
    """What is known of a process that has ended: those fields of `children.Ending`.

    Args:
        guard: of that process, if it had a limit.
        exit_code: as `subprocess` has it; None: nobody was told.
    """
    if guard is None:
        return {"memory_nbytes": None, "by_memory_limit": False}
    was_killed = guard.has_killed and exit_code in (None, -signal.SIGKILL)
    return {"memory_nbytes": guard.nbytes, "by_memory_limit": was_killed}
