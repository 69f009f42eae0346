"""A client and its scheduler meet and part: nobody waits for ever, whoever goes first."""

import asyncio
import gc
import weakref

import dask
import pytest

from shoal.client.asynchronous import AsyncClient
from shoal.client.current import default_clients
from shoal.client.errors import ClientClosed
from shoal.comms import CommClosedError, ConnectError
from shoal.errors import FutureCancelledError
from shoal.protocol.messages import SubmitTasks
from shoal.protocol.topics import SubscribeTopics
from tests.programs import printed_by
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


RAISES = "raised = True\nraise LookupError('not set up')\n"
HANGS = """
import asyncio

async def dask_teardown(client):
    await asyncio.Event().wait()
"""


def test_a_client_whose_preload_raises_leaves_nothing_behind():
    async def scenario(client, scheduler):
        before = default_clients()
        with dask.config.set({"distributed.client.preload": [RAISES]}):
            failing = AsyncClient(scheduler.address, security=TOKEN)
            with pytest.raises(LookupError, match="not set up"):
                await failing
        assert default_clients() == before
        assert failing.status == "closed"

    play(scenario)


def test_a_client_whose_preload_takes_all_the_time_at_its_end_leaves_all_the_same():
    async def scenario(client, scheduler):
        with dask.config.set({"distributed.client.preload": [HANGS]}):
            leaving = await AsyncClient(scheduler.address, security=TOKEN, set_as_default=False)
        with pytest.raises(TimeoutError):
            await leaving.close(timeout=0.01)
        await asyncio.wait_for(leaving.session.close(), 10)
        assert leaving.status == "closed"

    play(scenario)


def test_only_clients_of_tasks_are_not_told_what_tasks_print():
    """Not those that a person calls like them."""

    async def scenario(client, scheduler):
        before = len(await scheduler.heard_of(SubscribeTopics))
        async with AsyncClient(
            scheduler.address, security=TOKEN, set_as_default=False, name="worker-3"
        ):
            await scheduler.heard_of(SubscribeTopics, before + 1)
            (registered,) = [
                message for message in scheduler.heard if "worker-3" in getattr(message, "name", "")
            ]
            assert registered.watches_members

    play(scenario)


def test_a_wait_that_takes_too_long_says_how_long_it_was():
    async def scenario(client, scheduler):
        scheduler.holds = True
        with pytest.raises(TimeoutError, match="within 5 s"):
            await client.await_future(client.submit(inc, 1), 0.001, told_seconds=5)

    play(scenario)


AT_EXIT = """
import atexit, sys

threads = []

def show():
    print(threads)

atexit.register(show)
import shoal.client.client

def note(event, args):
    if event == "_thread.start_new_thread":
        threads.append(str(args[0]))

sys.addaudithook(note)
"""


def test_no_thread_is_started_as_a_process_ends():
    assert printed_by("-c", AT_EXIT) == "[]\n"
