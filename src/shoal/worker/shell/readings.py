"""How much memory this process has, read as cheaply as the system allows.

Linux says both what a process has now and the most that it ever had, and lets it begin the second
anew: so a peak between two looks is seen, however short.  Elsewhere what is there at a look has to
do.  No file is kept open: a task that closes all descriptors would have us read, or write to, one
of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

import psutil

RESET_BYTES: Final = 2 << 20
"""A peak that is this near to what is there now needn't be begun anew."""

_PEAK_LINE: Final = b"VmHWM:"
_PEAK_FROM_NOW_ON: Final = b"5"


class ProcessMemory:
    """Memory of this process."""

    __slots__ = (
        "_aside",
        "_folder",
        "_has_statm",
        "_page_bytes",
        "_process",
        "_told",
        "_uses_usage",
        "sees_peaks",
    )

    def __init__(
        self,
        folder: str = "/proc/self",
        aside: Callable[[Callable[[], object]], object] | None = None,
    ) -> None:
        """`folder`: where the system tells of this process; `aside`: has a thread do what may wait
        for page faults of others; None: whoever calls does it.
        """
        self._folder = folder
        self._aside = aside
        self._told = 0  # the peak that is to be begun anew, and was told
        self._process: psutil.Process | None = None
        self._page_bytes = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
        self._has_statm = True
        now = self.now()
        self.sees_peaks = (
            self._has_statm and self._begin_anew() and 0 < self._of_status() <= now + RESET_BYTES
        )
        """Whether `peak` tells more than `now`."""
        # What a process was before it began this program counts in its usage for ever.
        self._uses_usage = self.sees_peaks and _of_usage() <= now + RESET_BYTES

    def __repr__(self) -> str:
        return f"<memory of this process, {'with' if self.sees_peaks else 'without'} peaks>"

    def now(self) -> int:
        """Bytes that are resident; 0 if nobody tells us.  Cost: 5 us on Linux, 12 us elsewhere."""
        if self._has_statm:
            try:
                return int(_read(f"{self._folder}/statm").split()[1]) * self._page_bytes
            except (OSError, IndexError, ValueError):
                self._has_statm = False
        try:
            if self._process is None:
                self._process = psutil.Process()
            rss: int = self._process.memory_info().rss
        except psutil.Error:
            return 0
        return rss

    def peak(self, now: int) -> int:
        """The most that was resident since the last call; `now`: what is.  Cost: 1 to 20 us."""
        if not self.sees_peaks:
            return now
        peak = _of_usage() if self._uses_usage else self._of_status()
        if peak > now + RESET_BYTES:
            told, self._told = self._told, max(peak, self._told)
            if peak <= told:
                return now  # it is about to be begun anew
            if not told:
                self._have_begun_anew()
        return max(peak, now)

    def _have_begun_anew(self) -> None:
        """That takes the lock of the process's memory, which page faults of other threads hold."""
        if self._aside is not None:
            try:
                self._aside(self._forget)
                return
            except RuntimeError:
                pass  # there are no threads any more
        self._forget()

    def _forget(self) -> None:
        self.sees_peaks = self._begin_anew()
        self._told = 0

    def _begin_anew(self) -> bool:
        """Have the system forget the peak; whether it does that."""
        try:
            descriptor = os.open(f"{self._folder}/clear_refs", os.O_WRONLY | os.O_CLOEXEC)
            try:
                return os.write(descriptor, _PEAK_FROM_NOW_ON) > 0
            finally:
                os.close(descriptor)
        except OSError:
            return False

    def _of_status(self) -> int:
        """The peak as the system counts; 0: it does not tell."""
        try:
            _, _, rest = _read(f"{self._folder}/status").partition(_PEAK_LINE)
            return int(rest.split(maxsplit=1)[0]) << 10
        except (OSError, IndexError, ValueError):
            return 0


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 4096)
    finally:
        os.close(descriptor)


def _of_usage() -> int:
    """The peak from the system's counts of what we use, which are quicker to be had."""
    import resource  # not on every system; on those, nothing tells of peaks

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
