"""`cluster.scheduler` of a cluster of processes: a view over the wire."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shoal import Client
from shoal.deploy.local import LocalCluster
from shoal.observe.errors import NotInView, ReadOnlyView, ViewWouldBlock
from shoal.observe.remote import RemoteScheduler
from shoal.testing.clusters import gen_test

ONLY_REMOTE = {"addresses", "contact_address", "ip", "listen_address", "of", "pid", "time_started"}
"""What a scheduler of one's own process has no need to tell."""

OPTIONS: dict[str, Any] = {"threads_per_worker": 2, "dashboard_address": None}


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """Two worker processes."""
    with LocalCluster(n_workers=2, processes=True, **OPTIONS) as running:
        running.scheduler.identity()  # the connection for questions stays
        yield running


@pytest.fixture
def client(cluster: LocalCluster) -> Iterator[Client]:
    """A client of the cluster."""
    with Client(cluster) as connected:
        yield connected


def _fail() -> None:
    raise ValueError("as it should")


def test_what_never_changes_is_known_without_a_question(cluster: LocalCluster) -> None:
    """So it may be read anywhere."""
    scheduler = cluster.scheduler
    assert scheduler.address == cluster.scheduler_address
    assert scheduler.address == f"tcp://{scheduler.host}:{scheduler.port}"
    assert scheduler.id.startswith("Scheduler-")
    assert scheduler.status == "running"
    assert scheduler.services == {}
    assert scheduler.address in repr(scheduler)


def test_workers_are_seen_by_their_address(cluster: LocalCluster, client: Client) -> None:
    """With what upstream's programs read of them."""
    scheduler = cluster.scheduler
    facts = client.scheduler_info()["workers"]
    assert scheduler.workers.keys() == facts.keys() == set(scheduler.addresses)
    for address, worker in scheduler.workers.items():
        assert (worker.address, worker.nthreads, worker.status) == (address, 2, "running")
        assert worker.memory_limit == facts[address]["memory_limit"]
        assert worker.pid == facts[address]["pid"]
        assert scheduler.aliases[worker.name] == address
    assert scheduler.total_nthreads == 4
    assert scheduler.get_ncores() == dict.fromkeys(facts, 2)
    assert scheduler.idle.keys() == facts.keys()
    assert scheduler.identity()["workers"].keys() == facts.keys()


def test_tasks_are_seen_by_the_users_key(cluster: LocalCluster, client: Client) -> None:
    """State, size, holders and neighbours."""
    x = client.submit(bytes, 5000, key=("x", 1), pure=False)
    y = client.submit(len, x, key="y", pure=False)
    bad = client.submit(_fail, key="bad", pure=False)
    assert y.result() == 5000
    assert isinstance(bad.exception(), ValueError)
    scheduler = cluster.scheduler
    tasks = scheduler.tasks
    assert {key: task.state for key, task in tasks.items()} == {
        ("x", 1): "memory",
        "y": "memory",
        "bad": "erred",
    }
    assert all(key not in scheduler.tasks and key not in tasks for key in ("nobody", "", None))
    (holder,) = tasks[("x", 1)].who_has
    assert scheduler.get_who_has([("x", 1)]) == {("x", 1): [holder.address]}
    assert ("x", 1) in scheduler.get_has_what()[holder.address]
    assert tasks[("x", 1)] in holder.has_what
    assert tasks[("x", 1)].nbytes > 5000
    assert tasks["y"].dependencies == {tasks[("x", 1)]}
    assert tasks[("x", 1)].dependents == {tasks["y"]}
    assert "as it should" in tasks["bad"].exception_text
    assert scheduler.get_task_status(["y", "nobody"]) == {"y": "memory", "nobody": None}
    assert scheduler.story("y")[-1][:3] == ("y", "processing", "memory")


def _wait_for(path: str) -> None:
    with open(path, "rb") as pipe:
        pipe.read()


def test_what_workers_are_given_is_seen(
    cluster: LocalCluster, client: Client, tmp_path: Path
) -> None:
    """While it runs."""
    path = str(tmp_path / "gate")
    os.mkfifo(path)
    running = client.submit(_wait_for, path, key="running", pure=False)
    with open(path, "wb"):  # the task has begun
        task = cluster.scheduler.tasks["running"]
        assert task.state == "processing"
        worker = task.processing_on
        assert list(worker.processing) == [task]
        assert worker.nprocessing == 1
        assert cluster.scheduler.get_processing([worker.address]) == {worker.address: ["running"]}
    running.result()


def test_nothing_can_be_changed_and_the_way_is_named(cluster: LocalCluster) -> None:
    """Assignment, deletion, and what is not told at all."""
    scheduler = cluster.scheduler
    with pytest.raises(ReadOnlyView, match=r"(?s)'allowed_failures'.*run_on_scheduler"):
        scheduler.allowed_failures = 3
    with pytest.raises(ReadOnlyView, match="processes=False"):
        del scheduler.address
    with pytest.raises(NotInView, match=r"(?s)'transition'.*run_on_scheduler"):
        scheduler.transition("x", "memory")
    assert not hasattr(scheduler, "extensions")
    worker = next(iter(scheduler.workers.values()))
    with pytest.raises(ReadOnlyView, match="a worker"):
        worker.nthreads = 5


@gen_test()
async def test_a_view_does_not_hold_up_an_event_loop() -> None:
    """It says what to await; what is known is still there."""
    async with LocalCluster(n_workers=0, processes=True, asynchronous=True, **OPTIONS) as cluster:
        assert cluster.scheduler.address == cluster.scheduler_address
        with pytest.raises(ViewWouldBlock, match="run_on_scheduler"):
            len(cluster.scheduler.tasks)


def test_a_scheduler_in_this_process_shows_the_same_names() -> None:
    """So that a program may be written for either."""
    with (
        LocalCluster(n_workers=1, processes=False, **OPTIONS) as cluster,
        Client(cluster) as client,
    ):
        assert client.submit(len, "abc", key="n", pure=False).result() == 3
        scheduler = cluster.scheduler
        ((address, worker),) = scheduler.workers.items()
        assert (worker.status, worker.nprocessing, worker.nthreads) == ("running", 0, 2)
        assert scheduler.total_memory == worker.memory_limit
        assert scheduler.get_ncores() == {address: 2}
        assert scheduler.get_processing() == {address: []}
        assert scheduler.get_task_status(["nobody"]) == {"nobody": None}
        kept = client.submit(len, "abc", key="kept", pure=False)
        assert kept.result() == 3
        assert scheduler.get_task_status(["kept"]) == {"kept": "memory"}
        assert scheduler.task_prefixes["kept"].states["memory"] == 1
        assert scheduler.identity()["workers"].keys() == {address}
        assert scheduler.port == 0
        seen = {name for name in dir(RemoteScheduler) if not name.startswith("_")}
        assert {name for name in seen if not hasattr(scheduler, name)} <= ONLY_REMOTE
