"""Tasks that submit tasks: each has a client, and what waits leaves its thread to others."""

import asyncio
import threading
import time

import pytest
from dask import delayed

from shoal import Client, LocalCluster, Lock, as_completed, get_client, wait, worker_client
from tests.cluster.conftest import SMALL

NCOUNTS = 40


def fibonacci(n):
    if n < 2:
        return n
    client = get_client()
    below = client.submit(fibonacci, n - 1)
    return below.result() + client.submit(fibonacci, n - 2).result()


def total_of(how, values):
    with worker_client() as client:
        if how == "get":
            return delayed(sum)(values).compute(scheduler=client)
        futures = client.map(abs, values)
        if how == "gather":
            return sum(client.gather(futures))
        if how == "wait":
            return sum(future.result() for future in wait(futures).done)
        return sum(future.result() for future in as_completed(futures))


async def total_on_a_loop(values):
    client = await get_client()
    total = await client.submit(sum, values)
    async for future in as_completed(client.map(abs, values)):
        total += await future
    return total


async def nthreads_while_it_awaits(values):
    """The most threads that there are while a task waits for many others at once."""
    client = await get_client()
    futures = client.map(nthreads_here, values)
    return max(await asyncio.gather(*futures))


def nthreads_here(value):
    return threading.active_count()


def count_in(path, lock):
    with lock:
        path.write_text(str(int(path.read_text()) + 1))


def name_of_client():
    return get_client().id


@pytest.fixture(params=[True, False], ids=["processes", "threads"])
def client(request):
    """A client of two workers with one thread each."""
    with LocalCluster(processes=request.param, **SMALL) as cluster, Client(cluster) as connected:
        yield connected


def test_tasks_may_submit_tasks_to_any_depth(client):
    """Far more of them wait at once than there are threads."""
    assert client.submit(fibonacci, 8).result(timeout=30) == 21


@pytest.mark.parametrize("how", ["get", "gather", "wait", "as_completed"])
def test_every_worker_may_wait_for_tasks_at_once_by_any_way(client, how):
    totals = client.map(total_of, [how] * 6, [[-i, 2] for i in range(6)], pure=False)
    expected = [2 - i if how == "get" else i + 2 for i in range(6)]
    assert client.gather(totals) == expected


def test_a_task_that_is_a_coroutine_awaits_its_client(client):
    assert client.submit(total_on_a_loop, [1, -2, 4]).result(timeout=30) == 3 + 7


def test_a_task_that_waits_for_many_others_at_once_has_one_substitute():
    with LocalCluster(**SMALL | {"n_workers": 1}) as cluster, Client(cluster) as client:
        alone = client.submit(nthreads_here, 0).result()
        waiting = client.submit(nthreads_while_it_awaits, range(100))
        assert waiting.result(timeout=30) - alone < 10


def test_a_lock_keeps_tasks_of_all_workers_apart(client, tmp_path):
    path = tmp_path / "count"
    path.write_text("0")
    client.gather(client.map(count_in, [path] * NCOUNTS, lock=Lock(), pure=False))
    assert path.read_text() == str(NCOUNTS)


def test_a_worker_in_a_process_has_one_client_for_all_its_tasks():
    with LocalCluster(**SMALL | {"n_workers": 1}) as cluster, Client(cluster) as client:
        names = client.gather([client.submit(name_of_client, pure=False) for _ in range(4)])
        assert len(set(names)) == 1
        assert names[0] != client.id
        assert names[0].startswith("Client-worker-")


def outer():
    return get_client().submit(inner).result()


def inner():
    started.set()
    may_end.wait(20)


def test_a_cluster_that_closes_waits_for_no_task_that_waits_for_another():
    """The inner task takes long, and the outer one waits for it, until its client ends."""
    with LocalCluster(processes=False, **SMALL) as cluster:
        with Client(cluster) as client:
            waiting = client.submit(outer)
            assert started.wait(10)
            assert waiting.status == "pending"
        may_end.set()
        began_at = time.monotonic()
    assert time.monotonic() - began_at < 1.5  # a worker gives its tasks 2 s


started, may_end = threading.Event(), threading.Event()
