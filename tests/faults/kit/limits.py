"""Small disks, small control groups, networks of their own: where the system lets us have them.

What can't be had is skipped with the words of what is lacking; the table of faults counts these.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import psutil
import pytest

CAP_NET_ADMIN = 12
CAP_SYS_ADMIN = 21

GROUPS = Path("/sys/fs/cgroup")
EMPTY_SECONDS_MAX = 10.0


def _may(capability: int) -> bool:
    """Whether this process has that capability."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return False
    for line in status.splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> capability & 1)
    return False


def _lack_of_mounts() -> str:
    if not _may(CAP_SYS_ADMIN):
        return "the right to mount a small disk"
    return "" if shutil.which("mount") else "the command `mount`"


def _memory_group() -> Path | None:
    """Where a group with a limit on memory can be made below; None: nowhere."""
    for place, limit in ((GROUPS / "memory", "memory.limit_in_bytes"), (GROUPS, "memory.max")):
        if (place / "cgroup.procs").exists() and os.access(place / "cgroup.procs", os.W_OK):
            controllers = place / "cgroup.subtree_control"
            if limit == "memory.limit_in_bytes" or "memory" in controllers.read_text().split():
                return place
    return None


def _lack_of_groups() -> str:
    return "" if _memory_group() is not None else "a control group that we may write to"


def _lack_of_networks() -> str:
    if not (_may(CAP_SYS_ADMIN) and _may(CAP_NET_ADMIN)):
        return "the right to make a network namespace"
    return "" if shutil.which("ip") else "the command `ip`"


def _needs(lack: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(bool(lack), reason=f"lacks {lack}")


needs_small_disk = _needs(_lack_of_mounts())
needs_memory_group = _needs(_lack_of_groups())
needs_networks = _needs(_lack_of_networks())


def run(*command: str) -> None:
    """Run it.  Raises AssertionError: it failed; with what it said."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"


@contextlib.contextmanager
def small_disk(folder: Path, nbytes: int) -> Iterator[Path]:
    """A disk of so many bytes at `folder`, which is made."""
    folder.mkdir()
    run("mount", "-t", "tmpfs", "-o", f"size={nbytes}", "tmpfs", str(folder))
    try:
        yield folder
    finally:
        run("umount", "--lazy", str(folder))


@contextlib.contextmanager
def memory_group(name: str, nbytes: int) -> Iterator[Path]:
    """A control group whose processes have so much memory together; they are ended with it."""
    place = _memory_group()
    assert place is not None
    group = place / f"shoal-test-{os.getpid()}-{name}"
    group.mkdir()
    try:
        is_first = place.name == "memory"
        (group / ("memory.limit_in_bytes" if is_first else "memory.max")).write_text(str(nbytes))
        yield group
    finally:
        _remove(group)


def inside_group(group: Path) -> tuple[str, ...]:
    """What to write before a command that shall run in `group`, as shall all that it starts."""
    return ("sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(group))


def _remove(group: Path) -> None:
    """End what is in it, and remove it."""
    deadline = monotonic() + EMPTY_SECONDS_MAX
    while True:
        for pid in (group / "cgroup.procs").read_text().split():
            with contextlib.suppress(psutil.NoSuchProcess):
                psutil.Process(int(pid)).kill()
        try:
            group.rmdir()
            return
        except OSError:  # nothing tells when the last has been reaped
            if monotonic() >= deadline:
                raise
            select.select([], [], [], 0.02)
