"""Memory that runs out: by the limit of a container, or by a result that fits nowhere."""

import logging
from pathlib import Path

import dask
import numpy as np
import pytest

from shoal import Client, LocalCluster
from shoal.errors import KilledWorker
from tests.faults.kit.limits import inside_group, memory_group, needs_memory_group
from tests.faults.kit.roles import Cast

MIB = 2**20
SECONDS_MAX = 40.0


def taken(nbytes: int) -> int:
    """Have so much memory, really."""
    return int(np.ones(nbytes, dtype="u1")[::4096].sum())


@needs_memory_group
def test_who_is_ended_by_the_system_for_want_of_memory_is_told_as_that(tmp_path: Path) -> None:
    """The nanny looks at no limit; the container has one."""
    with memory_group("worker", 400 * MIB) as group, Cast(tmp_path) as cast:
        _, address = cast.scheduler(DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="1")
        options = ("--memory-limit", "0")
        worker, _ = cast.worker(address, *options, inside=inside_group(group))
        with cast.client(address) as client:
            with pytest.raises(KilledWorker) as told:
                client.submit(taken, 600 * MIB).result(timeout=SECONDS_MAX)
            assert "the system ended it, as its container had no memory left" in str(told.value)
            client.wait_for_workers(1, timeout=SECONDS_MAX)
            assert client.submit(sum, [1, 2]).result(timeout=SECONDS_MAX) == 3
        assert worker.is_alive
        assert cast.complaints("the system ended it, as its container had no memory left") == []


def test_a_result_that_fits_nowhere_is_an_error_and_not_tried_for_ever(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It is there for a moment, and its worker is too large then; or it goes to disk in time."""
    caplog.set_level(logging.CRITICAL, "shoal")
    with (
        dask.config.set({"distributed.worker.memory.pause": False}),
        LocalCluster(
            n_workers=1, threads_per_worker=1, memory_limit=300 * MIB, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        future = client.submit(np.ones, 260 * MIB, "u1")
        error = client.submit(len, future).exception(timeout=SECONDS_MAX)
        assert error is None or isinstance(error, KilledWorker)
        del future
        client.wait_for_workers(1, timeout=SECONDS_MAX)
        assert client.submit(sum, [1, 2]).result(timeout=SECONDS_MAX) == 3
