"""Results that don't fit into memory, in workers that are processes."""

import os
import signal
from collections import UserDict
from pathlib import Path

import dask
import numpy as np
import psutil

from shoal import Client, LocalCluster, wait
from tests.until import until

NARRAYS = 50
NITEMS = 1_000_000
"""Of each array: eight megabytes, 400 in all."""


def array(i):
    return np.full(NITEMS, i, dtype=float)


def memory_of(dask_worker):
    results = dask_worker.results
    return results.nbytes, results.spilled_nbytes


async def spill_all(dask_worker):
    """Wait until all is on disk; returns the folder."""
    await until(lambda: dask_worker.results.spilled_nbytes >= 8 * NITEMS)
    [folder] = Path(dask_worker.local_directory).rglob("storage")
    return str(folder)


def test_twice_as_much_as_a_worker_may_have_is_held_and_right():
    with (
        LocalCluster(
            n_workers=1,
            threads_per_worker=2,
            processes=True,
            memory_limit="200 MiB",
            dashboard_address=None,
        ) as cluster,
        Client(cluster) as client,
    ):
        futures = client.map(array, range(NARRAYS))
        wait(futures, timeout=60)
        [(address, (in_memory, on_disk))] = client.run(memory_of).items()
        assert in_memory + on_disk == 8 * NITEMS * NARRAYS
        assert in_memory < 200 * 2**20
        sums = client.gather(client.map(np.sum, futures))
        assert sums == [NITEMS * i for i in range(NARRAYS)]
        assert client.gather(futures[0])[0] == 0
        assert list(client.scheduler_info()["workers"]) == [address]


def test_what_a_killed_worker_has_on_disk_is_removed(tmp_path):
    """Though its folder is in one that the user has named; and another worker computes anew."""
    with (
        dask.config.set({"distributed.worker.memory.target": 0.001}),
        LocalCluster(
            n_workers=1,
            processes=True,
            memory_limit="1 GiB",
            local_directory=str(tmp_path),
            dashboard_address=None,
        ) as cluster,
        Client(cluster) as client,
    ):
        future = client.submit(array, 1)
        [(address, folder)] = client.run(spill_all).items()
        assert tmp_path in Path(folder).parents
        [pid] = client.run(os.getpid).values()
        os.kill(pid, signal.SIGKILL)
        assert client.submit(np.sum, future).result(timeout=30) == NITEMS
        assert address not in client.scheduler_info()["workers"]
        assert not Path(folder).exists()
    assert list(tmp_path.iterdir()) == []


def test_results_are_kept_in_what_a_worker_was_given_for_that():
    """In another process, where it is made."""
    with (
        LocalCluster(
            n_workers=1, processes=True, data=(UserDict, {"x": 1}), dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        first = client.submit(array, 1, key="y")
        wait(first, timeout=30)
        first.release()
        assert list(client.run(keys_in).values()) == [("UserDict", ["x"])]
        future = client.submit(array, 2, key="z")
        total = client.submit(np.sum, future)
        assert total.result(timeout=30) == 2 * NITEMS
        total.release()
        assert list(client.run(keys_in).values()) == [("UserDict", ["x", "z"])]


def keys_in(dask_worker):
    return type(dask_worker.data).__name__, list(dask_worker.data)


def total_of(arrays):
    return sum(float(array[0]) for array in arrays)


def test_inputs_that_together_bring_a_worker_beyond_its_pause_are_computed_with():
    """The worker pauses as it reads them; nothing would go on if it let go of them for that."""
    limit = 300 * 2**20
    with (
        LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            processes=True,
            memory_limit=limit,
            dashboard_address=None,
        ) as cluster,
        Client(cluster) as client,
    ):
        [resting] = client.run(process_bytes).values()
        narrays = int((0.86 * limit - resting) // (8 * NITEMS))
        futures = client.map(array, range(narrays))
        wait(futures, timeout=60)
        total = client.submit(total_of, futures).result(timeout=30)
        assert total == sum(range(narrays))
        assert len(client.scheduler_info()["workers"]) == 1


def process_bytes():
    return psutil.Process().memory_info().rss
