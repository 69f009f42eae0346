"""Who may run what beside whom on real workers: shares, limits, resources, why nothing runs."""

import logging
import threading
import time

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from shoal import Client, LocalCluster, get_worker
from tests.cluster.playing import heard


class Meter:
    """How many calls are inside at once, at most."""

    def __init__(self) -> None:
        self.most = self._n = 0
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            self._n += 1
            self.most = max(self.most, self._n)

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._n -= 1


METERS: dict[str, Meter] = {}
"""Workers are threads of this process, so their tasks can be measured here."""


def measured(name, value=None):
    with METERS[name]:
        time.sleep(0.005)
    return value


@pytest.fixture
def meter(request):
    """One of the test's own, and its name."""
    name = request.node.name
    METERS[name] = Meter()
    yield name
    del METERS[name]


@pytest.fixture(scope="module")
def cluster():
    """Two workers of four threads, in this process."""
    options = {"n_workers": 2, "threads_per_worker": 4, "resources": {"MEM": 3}}
    with (
        dask.config.set({"shoal.scheduler.stranded-warning-seconds": 0.2}),
        LocalCluster(processes=False, dashboard_address=None, **options) as cluster,
    ):
        yield cluster


@pytest.fixture
def client(cluster):
    with Client(cluster) as client:
        yield client


def test_no_more_tasks_of_a_name_run_at_once_than_they_say(client, meter):
    """Whichever way they are submitted."""
    futures = client.map(measured, [meter] * 10, limits={"db": 3}, pure=False)
    futures += [client.submit(measured, meter, pure=False, limits={"db": 3}) for _ in range(5)]
    with dask.annotate(limits={"db": 3}):
        calls = [dask.delayed(measured)(meter, i) for i in range(10)]
    assert dask.compute(*calls) == tuple(range(10))
    client.gather(futures)
    assert METERS[meter].most == 3
    assert client.get_limits() == {}


def test_a_limit_that_is_set_holds_instead_for_all_clients(client, cluster, meter):
    with Client(cluster, set_as_default=False) as other:
        seen = other.set_limits(db=2)
    assert seen == {"db": {"limit": 2, "running": 0, "waiting": 0}}
    client.gather(client.map(measured, [meter] * 12, limits={"db": 5}, pure=False))
    assert METERS[meter].most == 2
    assert client.set_limits({"db": None}) == {}


def measured_by_worker(part):
    with METERS[str(get_worker().name)]:
        time.sleep(0.005)
    return part


def test_of_two_that_need_more_than_half_never_two_run_on_a_worker(client):
    """Case C077, as people paste it: an annotated group-by, where each worker has three."""
    names = [str(worker["name"]) for worker in client.scheduler_info()["workers"].values()]
    METERS.update({name: Meter() for name in names})
    numbers = np.arange(2_000)
    frame = dd.from_pandas(pd.DataFrame({"x": numbers % 5, "y": numbers * 1.0}), npartitions=12)
    with dask.annotate(resources={"MEM": 2}):
        parts = frame.map_partitions(measured_by_worker, meta=frame._meta)
        means = parts.groupby("x").mean().compute()
    assert sorted(means.y) == [997.5, 998.5, 999.5, 1000.5, 1001.5]
    assert [METERS.pop(name).most for name in names] == [1, 1]


def test_who_waits_for_what_no_worker_has_is_told_why(client):
    """Case C007; and the task runs once a worker has it."""
    told = threading.Event()

    class Hearing(logging.Handler):
        def emit(self, record):
            if "GPU=2" in record.getMessage():
                told.set()

    logger = logging.getLogger("shoal.client")
    handler = Hearing()
    logger.addHandler(handler)
    try:
        with heard():
            future = client.submit(abs, -3, resources={"GPU": 2})
            assert told.wait(5.0)
    finally:
        logger.removeHandler(handler)
    worker = next(iter(client.scheduler_info()["workers"]))
    client.run(lambda dask_worker: dask_worker.set_resources(GPU=2), workers=[worker])
    assert future.result(timeout=10) == 3


def test_a_short_task_of_another_client_does_not_wait_for_all_that_came_before(
    client, cluster, meter
):
    """Case C079."""
    futures = client.map(measured, [meter] * 1000, pure=False)
    with Client(cluster, set_as_default=False) as other:
        assert other.submit(abs, -1).result(timeout=10) == 1
    assert sum(future.status == "pending" for future in futures) > 500
    client.gather(futures)
