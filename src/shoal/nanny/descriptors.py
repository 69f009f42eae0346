"""Descriptors: those that a new process has, and those that stand for a process."""

from __future__ import annotations

import fcntl
import os
import select
import socket
from collections.abc import Collection, Sequence
from typing import Final

NSTANDARD: Final = 3
"""Standard input, output and errors are the first."""


def close_all_but(kept: Collection[int]) -> None:
    """Close whatever else is open, standard streams excepted; no object may think it holds one."""
    try:
        opened = sorted(int(name) for name in os.listdir("/dev/fd"))
    except OSError:  # not on this system
        opened = list(range(os.sysconf("SC_OPEN_MAX")))
    for descriptor in opened:
        if descriptor >= NSTANDARD and descriptor not in kept:
            try:
                os.close(descriptor)
            except OSError:
                pass  # the listing's own


def place(found: Sequence[int], wanted: Sequence[int]) -> None:
    """Give each descriptor of `found` its number of `wanted`, which nothing else may have."""
    above = max((*found, *wanted), default=NSTANDARD) + 1
    moved = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, above) for descriptor in found]
    for descriptor in found:
        os.close(descriptor)
    for descriptor, number in zip(moved, wanted, strict=True):
        os.dup2(descriptor, number, inheritable=False)
        os.close(descriptor)


def take_standard_input() -> socket.socket:
    """The socket that standard input is; whoever reads that from now on finds nothing."""
    taken = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return taken


def handle_of(pid: int) -> int | None:
    """A descriptor that stands for a process, whatever becomes of its id.

    None: the system knows no such thing, or the process has ended and was reaped.
    """
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def has_ended(handle: int, seconds: float) -> bool:
    """Whether the process of `handle_of` has ended; waits for that, `seconds` at most."""
    poller = select.poll()
    poller.register(handle, select.POLLIN)
    return bool(poller.poll(1000 * seconds))
