"""A control group around a process, where the system has such."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.nanny.bounding import enclose, release


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


def test_where_groups_are_hidden_or_not_ours_or_count_no_threads_nothing_is_left(
    tmp_path: Path,
) -> None:
    assert enclose(1, 10, tmp_path) is None
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/mine\n")
    assert enclose(1, 10, tmp_path) is None
    mine = tmp_path / "sys/fs/cgroup/mine"
    mine.mkdir(parents=True)
    assert enclose(1, 10, tmp_path) is None  # a new group there has no `pids.max`
    assert enclose(1, 0, tmp_path) is None
    assert list(mine.iterdir()) == []
