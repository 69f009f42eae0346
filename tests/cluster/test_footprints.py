"""Tasks that take much memory, on real workers, and nothing is said about them."""

import os

import numpy as np
import pytest

from shoal import Client, LocalCluster, get_worker
from shoal.scheduler.machine.errors import KilledByMemory, NotEnoughMemory

MIB = 1 << 20
LIMIT = 300 * MIB
SECONDS_MAX = 40


def take(nbytes):
    """Take so much of the worker's memory for a moment."""
    return os.getpid(), float(np.ones(nbytes // 8).sum())


def small(number):
    return number, get_worker().name


def test_tasks_that_fit_one_by_one_lose_no_worker_though_it_has_threads_for_more():
    """Four at once would take twice what there is."""
    with (
        LocalCluster(n_workers=1, threads_per_worker=4, memory_limit=LIMIT) as cluster,
        Client(cluster) as client,
    ):
        before = client.submit(os.getpid).result(SECONDS_MAX)
        futures = client.map(take, [120 * MIB] * 6, pure=False)
        assert client.gather(futures) == [(before, 120 * MIB / 8)] * 6


def test_what_takes_more_than_any_worker_has_is_an_error_with_numbers():
    with (
        LocalCluster(n_workers=2, threads_per_worker=2, memory_limit=LIMIT) as cluster,
        Client(cluster) as client,
    ):
        others = client.map(small, range(20))
        error = client.submit(take, 500 * MIB).exception(SECONDS_MAX)
        assert isinstance(error, KilledByMemory)
        assert error.nfailures <= 3
        assert "of its 300.00 MiB" in str(error)
        assert [number for number, _ in client.gather(others)] == list(range(20))
        with pytest.raises(NotEnoughMemory, match=r"takes 320\.00 MiB, and no worker has"):
            client.scatter(np.ones(320 * MIB // 8))
