"""Which descriptors a new process has: those that it was given, under the numbers it expects."""

from __future__ import annotations

import fcntl
import os
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
