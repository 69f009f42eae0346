"""The process that others are forked from: it has what they need in memory already.

It has one thread and no loop, imports only what starts no threads, and does three things: it forks
when it is asked to, tells how each of its children ended, and ends those that take more memory than
they may.  It knows no secret: what a child shall be, the child is told by its owner directly.

It ends when its owner does, or says that it needs no more children; the children that are left then
have some seconds to notice that they are alone, as each has a line to the owner of its own.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import threading
import time
from importlib import import_module
from types import FrameType
from typing import Any, Final

from shoal.nanny.birth import Birth, live
from shoal.nanny.descriptors import close_all_but, handle_of, take_standard_input
from shoal.nanny.memory import MemoryGuard, seen_by
from shoal.nanny.warming import load_one, nthreads_that_matter
from shoal.nanny.wire import answer, receive_request

IDLE_SECONDS: Final = 0.2
"""How long nobody must have asked for a process before it imports what is not urgent."""

_RSS_UNIT_BYTES: Final = 1 if os.uname().sysname == "Darwin" else 1024
"""Of `getrusage`."""


def main(document: dict[str, Any]) -> None:
    """Import what `document` names, then serve; in a forked child, be that child."""
    control = take_standard_input()
    close_all_but([control.fileno()])  # what the owner has left inheritable
    gc.disable()  # a collection would write to every page that the children share
    for name in document["warm"]:
        try:
            import_module(name)
        except ImportError:
            pass  # who needs it says so, and some need not be installed
    gc.collect()
    gc.freeze()
    birth = Zygote(control, document["orphan_seconds"]).serve()
    if birth is not None:
        live(birth)


class _Child:
    """One that runs: where to report, and what it may use."""

    def __init__(self, report: socket.socket, guard: MemoryGuard | None) -> None:
        self.report, self.guard = report, guard


class Zygote:
    """Serves its owner until that is gone."""

    def __init__(self, control: socket.socket, orphan_seconds: float) -> None:
        """`orphan_seconds`: how long children may live on without an owner."""
        self._control, self._orphan_seconds = control, orphan_seconds
        self._children: dict[int, _Child] = {}  # by process id
        self._bell, self._ringer = socket.socketpair()  # rings when a child ends
        self._leaves_at: float | None = None  # on the monotonic clock
        self._asked_at = 0.0
        self._wanted = 0  # modules to import, see `warming`

    def serve(self) -> Birth | None:
        """Fork and watch.  Returns a Birth in each child, and None when all is over."""
        self._listen_for_ends()
        poller = select.poll()
        poller.register(self._control, select.POLLIN)
        poller.register(self._bell, select.POLLIN)
        while self._leaves_at is None or self._children:
            for descriptor, _ in poller.poll(self._pause_milliseconds()):
                if descriptor == self._bell.fileno():
                    self._bell.recv(4096)
                    continue
                request = receive_request(self._control)
                self._asked_at = time.monotonic()
                if request is not None and not request[0]:
                    self._wanted |= request[1]
                elif request is None:
                    poller.unregister(self._control)
                    self._leaves_at = time.monotonic() + self._orphan_seconds
                elif (birth := self._fork(*request)) is not None:
                    return birth
            self._reap()
            self._look()
            if self._wanted and time.monotonic() - self._asked_at >= IDLE_SECONDS:
                self._warm()
        signal.set_wakeup_fd(-1)
        self._let_go()
        return None

    def _warm(self) -> None:
        """Import one more of the modules that the owner has; children share what that takes."""
        self._wanted = load_one(self._wanted)
        gc.collect()
        gc.freeze()

    def _listen_for_ends(self) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is for the owner, which then closes us
        signal.signal(signal.SIGCHLD, _ring)
        self._bell.setblocking(False)
        self._ringer.setblocking(False)
        signal.set_wakeup_fd(self._ringer.fileno(), warn_on_full_buffer=False)

    def _fork(
        self, descriptors: list[int], kill_above_nbytes: int, interval_seconds: float
    ) -> Birth | None:
        """A child, and word of it; the Birth in the child itself."""
        report = socket.socket(fileno=descriptors[0])
        try:
            _require_one_thread()
            pid = os.fork()
        except (OSError, RuntimeError) as error:
            answer(report, {"error": str(error)})
            report.close()
        else:
            if pid == 0:
                report.close()
                self._let_go()
                channel, output, errors, *inherited = descriptors[1:]
                return Birth(channel, output, errors, inherited)
            guard = None
            if kill_above_nbytes:
                guard = MemoryGuard(pid, kill_above_nbytes, interval_seconds)
            self._children[pid] = _Child(report, guard)
            handle = handle_of(pid)
            answer(report, {"pid": pid}, () if handle is None else (handle,))
            if handle is not None:
                os.close(handle)
        for descriptor in descriptors[1:]:
            os.close(descriptor)
        return None

    def _let_go(self) -> None:
        """Of what the zygote has open; a child that was forked has no use for it."""
        for child in self._children.values():
            child.report.close()
        for ours in (self._control, self._bell, self._ringer):
            ours.close()
        self._children.clear()

    def _pause_milliseconds(self) -> float | None:
        """Until there is something to do that nobody wakes us for."""
        pauses = []
        for child in self._children.values():
            if child.guard is not None:
                pauses.append(child.guard.pause_seconds)
        if self._wanted:
            pauses.append(max(0.0, self._asked_at + IDLE_SECONDS - time.monotonic()))
        if self._leaves_at is not None:
            pauses.append(max(0.0, self._leaves_at - time.monotonic()))
        return 1000 * min(pauses) if pauses else None

    def _look(self) -> None:
        """At the memory of those that have a limit, and whether the children must go."""
        for child in self._children.values():
            if child.guard is not None:
                child.guard.look()
        if self._leaves_at is not None and time.monotonic() >= self._leaves_at:
            for pid in self._children:
                os.kill(pid, signal.SIGKILL)  # not reaped yet, so it is still that process

    def _reap(self) -> None:
        """Say of each child that has ended how it did."""
        while self._children:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
            if pid == 0:
                return
            child = self._children.pop(pid, None)
            if child is None:
                continue  # started by something that we have imported
            exit_code = os.waitstatus_to_exitcode(status)
            words = {
                "exit_code": exit_code,
                "memory_peak_nbytes": usage.ru_maxrss * _RSS_UNIT_BYTES,
            }
            answer(child.report, words | seen_by(child.guard, exit_code))
            child.report.close()


def _ring(number: int, frame: FrameType | None) -> None:
    """Nothing is left to do: the signal has rung the bell already."""


def _require_one_thread() -> None:
    """Raise RuntimeError if a fork would lose threads, and perhaps the locks that they hold."""
    nthreads = max(threading.active_count(), nthreads_that_matter())
    if nthreads > 1:
        raise RuntimeError(f"the process to fork from runs {nthreads} threads")
