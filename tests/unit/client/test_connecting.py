"""A client and its scheduler meet and part: nobody waits for ever, whoever goes first."""

import asyncio
import gc
import weakref

import pytest

from shoal.client.asynchronous import AsyncClient
from shoal.client.errors import ClientClosed
from shoal.comms import CommClosedError, ConnectError
from shoal.errors import FutureCancelledError
from shoal.protocol.messages import SubmitTasks
from tests.unit.client.fake_scheduler import TOKEN, FakeScheduler, play


def inc(x):
    return x + 1


def test_a_lost_scheduler_ends_every_wait_with_one_clear_error():
    async def scenario(client, scheduler):
        done = client.submit(inc, 1)
        assert await done == 2
        scheduler.holds = True
        pending = client.submit(inc, 10)
        waiting = [
            asyncio.ensure_future(client.gather([pending])),
            asyncio.ensure_future(pending.result()),
            asyncio.ensure_future(client.run(inc, 1)),
        ]
        await scheduler.heard_of(SubmitTasks, 2)
        scheduler.hang_up()
        first, second, third = await asyncio.gather(*waiting, return_exceptions=True)
        assert isinstance(first, FutureCancelledError)
        assert isinstance(second, FutureCancelledError)
        assert first.reason == second.reason == "scheduler-connection-lost"
        assert isinstance(third, CommClosedError)
        assert pending.status == "cancelled"
        assert await done == 2  # it came along with the news
        assert client.status == "closed"
        with pytest.raises(ClientClosed, match="is closed"):
            client.submit(inc, 2)
        with pytest.raises(ClientClosed):
            await client.who_has()

    play(scenario)


def test_a_client_that_is_not_connected_yet_says_how_to():
    client = AsyncClient("tcp://127.0.0.1:1", set_as_default=False)
    with pytest.raises(ClientClosed, match="Await it first"):
        client.submit(inc, 1)


def test_an_address_where_nobody_is_is_tried_until_the_deadline():
    async def scenario():
        with pytest.raises(ConnectError, match=r"127\.0\.0\.1:1 "):
            await AsyncClient("tcp://127.0.0.1:1", security=TOKEN, timeout=0.05)

    asyncio.run(scenario())


def test_a_client_that_is_dropped_leaves_the_scheduler():
    async def scenario(client, scheduler):
        other = await AsyncClient(scheduler.address, security=TOKEN, set_as_default=False)
        session = other.session
        reference = weakref.ref(other)
        del other
        gc.collect()
        assert reference() is None
        await session.close()
        assert session.status == "closed"

    play(scenario)


def test_a_frame_is_not_sent_for_each_heartbeat_of_an_idle_client():
    async def scenario(client, scheduler):
        frames = scheduler.frames
        for _ in range(20):
            await asyncio.sleep(0)
        assert scheduler.frames == frames

    play(scenario)


def test_starting_twice_connects_once():
    async def scenario():
        async with FakeScheduler() as scheduler:
            client = AsyncClient(scheduler.address, security=TOKEN, set_as_default=False)

            async def wait_for_it():
                return await client

            first, second = await asyncio.gather(wait_for_it(), wait_for_it())
            assert first is second is client
            assert len(scheduler.connections) == 1
            await client.close()
            await client.close()

    asyncio.run(scenario())
