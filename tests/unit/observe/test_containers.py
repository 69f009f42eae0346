"""What control groups allow, as the system writes it: both versions, wherever the process is."""

from pathlib import Path

import pytest

from shoal.observe.containers import Groups, Memory
from shoal.observe.limits import cpu_count, host_memory_bytes, threads_max

GIB = 1 << 30
UNLIMITED_V1 = "9223372036854771712"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty system; see `write`."""
    return tmp_path


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n", encoding="ascii")


def test_without_control_groups_nothing_is_limited(root: Path) -> None:
    groups = Groups(root)
    assert groups.memory_limit() == 0
    assert groups.memory() == Memory(0, 0)
    assert groups.cpu_quota() == float("inf")
    assert groups.nkilled() == 0


def test_the_least_limit_of_the_own_group_and_those_above_holds(root: Path) -> None:
    write(
        root,
        {
            "proc/self/cgroup": "0::/pods/mine/task",
            "sys/fs/cgroup/cgroup.controllers": "cpu memory",
            "sys/fs/cgroup/pods/memory.max": str(8 * GIB),
            "sys/fs/cgroup/pods/mine/memory.max": str(2 * GIB),
            "sys/fs/cgroup/pods/mine/memory.current": str(GIB),
            "sys/fs/cgroup/pods/mine/memory.stat": "anon 1\ninactive_file 1024\nactive_file 7",
            "sys/fs/cgroup/pods/mine/task/memory.max": "max",
            "sys/fs/cgroup/pods/other/memory.max": str(GIB),
        },
    )
    groups = Groups(root)
    assert groups.memory_limit() == 2 * GIB
    assert groups.memory() == Memory(GIB - 1024, 2 * GIB)


def test_where_the_system_begins_to_hold_back_is_a_limit_too(root: Path) -> None:
    write(
        root,
        {
            "proc/self/cgroup": "0::/mine",
            "sys/fs/cgroup/mine/memory.max": str(4 * GIB),
            "sys/fs/cgroup/mine/memory.high": str(3 * GIB),
        },
    )
    assert Groups(root).memory_limit() == 3 * GIB


def test_what_is_only_kept_for_a_group_is_no_limit(root: Path) -> None:
    write(
        root,
        {
            "proc/self/cgroup": "0::/mine\n4:memory:/mine",
            "sys/fs/cgroup/mine/memory.low": str(GIB),
            "sys/fs/cgroup/mine/memory.min": str(GIB),
            "sys/fs/cgroup/memory/mine/memory.soft_limit_in_bytes": str(GIB),
            "sys/fs/cgroup/memory/mine/memory.limit_in_bytes": UNLIMITED_V1,
        },
    )
    assert Groups(root).memory_limit() == 0


def test_the_first_version_is_read_from_its_own_place(root: Path) -> None:
    write(
        root,
        {
            "proc/self/cgroup": "5:cpu,cpuacct:/box\n4:memory:/box\n0::/",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": UNLIMITED_V1,
            "sys/fs/cgroup/memory/box/memory.limit_in_bytes": str(GIB),
            "sys/fs/cgroup/memory/box/memory.usage_in_bytes": str(GIB // 2),
            "sys/fs/cgroup/memory/box/memory.stat": "cache 9\ntotal_inactive_file 512",
            "sys/fs/cgroup/memory/box/memory.oom_control": "oom_kill_disable 0\noom_kill 3",
            "sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us": "150000",
            "sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us": "100000",
        },
    )
    groups = Groups(root)
    assert groups.memory() == Memory(GIB // 2 - 512, GIB)
    assert groups.cpu_quota() == 1.5
    assert groups.nkilled() == 3


def test_a_container_that_hides_where_it_is_shows_its_limit_at_the_top(root: Path) -> None:
    write(
        root,
        {
            "proc/self/cgroup": "4:memory:/docker/0123456789abcdef\n0::/docker/0123456789abcdef",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": str(GIB),
        },
    )
    assert Groups(root).memory_limit() == GIB


def test_a_group_outside_of_what_is_seen_is_not_looked_for_elsewhere(root: Path) -> None:
    write(
        root,
        {
            "proc/self/cgroup": "0::/../../elsewhere",
            "sys/fs/cgroup/memory.max": str(GIB),
            "sys/elsewhere/memory.max": "1",
        },
    )
    assert Groups(root).memory_limit() == GIB


def test_the_least_quota_of_processors_holds(root: Path) -> None:
    write(
        root,
        {
            "proc/self/cgroup": "0::/pods/mine",
            "sys/fs/cgroup/pods/cpu.max": "400000 100000",
            "sys/fs/cgroup/pods/mine/cpu.max": "50000 100000",
        },
    )
    groups = Groups(root)
    assert groups.cpu_quota() == 0.5
    assert cpu_count(groups) == 1  # there is always one


def test_killed_processes_are_counted(root: Path) -> None:
    write(
        root,
        {
            "proc/self/cgroup": "0::/mine",
            "sys/fs/cgroup/mine/memory.events": "low 0\noom 4\noom_kill 2\noom_group_kill 0",
        },
    )
    assert Groups(root).nkilled() == 2


def test_no_more_memory_is_shared_than_the_container_has(root: Path) -> None:
    write(
        root,
        {
            "proc/self/cgroup": "0::/mine",
            "sys/fs/cgroup/mine/memory.max": str(1 << 20),
        },
    )
    assert host_memory_bytes(Groups(root)) == 1 << 20
    assert host_memory_bytes(Groups(root / "elsewhere")) > 1 << 20


def test_lines_that_no_linux_writes_are_passed_over(root: Path) -> None:
    write(root, {"proc/self/cgroup": "nonsense\n0::/mine", "sys/fs/cgroup/mine/memory.max": "1000"})
    assert Groups(root).memory_limit() == 1000


def test_the_least_number_of_threads_that_a_group_around_us_may_have_holds(root: Path) -> None:
    write(
        root,
        {
            "proc/self/cgroup": "0::/box/inner",
            "sys/fs/cgroup/box/pids.max": "100",
            "sys/fs/cgroup/box/inner/pids.max": "max",
            "proc/sys/kernel/threads-max": "5000",
        },
    )
    assert Groups(root).nthreads_max() == 100
    assert threads_max(root, Groups(root)) == 100
    write(root, {"sys/fs/cgroup/box/pids.max": "max", "proc/sys/kernel/threads-max": "50"})
    assert Groups(root).nthreads_max() == 0
    assert threads_max(root, Groups(root)) == 50
