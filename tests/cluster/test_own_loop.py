"""On its own loop, as in what `sync` runs, a blocking client's calls return what can be awaited."""

import asyncio
import inspect
import threading
from collections.abc import Iterator

import dask
import pytest

from shoal import Client, Lock, as_completed, wait
from shoal.client.errors import BlockingCall, ClientClosed
from shoal.client.future import Future
from tests.cluster.conftest import SMALL


def inc(x):
    return x + 1


def fail(x):
    raise ValueError(f"not {x}")


@pytest.fixture
def client() -> Iterator[Client]:
    with Client(processes=False, **SMALL) as client:
        yield client


async def by_gather(client):
    return await client.gather([client.submit(inc, 1)])


async def by_wait(client):
    return [await future.result() for future in (await wait(client.submit(inc, 1))).done]


async def by_scatter(client):
    return await client.gather(await client.scatter([2]))


async def by_scatter_in_a_task(client):
    return await client.gather(await asyncio.Task(client.scatter([2], asynchronous=True)))


async def by_await(client):
    return [await client.submit(inc, 1)]


async def by_compute(client):
    return [await client.compute(dask.delayed(inc)(1))]


async def by_get(client):
    return [await client.get({"x": (inc, 1)}, "x")]


async def by_as_completed(client):
    return [await future.result() async for future in as_completed([client.submit(inc, 1)])]


async def by_results_as_completed(client):
    ended = as_completed([client.submit(inc, 1)], with_results=True)
    return [result async for _, result in ended]


async def by_result_that_is_here(client):
    future = client.submit(inc, 1)
    await wait(future)
    return [await future.result()]


async def by_sync_again(client):
    return await client.sync(by_gather, client)


async def by_run(client):
    return [await client.run_on_scheduler(inc, 1)]


async def by_lock(client):
    async with Lock("a", client=client) as lock:
        return [2] if await lock.locked() else []


@pytest.mark.parametrize(
    "way",
    [
        by_gather,
        by_wait,
        by_scatter,
        by_scatter_in_a_task,
        by_await,
        by_compute,
        by_get,
        by_as_completed,
        by_results_as_completed,
        by_result_that_is_here,
        by_sync_again,
        by_run,
        by_lock,
    ],
)
def test_a_result_is_awaited_there(client, way):
    assert client.sync(way, client, callback_timeout=20) == [2]


def test_every_method_that_waits_returns_a_coroutine_there(client):
    names = ("who_has", "has_what", "nthreads", "ncores", "scheduler_info", "story")

    async def ask():
        assert client.asynchronous
        answers = [getattr(client, name)() for name in names]
        answers += [
            client.wait_for_workers(1),
            client.cancel([]),
            client.submit(fail, 1).exception(),
        ]
        assert all(inspect.iscoroutine(answer) for answer in answers)
        return (await asyncio.gather(*answers))[-1]

    assert isinstance(client.sync(ask), ValueError)
    assert not client.asynchronous


def test_a_client_that_is_closed_there_lets_the_work_come_to_its_end(client):
    async def leave():
        await client.close()
        await client.close()
        await asyncio.sleep(0)
        return client.status

    assert client.sync(leave) == "closed"
    assert "shoal-client-loop" not in [thread.name for thread in threading.enumerate()]
    with pytest.raises(ClientClosed):
        client.nthreads()


def test_what_can_only_wait_is_refused_there(client):
    async def iterate():
        return next(as_completed([client.submit(inc, 1, workers=["nobody"])]))

    async def insist():
        return client.gather([], asynchronous=False)

    async def enter_a_block():
        with client:
            return client.status

    for deed in (iterate, insist, enter_a_block):
        with pytest.raises(BlockingCall):
            client.sync(deed)


def test_something_to_await_can_be_asked_for_on_any_loop(client):
    async def elsewhere():
        futures: list[Future] = client.map(inc, [1, 2])
        first = await client.gather(futures, asynchronous=True)
        return first, await client.sync(by_gather, client, asynchronous=True)

    assert asyncio.run(elsewhere()) == ([2, 3], [2])
    with pytest.raises(TimeoutError):
        client.sync(asyncio.sleep, 60, callback_timeout=0.01)
