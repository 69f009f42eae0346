"""What a test leaves behind: threads, processes, descriptors, exceptions that nobody looked at.

`Watch()` remembers what there is; `leaked()` says what came since and won't go.  It waits on the
things themselves, so a test that cleans up well pays nothing.
"""

import gc
import logging
import os
import select
import threading
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from time import monotonic

import psutil

from shoal.nanny.zygotes import kept_descriptors

OUR_THREADS = "shoal"
"""Threads named so are ours, and end with what started them, daemon or not."""

ZYGOTE = "shoal.nanny.zygote"
"""In the command of the process that we keep to fork others from, until the interpreter ends."""

HELPERS = ("multiprocessing.resource_tracker", "multiprocessing.forkserver", ZYGOTE)
"""Processes that are kept until the interpreter ends: the standard library's, and that one of ours.
They are nobody's leak; what our own has forked is, as if it were a child of this process."""

IGNORED_TARGETS = ("/dev/null", "/dev/urandom", "/dev/shm/", "/proc/", "/sys/")
DESCRIPTORS = Path("/proc/self/fd")


def open_what_stays() -> None:
    """Let uvloop, where it is installed, open the pipe that it keeps for the life of a process."""
    if find_spec("uvloop") is not None:
        import_module("uvloop").new_event_loop().close()


class _Unretrieved(logging.Handler):
    """Collects what asyncio says of exceptions and tasks that were dropped."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage().partition("\n")[0]
        if "never retrieved" in text or "was destroyed but it is pending" in text:
            cause = record.exc_info[1] if record.exc_info else None
            self.texts.append(f"asyncio: {text}" + (f" ({cause!r})" if cause else ""))


@dataclass
class Watch:
    """What there was when the test began."""

    threads: set[threading.Thread] = field(default_factory=lambda: set(threading.enumerate()))
    children: set[int] = field(default_factory=lambda: set(_child_ids()))
    descriptors: dict[int, str] = field(default_factory=lambda: _descriptors())  # noqa: PLW0108 -- defined below

    def __post_init__(self) -> None:
        self._unretrieved = _Unretrieved()
        logging.getLogger("asyncio").addHandler(self._unretrieved)

    def leaked(self, grace_seconds: float = 5.0) -> list[str]:
        """A sentence for each thing that is still there after `grace_seconds`; ends the watch."""
        deadline = monotonic() + grace_seconds
        found = [*self._threads_left(deadline), *self._children_left(deadline)]
        gc.collect()  # dropped tasks and sockets speak up when they are freed
        found += self._descriptors_left(deadline)
        logging.getLogger("asyncio").removeHandler(self._unretrieved)
        return found + self._unretrieved.texts

    def _threads_left(self, deadline: float) -> list[str]:
        left = []
        for thread in threading.enumerate():
            ours = thread.name.startswith(OUR_THREADS)
            if thread in self.threads or (thread.daemon and not ours):
                continue
            thread.join(max(0.0, deadline - monotonic()))
            if thread.is_alive():
                left.append(f"thread {thread.name!r} is still running")
        return left

    def _children_left(self, deadline: float) -> list[str]:
        new = [pid for pid in _child_ids() if pid not in self.children]
        processes = [process for pid in new if (process := _process(pid)) is not None]
        if not processes:
            return []
        _, alive = psutil.wait_procs(processes, timeout=max(0.0, deadline - monotonic()))
        return [f"child process {described(process)} is still there" for process in alive]

    def _descriptors_left(self, deadline: float) -> list[str]:
        while new := self._new_descriptors():
            # Nothing tells when another thread closes a descriptor: look again until it has.
            if monotonic() >= deadline:
                return [f"descriptor {number} ({target}) is open" for number, target in new]
            select.select([], [], [], 0.005)
        return []

    def _new_descriptors(self) -> list[tuple[int, str]]:
        now = _descriptors().items()
        kept = kept_descriptors()
        return [
            (n, target) for n, target in now if self.descriptors.get(n) != target and n not in kept
        ]


def _descriptors() -> dict[int, str]:
    """Open descriptor → what it is; empty where the system doesn't tell."""
    found: dict[int, str] = {}
    if not DESCRIPTORS.exists():
        return found
    for name in os.listdir(DESCRIPTORS):
        try:
            target = os.readlink(DESCRIPTORS / name)
        except OSError:  # the one that listed the directory
            continue
        if not target.startswith(IGNORED_TARGETS):
            found[int(name)] = target
    return found


def _child_ids() -> list[int]:
    """Children of this process, and of zygotes among them."""
    children = _children_of(os.getpid())
    return children + [
        pid for child in children if _is_zygote(child) for pid in _children_of(child)
    ]


def _children_of(pid: int) -> list[int]:
    """From the kernel's own lists; much cheaper than a look at all processes."""
    found = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            text = Path(f"/proc/{pid}/task/{thread}/children").read_text(encoding="ascii")
            found += [int(pid) for pid in text.split()]
    except OSError:  # another system, or a thread that ended meanwhile
        try:
            return [child.pid for child in psutil.Process(pid).children()]
        except psutil.Error:
            return []
    return found


def _is_zygote(child: int) -> bool:
    try:
        return ZYGOTE in " ".join(psutil.Process(child).cmdline())
    except psutil.Error:
        return False


def _process(pid: int) -> psutil.Process | None:
    """The process, unless it is gone, or one that is meant to stay."""
    try:
        process = psutil.Process(pid)
        command = " ".join(process.cmdline())
        is_child = process.ppid() == os.getpid()
    except psutil.Error:
        return None
    is_helper = is_child and any(helper in command for helper in HELPERS)
    return None if is_helper else process


def described(process: psutil.Process) -> str:
    """Its number, and what it is if it can still be asked."""
    try:
        return f"{process.pid} ({process.status()}: {' '.join(process.cmdline())[:200]})"
    except psutil.Error:
        return str(process.pid)
