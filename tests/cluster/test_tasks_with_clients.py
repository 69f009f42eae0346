"""Tasks that submit tasks: each has a client, and what waits leaves its thread to others."""

import asyncio
import threading
import time

import pytest
from dask import delayed

from shoal import (
    Client,
    LocalCluster,
    Lock,
    as_completed,
    get_client,
    get_worker,
    wait,
    worker_client,
)
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


def scatter_inside():
    """Whether the worker holds the very object, and what others make of it."""
    value, client = [1, 2, 3], get_client()
    [future] = client.scatter([value], hash=False)
    held = get_worker().data[future.key]
    copies = client.scatter([value], broadcast=True, hash=False)
    return held is value, client.submit(sum, future).result(), client.gather(copies)


async def scatter_inside_of_a_coroutine():
    client = await get_client()
    future = await client.scatter("value")
    return get_worker().data[future.key], await client.submit(len, future)


def test_what_a_task_scatters_stays_with_its_worker_as_it_is(client):
    scattered = [client.submit(scatter_inside, workers=[w], pure=False) for w in client.nthreads()]
    assert client.gather(scattered) == [(True, 6, [[1, 2, 3]])] * 2
    assert client.submit(scatter_inside_of_a_coroutine).result(timeout=20) == ("value", 5)


def look_at_client():
    client = get_client()
    total = client.submit(sum, client.scatter([1, 2])).result()
    return client.id, client.asynchronous, client.loop is get_worker().loop, total, client


def test_on_one_loop_tasks_have_the_client_of_that_loop_in_a_form_that_waits():
    async def scenario():
        async with (
            LocalCluster(processes=False, asynchronous=True, **SMALL) as cluster,
            Client(cluster, asynchronous=True) as client,
        ):
            looks = await asyncio.gather(
                *[client.submit(look_at_client, pure=False) for _ in range(3)]
            )
            assert [look[:4] for look in looks] == [(client.id, False, True, 3)] * 3
            assert len({id(look[4]) for look in looks}) == 1
            assert len(cluster.scheduler.clients) == 1
            assert await client.submit(abs, -1) == 1
        assert looks[0][4].status == "closed"
        assert client.status == "closed"

    asyncio.run(scenario())


async def most_that_wait(n):
    """Of tasks of this worker at once, counted by one of those that each of them submits."""
    client = await get_client()
    return await client.submit(nthreads_here, n, pure=False)


def test_what_tasks_submit_goes_before_others_that_would_only_wait_as_well():
    """Else all of them would have begun, each in a thread of its own, before any could end."""
    with LocalCluster(**SMALL | {"n_workers": 1}) as cluster, Client(cluster) as client:
        alone = client.submit(nthreads_here, 0).result()
        most = max(client.gather(client.map(most_that_wait, range(60))))
        assert most - alone < 12


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


def addresses_in_another_cluster():
    """Of the cluster that the task has a client of, and of that which runs it."""
    with LocalCluster(processes=False, **SMALL) as cluster, Client(cluster) as client:
        assert client.submit(abs, -1).result() == 1
        return client.scheduler.address, get_client().scheduler.address


def test_a_task_s_client_is_of_its_own_cluster_whatever_else_it_has_clients_of(client):
    other, own = client.submit(addresses_in_another_cluster).result(timeout=20)
    assert own == client.scheduler.address != other


def look_at_worker():
    worker = get_worker()
    run_here = {threading.get_ident(): worker.get_current_task()}
    return worker.active_threads == run_here, worker.id, worker.client.id == get_client().id


def test_a_task_finds_its_key_its_thread_and_its_client_at_its_worker(client):
    workers = client.nthreads()
    found = client.gather([client.submit(look_at_worker, workers=[w], pure=False) for w in workers])
    assert [(active, same) for active, _, same in found] == [(True, True)] * 2
    assert len({name for _, name, _ in found}) == 2
    assert all(name.startswith("Worker-") for _, name, _ in found)


def ask_in_no_time():
    with worker_client(timeout=0):
        return "had one"


def test_who_gives_a_client_no_time_to_connect_gets_an_error_of_the_system():
    with (
        LocalCluster(**SMALL | {"n_workers": 1}) as cluster,
        Client(cluster) as client,
        pytest.raises(OSError, match=r".+"),
    ):
        client.submit(ask_in_no_time).result(timeout=20)


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
