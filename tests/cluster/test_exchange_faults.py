"""Exchanges of all with all in which a worker process dies, stands still, or has a full disk."""

import os
import resource
import signal
from threading import Timer

import dask
import numpy as np
import pytest

from shoal import Client, Event, LocalCluster
from shoal.shuffle.errors import P2POutOfDiskError
from tests.marks import needs_name

pd = pytest.importorskip("pandas")
dd = pytest.importorskip("dask.dataframe")

pytestmark = needs_name

NPARTS = 12
NROWS = 2_000
"""Of each partition: 32 kB."""

FROZEN_SECONDS = 3.0
RESULT_SECONDS_MAX = 50.0


@pytest.fixture
def client():
    """Three workers in processes."""
    with (
        LocalCluster(
            n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
        dask.config.set({"dataframe.shuffle.method": "p2p"}),
    ):
        yield client


def part(number):
    rows = np.arange(number * NROWS, (number + 1) * NROWS)
    return pd.DataFrame({"k": rows * 7919 % 101, "row": rows})


def shuffled():
    return dd.from_map(part, range(NPARTS), meta=part(0).iloc[:0]).shuffle("k")


def held_up(rows):
    """An output partition that is there, and goes no further until the test says so."""
    Event("an output is there").set()
    assert Event("go on").wait(RESULT_SECONDS_MAX)
    return rows


def held_up_exchange(client):
    """The future of one that has reached its outputs."""
    asked = shuffled()
    future = client.compute(asked.map_partitions(held_up, meta=asked._meta))
    assert Event("an output is there").wait(RESULT_SECONDS_MAX)
    return future


def are_all(rows):
    return (
        sorted(rows.row) == list(range(NPARTS * NROWS)) and (rows.k == rows.row * 7919 % 101).all()
    )


def test_a_worker_that_dies_takes_no_rows_along(client):
    future = held_up_exchange(client)
    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
    Event("go on").set()
    assert are_all(future.result(timeout=RESULT_SECONDS_MAX))


def test_a_worker_that_stands_still_for_a_while_is_waited_for(client):
    """No other does its part again: slow is not dead."""
    future = held_up_exchange(client)
    pid = next(iter(client.run(os.getpid).values()))
    workers = set(client.scheduler_info()["workers"])
    os.kill(pid, signal.SIGSTOP)
    going_on = Timer(FROZEN_SECONDS, os.kill, (pid, signal.SIGCONT))
    going_on.start()
    try:
        Event("go on").set()
        assert are_all(future.result(timeout=RESULT_SECONDS_MAX))
        assert set(client.scheduler_info()["workers"]) == workers
    finally:
        going_on.join()


def fill_up(dask_worker):
    """Memory has no room for shards, and no file becomes longer than a page."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    use_disk(dask_worker)


def use_disk(dask_worker):
    """Memory has no room for shards."""
    budget = dask_worker.shuffles.budget
    budget.nbytes_max = budget.nbytes_hard_max = 0


def counters(dask_worker):
    return dask_worker.shuffles.counters.as_dict()


def test_a_full_disk_of_one_worker_leaves_its_part_to_the_others(client):
    client.run(use_disk)
    full = next(iter(client.scheduler_info()["workers"]))
    client.run(fill_up, workers=[full])
    assert are_all(shuffled().compute())
    counts = client.run(counters)
    assert counts[full]["nrefused"] > 0
    assert counts[full]["ncuts"] == 0
    assert sum(count["ncuts"] for count in counts.values()) == NPARTS


def test_full_disks_everywhere_are_an_error_that_says_so(client):
    client.run(fill_up)
    with pytest.raises(P2POutOfDiskError, match="Make room there"):
        shuffled().compute()


def files_of_shards(dask_worker):
    """How many there are."""
    folder = dask_worker.shuffles.files.disk.folder
    return len(os.listdir(folder))


def test_nothing_of_a_cancelled_exchange_is_left_on_disk_and_nothing_is_printed(tmp_path, capfd):
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            local_directory=str(tmp_path),
        ) as cluster,
        Client(cluster) as client,
        dask.config.set({"dataframe.shuffle.method": "p2p"}),
    ):
        client.run(use_disk)
        future = held_up_exchange(client)
        assert sum(client.run(files_of_shards).values()) == NPARTS
        client.restart()
        assert future.cancelled()
        client.run(use_disk)
        Event("an output is there").clear()
        held_up_exchange(client)  # and the cluster closes in the middle of it
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert capfd.readouterr().err == ""


def test_a_worker_that_retires_in_the_middle_hands_its_shards_over(client):
    client.run(use_disk)
    future = held_up_exchange(client)
    leaving = next(iter(client.scheduler_info()["workers"]))
    Event("go on").set()
    client.retire_workers([leaving])
    assert are_all(future.result(timeout=RESULT_SECONDS_MAX))
    assert sum(count["ncuts"] for count in client.run(counters).values()) <= NPARTS
