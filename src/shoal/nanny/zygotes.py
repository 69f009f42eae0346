"""The zygotes of this process: one for each kind of interpreter asked for, kept until exit.

What is started from a zygote is ready in a tenth of the time of a fresh interpreter, and so is the
second cluster of a program.  A zygote that was killed is replaced when the next process is wanted.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Final

from shoal.comms import forks
from shoal.nanny.bootstrap import command_of, kind_of_interpreter, to_bytes
from shoal.nanny.descriptors import handle_of, has_ended
from shoal.nanny.warming import loaded_here, wants_threads
from shoal.nanny.wire import send_loaded, send_request

WARM: Final = (
    "shoal.deploy.child",
    "shoal.scheduler.shell.service",
    "shoal.web.page",
    "shoal.worker.shell.service",
    "cloudpickle",
    "uvloop",
)
"""What services import, and what starts no threads: not numpy, whose settings are a worker's."""

ORPHAN_SECONDS: Final = 5.0
"""How long services may live on without us; by themselves they take a second less."""

EXIT_SECONDS: Final = 1.0
"""How long the end of the interpreter waits for that of a zygote."""

_WORDS_BYTES_MAX: Final = 10_000

_ENTRY: Final = "shoal.nanny.zygote"


class ZygoteProcess:
    """One zygote, seen from its owner.  From any thread."""

    def __init__(self, environ: Mapping[str, str], orphan_seconds: float = ORPHAN_SECONDS) -> None:
        """Start it.  Returns at once: what is asked of it waits until it is ready.

        Args:
            environ: all of its environment.
            orphan_seconds: how long its children may live on without us.

        Raises:
            OSError: the system has no process for us.
        """
        self._control, theirs = socket.socketpair()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 -- open as long as the zygote is
        try:
            self.pid = os.posix_spawn(
                sys.executable,
                command_of(_ENTRY),
                environ,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, theirs.fileno(), 0),
                    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                    (os.POSIX_SPAWN_DUP2, self._errors.fileno(), 2),
                ],
                setpgroup=0,  # Ctrl-C is for us
                setsigdef=[signal.SIGINT],
            )
        except BaseException:
            self.dismiss()
            raise
        finally:
            theirs.close()
        self._is_reaped = False
        self._may_warm = not wants_threads(environ)
        self._told = 0  # which modules should be at hand
        document = {
            "path": [str(entry) for entry in sys.path],
            "warm": WARM,
            "orphan_seconds": orphan_seconds,
        }
        with contextlib.suppress(OSError):  # it has ended already; who asks it is told
            self._control.sendall(to_bytes(document))
        forks.belongs_to_this_process(self)

    def __repr__(self) -> str:
        return f"<zygote {self.pid}>"

    @property
    def descriptors(self) -> list[int]:
        """Those that stay open as long as it is of use."""
        return [] if self._errors.closed else [self._control.fileno(), self._errors.fileno()]

    def last_words(self) -> str:
        """What it wrote to stderr; empty: nothing, or it was dismissed."""
        if self._errors.closed:
            return ""
        return os.pread(self._errors.fileno(), _WORDS_BYTES_MAX, 0).decode(errors="replace").strip()

    def fork(
        self, descriptors: Sequence[int], kill_above_nbytes: int, interval_seconds: float
    ) -> None:
        """Ask for a process; see `wire.send_request`, for the errors as well."""
        send_request(self._control, descriptors, kill_above_nbytes, interval_seconds)
        loaded = loaded_here()
        if self._may_warm and loaded & ~self._told:
            self._told |= loaded
            send_loaded(self._control, loaded)

    def has_ended(self) -> bool:
        """Whether it is of no use any more."""
        if not self._is_reaped:
            try:
                pid, _ = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # somebody else waits for all children of this process
                pid = self.pid
            self._is_reaped = pid != 0
        return self._is_reaped

    def dismiss(self) -> None:
        """Have it end, which it does once its children have."""
        self._control.close()
        self._errors.close()

    def wait(self, deadline: float) -> None:
        """Until it has ended, or `deadline` on the monotonic clock; then it is killed."""
        while not self.has_ended():
            left = deadline - time.monotonic()
            if left <= 0:
                with contextlib.suppress(ProcessLookupError):  # another thread waits, too
                    os.kill(self.pid, signal.SIGKILL)
                left = EXIT_SECONDS
                deadline = time.monotonic() + left
            _wait_for_end_of(self.pid, left)

    def disown(self) -> None:
        """See `forks.Disowned`."""
        self._is_reaped = True
        self.dismiss()


_zygotes: dict[tuple[str, ...], ZygoteProcess] = {}
_lock = threading.Lock()


def zygote_for(environ: Mapping[str, str]) -> ZygoteProcess:
    """A zygote whose children may have this environment; a new one, if there is none.

    Raises:
        OSError: the system has no process for us.
    """
    kind = kind_of_interpreter(environ)
    with _lock:
        zygote = _zygotes.get(kind)
        if zygote is None or zygote.has_ended():
            if zygote is not None:
                zygote.dismiss()
            zygote = _zygotes[kind] = ZygoteProcess(environ)
        return zygote


def kept_descriptors() -> list[int]:
    """Those that stay open until the interpreter ends: two for each zygote."""
    with _lock:
        return [number for zygote in _zygotes.values() for number in zygote.descriptors]


def discard(zygote: ZygoteProcess) -> None:
    """It does not answer: let the next who wants one have another."""
    with _lock:
        for kind, known in list(_zygotes.items()):
            if known is zygote:
                del _zygotes[kind]
    zygote.dismiss()
    zygote.wait(time.monotonic())


def _begin_anew() -> None:
    """In a child of a fork: the zygotes are its parent's, and the lock is perhaps held for ever."""
    global _lock  # noqa: PLW0603 -- there is one for each process
    _lock = threading.Lock()
    _zygotes.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


@atexit.register
def dismiss_all() -> None:
    """Let all zygotes end, and wait until they have.  Clusters are closed by then."""
    with _lock:
        leaving = list(_zygotes.values())
        _zygotes.clear()
    for zygote in leaving:
        zygote.dismiss()
    deadline = time.monotonic() + EXIT_SECONDS
    for zygote in leaving:
        zygote.wait(deadline)


def _wait_for_end_of(pid: int, seconds: float) -> None:
    """Return when the process has ended, or a little later than `seconds` at most."""
    handle = handle_of(pid)
    if handle is None:
        time.sleep(min(seconds, 0.005))
        return
    try:
        has_ended(handle, seconds)
    finally:
        os.close(handle)
