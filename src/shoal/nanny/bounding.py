"""A control group around one process: it and all that it starts have so many threads together.

A task that starts processes or threads without end takes those of its own worker only.  It can be
had where the system lets us make groups: as root with the first version, or below a group that is
ours to divide.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final

from shoal.observe.containers import ROOT, nearest_group

_PREFIX: Final = "shoal-"
"""A process's id follows."""


def enclose(pid: int, nthreads_max: int, root: Path = ROOT) -> Path | None:
    """Make a group for a process that was just started; None if none can be had.

    Groups of processes that have ended are removed, if their nannies could not do it.

    Args:
        nthreads_max: of all its processes together; 0: as many as there may be.
        root: where `proc` and `sys` are.

    Cost: some files; the system may take 15 ms to move the process.
    """
    parent = nearest_group("pids", root) if nthreads_max else None
    if parent is None or not os.access(parent, os.W_OK) or not _is_in(os.getpid(), parent):
        return None  # or it is one around ours, which is hidden: others' limits are not left
    _remove_left(parent, root)
    group = parent / f"{_PREFIX}{pid}"
    try:
        group.mkdir(exist_ok=True)
        with (group / "pids.max").open("r+", encoding="ascii") as limit:  # not made if not there
            limit.write(str(nthreads_max))
        (group / "cgroup.procs").write_text(str(pid), encoding="ascii")
    except OSError:
        release(group)
        return None
    return group


def release(group: Path) -> None:
    """Remove the group of a process that has ended.

    What it had started and left behind keeps it, and stays bounded; `enclose` looks again.
    """
    with contextlib.suppress(OSError):
        group.rmdir()


def _is_in(pid: int, group: Path) -> bool:
    try:
        return str(pid) in (group / "cgroup.procs").read_text(encoding="ascii").split()
    except OSError:
        return False


def _remove_left(parent: Path, root: Path) -> None:
    """The innermost first: workers may have had workers."""
    for group in sorted(parent.rglob(f"{_PREFIX}*"), reverse=True):
        if not (root / "proc" / group.name.removeprefix(_PREFIX)).exists():
            release(group)
