"""Disks that are full, files that are not what was written, folders that somebody removes."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest

from benchmarks.memory.spilling import SPOILERS, files_in
from shoal import Client, LocalCluster, wait
from tests.faults.kit.limits import needs_small_disk, small_disk
from tests.until import until

NARRAYS = 8
NITEMS = 250_000
"""Of each array: two megabytes."""
DISK_NBYTES = 5_000_000
SECONDS_MAX = 20.0


@contextmanager
def spilling(folder: Path) -> Iterator[Client]:
    """One worker that writes all that it has to disk, as soon as it can."""
    with (
        dask.config.set({"distributed.worker.memory.target": 1e-6}),
        LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            memory_limit="1 GiB",
            local_directory=str(folder),
            dashboard_address=None,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def array(number: int) -> Any:
    """Large, and of noise, so that it can't be made smaller."""
    return np.random.default_rng(number).random(NITEMS)


async def spill(nbytes: int, dask_worker: Any) -> None:
    """Wait until so much is on disk."""
    await until(lambda: dask_worker.results.spilled_nbytes >= nbytes)


def sums_are_right(client: Client, arrays: list[Any]) -> bool:
    found = client.gather(client.map(np.sum, arrays, pure=False))
    return bool(found == [array(number).sum() for number in range(NARRAYS)])


@pytest.mark.parametrize("spoiler", SPOILERS)
def test_files_that_were_spoilt_are_lost_replicas_and_give_right_results(
    spoiler: str, tmp_path: Path
) -> None:
    with spilling(tmp_path) as client:
        pids = client.run(os.getpid)
        arrays = client.map(array, range(NARRAYS))
        wait(arrays, timeout=SECONDS_MAX)
        client.run(spill, 8 * NITEMS * NARRAYS)
        files = files_in(tmp_path)
        assert len(files) == NARRAYS
        for file in files[::2]:
            SPOILERS[spoiler](file)
        assert sums_are_right(client, arrays)
        assert client.run(os.getpid) == pids


@needs_small_disk
def test_a_full_disk_fails_no_task(tmp_path: Path) -> None:
    """It has room for two of eight arrays."""
    with small_disk(tmp_path / "small", DISK_NBYTES) as disk, spilling(disk) as client:
        pids = client.run(os.getpid)
        arrays = client.map(array, range(NARRAYS))
        wait(arrays, timeout=SECONDS_MAX)
        client.run(spill, 8 * NITEMS)
        assert sums_are_right(client, arrays)
        assert client.run(os.getpid) == pids


def test_a_worker_whose_folder_is_removed_goes_on(tmp_path: Path) -> None:
    """With all that it had on disk; what comes later is written into a new one."""
    with spilling(tmp_path) as client:
        pids = client.run(os.getpid)
        arrays = client.map(array, range(NARRAYS))
        wait(arrays, timeout=SECONDS_MAX)
        client.run(spill, 8 * NITEMS * NARRAYS)
        for place in tmp_path.iterdir():
            shutil.rmtree(place, ignore_errors=True)  # its worker goes on writing
        assert sums_are_right(client, arrays)
        client.run(spill, 8 * NITEMS)
        assert sums_are_right(client, arrays)
        assert client.run(os.getpid) == pids
