"""A control group around a process, where the system has such."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shoal.nanny.bounding import enclose, release
from shoal.nanny.document import nthreads_of


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that does nothing."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


def test_a_process_and_what_it_starts_may_have_so_many_threads(
    sleeper: subprocess.Popen[bytes],
) -> None:
    group = enclose(sleeper.pid, 17)
    if group is None:
        pytest.skip("this system does not let us make control groups")
    assert (group / "pids.max").read_text().strip() == "17"
    assert (group / "cgroup.procs").read_text().split() == [str(sleeper.pid)]
    release(group)
    assert group.exists()  # as long as it lives
    sleeper.kill()
    sleeper.wait()
    release(group)
    assert not group.exists()


def test_a_group_that_a_dead_nanny_has_left_is_removed_by_the_next(
    sleeper: subprocess.Popen[bytes],
) -> None:
    left = enclose(sleeper.pid, 17)
    if left is None:
        pytest.skip("this system does not let us make control groups")
    sleeper.kill()
    sleeper.wait()
    with subprocess.Popen(["sleep", "60"]) as other:
        group = enclose(other.pid, 17)
        other.kill()
    assert group is not None
    assert not left.exists()
    release(group)
    assert not group.exists()


def test_groups_within_groups_that_were_left_are_removed_too(
    sleeper: subprocess.Popen[bytes],
) -> None:
    """As a task that had a cluster of its own leaves them, if its worker is killed."""
    left = enclose(sleeper.pid, 17)
    if left is None:
        pytest.skip("this system does not let us make control groups")
    (left / f"shoal-{sleeper.pid}").mkdir()
    sleeper.kill()
    sleeper.wait()
    with subprocess.Popen(["sleep", "60"]) as other:
        group = enclose(other.pid, 17)
        other.kill()
    assert group is not None
    assert not left.exists()
    release(group)


@pytest.mark.parametrize(
    ("document", "most", "nthreads"),
    [
        ({"role": "worker", "options": {"nthreads": 8}}, 100, 108),
        ({"role": "worker", "options": {}}, 100, 100),
        ({"role": "worker", "options": {"nthreads": 8}}, 0, 0),
        ({"role": "scheduler", "options": {}}, 100, 0),
        ({}, 100, 0),
    ],
)
def test_workers_alone_are_bounded_beside_the_threads_of_their_tasks(
    document: dict[str, Any], most: int, nthreads: int
) -> None:
    assert nthreads_of(document, most) == nthreads


def test_where_groups_are_hidden_or_not_ours_or_count_no_threads_nothing_is_left(
    tmp_path: Path,
) -> None:
    assert enclose(1, 10, tmp_path) is None
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/mine\n")
    assert enclose(1, 10, tmp_path) is None
    mine = tmp_path / "sys/fs/cgroup/mine"
    mine.mkdir(parents=True)
    assert enclose(1, 10, tmp_path) is None  # we are not in it, but in one below, which is hidden
    (mine / "cgroup.procs").write_text(f"{os.getpid()}\n")
    assert enclose(1, 10, tmp_path) is None  # a new group there has no `pids.max`
    assert enclose(1, 0, tmp_path) is None
    assert list(mine.iterdir()) == [mine / "cgroup.procs"]
