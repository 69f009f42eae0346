"""A process that was started, seen from its owner: alive or how it ended, and signals to it.

Two kinds: forked from a zygote, which reports its end, and spawned by ourselves.  What stands for
a process is a descriptor of it where the system has such a thing: a signal then never reaches
another process that has got the same id, and its end is an event.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from shoal.comms import forks
from shoal.nanny.bounding import enclose, release
from shoal.nanny.descriptors import handle_of, has_ended
from shoal.nanny.memory import MemoryGuard, seen_by
from shoal.nanny.wire import receive_answer

_POLL_SECONDS: Final = 0.02
"""Between looks at a process of which the system tells nothing by itself."""

_REPORT_SECONDS: Final = 1.0
"""How long a zygote may take to say how a child ended, once it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What became known of a process's end; the fields are those of `death.Death`."""

    exit_code: int | None
    memory_nbytes: int | None = None
    memory_peak_nbytes: int | None = None
    by_memory_limit: bool = False


class NotStarted(Exception):
    """The zygote has not started a process.  Never leaves this package."""

    def __init__(self, reason: str, *, is_gone: bool = False) -> None:
        """`is_gone`: the zygote has ended; else it lives, and said `reason`."""
        super().__init__(reason)
        self.reason, self.is_gone = reason, is_gone


class Child(ABC):
    """One process.  `ended` belongs to one task of one loop; the rest is for any thread."""

    pid: int

    def __init__(self, kill_above_nbytes: int, interval_seconds: float) -> None:
        """`kill_above_nbytes`: resident memory above which it is killed; 0: never."""
        self._kill_above_nbytes, self._interval_seconds = kill_above_nbytes, interval_seconds
        self._guard: MemoryGuard | None = None
        self._ending: Ending | None = None
        self._handle: int | None = None  # of the process
        self._group: Path | None = None  # around it
        self._lock = threading.Lock()
        forks.belongs_to_this_process(self)

    def poll(self) -> Ending | None:
        """How it ended; None if it hasn't."""
        with self._lock:
            if self._ending is None:
                self._ending = self._find_ending()
            return self._ending

    async def ended(self) -> Ending:
        """Wait until it has ended."""
        loop = asyncio.get_running_loop()
        while (ending := self.poll()) is None:
            await _readable(loop, self._events(), self._look())
        return ending

    def wait(self, deadline: float) -> bool:
        """Wait without a loop, until `deadline` on the monotonic clock; whether it has ended."""
        while self.poll() is None:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            with self._lock:  # or its loop might close them in between
                events = self._events() if self._ending is None else []
            poller = select.poll()
            for descriptor in events:
                poller.register(descriptor, select.POLLIN)
            longest = _REPORT_SECONDS if events else _POLL_SECONDS
            poller.poll(1000 * min(left, longest))
        return True

    async def keep_within(self, nthreads_max: int) -> None:
        """Let it and all that it starts have no more threads, if the system can; 0: any number."""
        if nthreads_max:
            self._group = await asyncio.to_thread(enclose, self.pid, nthreads_max)

    def send_signal(self, number: int) -> None:
        """Send it a signal; nothing happens if it has ended."""
        with self._lock, contextlib.suppress(ProcessLookupError):
            if self._ending is not None:
                return
            if self._handle is not None:
                signal.pidfd_send_signal(self._handle, number)
            else:
                os.kill(self.pid, number)

    def release(self) -> None:
        """Close what stands for it; from now on it counts as ended.  When nobody waits for it."""
        with self._lock:
            if self._ending is None:
                self._ending = Ending(exit_code=None)
            self._close()

    def disown(self) -> None:
        """See `forks.Disowned`."""
        self._lock = threading.Lock()
        self._group = None
        self.release()

    def _look(self) -> float | None:
        """At its memory, if nobody else does; seconds until the next look, None: never."""
        if not self._kill_above_nbytes or not self._is_ours_to_guard():
            return None if self._events() else _POLL_SECONDS
        if self._guard is None:
            self._guard = MemoryGuard(self.pid, self._kill_above_nbytes, self._interval_seconds)
        self._guard.look()
        return self._guard.pause_seconds

    def _close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
        if self._group is not None:
            release(self._group)
            self._group = None

    @abstractmethod
    def _is_ours_to_guard(self) -> bool:
        """Whether nobody but us looks at its memory."""

    @abstractmethod
    def _events(self) -> list[int]:
        """Descriptors that become readable when there is something new."""

    @abstractmethod
    def _find_ending(self) -> Ending | None:
        """Without waiting."""


class SpawnedChild(Child):
    """An interpreter that we have started ourselves."""

    def __init__(
        self, popen: subprocess.Popen[bytes], kill_above_nbytes: int, interval_seconds: float
    ) -> None:
        super().__init__(kill_above_nbytes, interval_seconds)
        self._popen = popen
        self.pid = popen.pid
        self._handle = handle_of(popen.pid)

    def _is_ours_to_guard(self) -> bool:
        return True

    def _events(self) -> list[int]:
        return [] if self._handle is None else [self._handle]

    def _find_ending(self) -> Ending | None:
        exit_code = self._popen.poll()
        if exit_code is None:
            return None
        return Ending(exit_code=exit_code, **seen_by(self._guard, exit_code))

    def _close(self) -> None:
        super()._close()
        self._popen.returncode = self._popen.returncode or 0  # else it warns that it still runs


class ForkedChild(Child):
    """One that a zygote has forked, and reports of."""

    def __init__(
        self, report: socket.socket, kill_above_nbytes: int, interval_seconds: float
    ) -> None:
        """`report`: where the zygote answers; it belongs to us from now on."""
        super().__init__(kill_above_nbytes, interval_seconds)
        self.pid = 0
        report.setblocking(False)
        self._report = report
        self._is_told = True  # as long as the zygote lives, which then guards the memory, too
        self._ended_at: float | None = None  # on the monotonic clock, if not told how
        self._said = b""
        self._answers: list[dict[str, Any]] = []

    async def started(self) -> None:
        """Wait until the process runs.

        Raises:
            NotStarted: it never will.
        """
        loop = asyncio.get_running_loop()
        self._hear()
        while self._is_told and not self._answers:
            await _readable(loop, [self._report.fileno()], None)
            self._hear()
        if not self._answers:
            raise NotStarted("the process to fork from has ended", is_gone=True)
        words = self._answers.pop(0)
        if "pid" not in words:
            raise NotStarted(words["error"])
        self.pid = words["pid"]

    def _is_ours_to_guard(self) -> bool:
        return not self._is_told

    def _events(self) -> list[int]:
        handle = [] if self._handle is None else [self._handle]
        if not self._is_told:
            return handle
        report = self._report.fileno()
        return [report, *handle] if self._ended_at is None else [report]

    def _look(self) -> float | None:
        seconds = super()._look()
        return seconds if self._ended_at is None else _REPORT_SECONDS

    def _hear(self) -> None:
        """What the zygote has said since."""
        while self._is_told:
            try:
                piece, descriptors = receive_answer(self._report)
            except BlockingIOError:
                return
            for descriptor in descriptors:
                self._handle = descriptor
            *lines, self._said = (self._said + piece).split(b"\n")
            self._answers += map(json.loads, lines)
            self._is_told = bool(piece)

    def _find_ending(self) -> Ending | None:
        self._hear()
        if self._answers:
            return Ending(**self._answers.pop(0))
        if not self._is_over():
            return None
        return Ending(exit_code=None, **seen_by(self._guard, None))

    def _is_over(self) -> bool:
        """Whether it has ended, and nobody will say how: a zygote may be gone, or stand still."""
        if (self._is_told and self._handle is None) or _is_alive(self.pid, self._handle):
            return False
        now = time.monotonic()
        if self._ended_at is None:
            self._ended_at = now
        return not self._is_told or now - self._ended_at >= _REPORT_SECONDS

    def _close(self) -> None:
        super()._close()
        self._report.close()


def _is_alive(pid: int, handle: int | None) -> bool:
    """Whether a process runs whose parent was another."""
    if handle is not None:
        return not has_ended(handle, 0.0)
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


async def _readable(
    loop: asyncio.AbstractEventLoop, descriptors: Sequence[int], seconds: float | None
) -> None:
    """Wait until there is something to read, but no longer than `seconds`."""
    ready = loop.create_future()
    for descriptor in descriptors:
        loop.add_reader(descriptor, _resolve, ready)
    try:
        await asyncio.wait((ready,), timeout=seconds)
    finally:
        for descriptor in descriptors:
            loop.remove_reader(descriptor)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
