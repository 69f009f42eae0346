"""A client loses its scheduler, and finds it again, or another one in its place."""

import asyncio
import logging

import pytest

from shoal.client.coordination import Sub
from shoal.client.errors import ClientClosed
from shoal.client.waiting import wait
from shoal.comms import CallTimeoutError, CommClosedError, OutcomeUnknown
from shoal.errors import FutureCancelledError
from shoal.ids import TaskId
from shoal.protocol.coordination import Published, Subscribe
from shoal.protocol.messages import (
    RegisterClient,
    ReleaseTasks,
    Shutdown,
    SubmitTasks,
    TaskInMemory,
)
from shoal.protocol.payload import dump_function
from shoal.protocol.questions import NThreads, WhoHas
from shoal.protocol.topics import SubscribeTopics
from tests.unit.client.fake_scheduler import play, play_over_a_socket, play_returning
from tests.unit.client.fake_worker import FakeWorker

SECONDS = 10


def inc(x):
    return x + 1


async def until(condition):
    """The loop goes on until this holds."""
    async with asyncio.timeout(SECONDS):
        while not condition():
            await asyncio.sleep(0)


async def lose(client, scheduler):
    """The scheduler is gone, and the client knows."""
    await scheduler.go_down()
    await until(lambda: client.status == "connecting")


async def lose_amid_a_task(client, scheduler):
    """As `lose`; the future of a task that was not answered."""
    scheduler.holds = True
    pending = client.submit(inc, 1)
    await scheduler.heard_of(SubmitTasks)
    await lose(client, scheduler)
    return pending


def test_what_is_pending_is_asked_of_the_scheduler_that_comes_back(caplog):
    caplog.set_level(logging.WARNING, "shoal.client")

    async def scenario(client, scheduler):
        done = client.submit(inc, 1)
        assert await done == 2
        scheduler.holds = True
        pending = client.submit(inc, done)
        await scheduler.heard_of(SubmitTasks, 2)
        waiting = asyncio.ensure_future(pending.result())
        await lose(client, scheduler)
        assert (pending.status, done.status) == ("pending", "finished")
        assert await done == 2
        later = client.submit(inc, pending)
        await asyncio.sleep(0)

        scheduler.holds = False
        await scheduler.come_up()
        assert await waiting == 3
        assert await later == 4
        assert client.status == "running"
        [introduction] = await scheduler.heard_of(RegisterClient)
        assert introduction.returning
        again = [key for message in await scheduler.heard_of(SubmitTasks) for key in message.keys]
        assert again == [future.key for future in (done, pending, later)]

    play_returning(scenario)
    lost, found = [record.getMessage() for record in caplog.records]
    assert "has lost its scheduler at tcp://127.0.0.1" in lost
    assert "has found its scheduler" in found


def test_calls_under_way_end_and_later_ones_wait_as_long_as_they_may():
    async def scenario(client, scheduler):
        del scheduler.answers[NThreads]
        under_way = asyncio.ensure_future(client.nthreads())
        await scheduler.heard_of(NThreads)
        await scheduler.go_down()
        with pytest.raises(OutcomeUnknown, match="not known whether it has done"):
            await under_way
        later = asyncio.ensure_future(client.who_has())
        with pytest.raises(CallTimeoutError):
            await client.session.call(NThreads, timeout_seconds=0.01)
        assert not later.done()
        scheduler.answers[WhoHas] = lambda call: {"x": ["tcp://a:1"]}
        await scheduler.come_up()
        assert await later == {"x": ("tcp://a:1",)}

    play_returning(scenario)


def test_a_scheduler_that_does_not_come_back_in_time_ends_everything_and_says_so(caplog):
    caplog.set_level(logging.WARNING, "shoal.client")

    async def scenario(client, scheduler):
        pending = await lose_amid_a_task(client, scheduler)
        call = asyncio.ensure_future(client.nthreads())
        with pytest.raises(FutureCancelledError, match=r"within 0\.2 s") as caught:
            await pending
        assert caught.value.reason == "scheduler-connection-lost"
        assert client.status == "closed"
        with pytest.raises(ClientClosed, match=r"within 0\.2 s"):
            await call
        with pytest.raises(ClientClosed, match=r"client\.reconnect-seconds"):
            client.submit(inc, 2)

    play_returning(scenario, 0.2)
    assert len(caplog.records) == 2


def test_a_scheduler_that_comes_back_and_is_not_understood_ends_everything():
    """Another would not be understood either: nobody waits until the time is over."""

    async def scenario(client, scheduler):
        pending = await lose_amid_a_task(client, scheduler)
        scheduler.is_understood = False
        await scheduler.come_up()
        async with asyncio.timeout(SECONDS):
            with pytest.raises(FutureCancelledError, match="was lost, and none has let this"):
                await pending
        assert client.status == "closed"

    play_returning(scenario)


def test_a_scheduler_that_says_good_bye_is_not_looked_for():
    async def scenario(client, scheduler):
        scheduler.holds = True
        pending = client.submit(inc, 1)
        await scheduler.heard_of(SubmitTasks)
        scheduler.say(Shutdown("enough"))
        await until(lambda: client.session.ending_reason)
        scheduler.hang_up()
        with pytest.raises(FutureCancelledError, match="enough"):
            await pending
        assert client.status == "closed"

    play_returning(scenario)


@pytest.mark.parametrize("play_it", [play, play_over_a_socket])
def test_without_a_window_everything_ends_at_once(play_it):
    async def scenario(client, scheduler):
        assert client.session.machine.lineage is None
        scheduler.hang_up()
        await until(lambda: client.status == "closed")

    play_it(scenario)


def test_a_client_that_is_away_can_be_closed_at_once():
    async def scenario(client, scheduler):
        pending = await lose_amid_a_task(client, scheduler)
        call = asyncio.ensure_future(client.nthreads())
        await asyncio.sleep(0)
        await asyncio.wait_for(client.close(), SECONDS)
        assert client.status == "closed"
        assert pending.status == "cancelled"
        with pytest.raises(ClientClosed):
            await call

    play_returning(scenario)


def test_futures_that_are_dropped_meanwhile_are_not_asked_for_again():
    async def scenario(client, scheduler):
        scheduler.holds = True
        first, second = client.submit(inc, 1), client.submit(inc, 2)
        await scheduler.heard_of(SubmitTasks)
        await lose(client, scheduler)
        del first
        client.session.wake()
        await asyncio.sleep(0)
        scheduler.holds = False
        await scheduler.come_up()
        assert await second == 3
        [message] = await scheduler.heard_of(SubmitTasks)
        assert message.keys == [second.key]
        assert not [m for m in scheduler.heard if isinstance(m, ReleaseTasks)]

    play_returning(scenario)


def test_whoever_has_subscribed_hears_of_it_from_the_next_scheduler_as_well():
    async def scenario(client, scheduler):
        heard = []
        client.subscribe_topic("mine", heard.append)
        sub = Sub("channel", client=client)
        [said] = await scheduler.heard_of(Subscribe)
        await scheduler.go_down()
        await scheduler.come_up()
        [again] = await scheduler.heard_of(Subscribe)
        assert again == said
        [topics] = await scheduler.heard_of(SubscribeTopics)
        assert topics.topics == ["print", "warn", "mine"]
        await until(lambda: client.status == "running")
        scheduler.say(Published(said.claim, [dump_function("news")]))
        assert await sub.get(timeout=SECONDS) == "news"

    play_returning(scenario)


def test_results_elsewhere_are_fetched_once_it_is_known_again_where_they_are():
    """Under their new numbers, though the old ones mean something else by now."""

    async def scenario(client, scheduler):
        scheduler.holds = True
        x, y = client.submit(inc, 1, key="x"), client.submit(inc, 2, key="y")
        await scheduler.heard_of(SubmitTasks)
        async with FakeWorker() as worker:
            worker.values = {1: "x before", 2: "y before"}
            for future, task in ((x, 1), (y, 2)):
                scheduler.say(at(worker, future, task))
            await wait([x, y], timeout=SECONDS)
            await lose(client, scheduler)
            assert x.status == "finished"
            getting = asyncio.ensure_future(client.gather([x, y]))
            await asyncio.sleep(0)
            worker.values = {1: "y", 2: "x"}
            await scheduler.come_up()
            [introduction] = await scheduler.heard_of(RegisterClient)
            assert introduction.workers == [worker.address]
            await scheduler.heard_of(SubmitTasks)
            assert not getting.done()
            scheduler.say(at(worker, x, 2), at(worker, y, 1))
            assert await asyncio.wait_for(getting, SECONDS) == ["x", "y"]
            await client.close()

    play_returning(scenario)


def at(worker, future, task):
    return TaskInMemory(future.record.number, TaskId(task), 100, None, [worker.address])


def test_a_connection_that_is_not_welcomed_is_not_the_end_of_the_search():
    async def scenario(client, scheduler):
        scheduler.holds = True
        pending = client.submit(inc, 1)
        await scheduler.heard_of(SubmitTasks)
        scheduler.turns_away = 1
        scheduler.hang_up()
        await until(lambda: scheduler.turns_away == 0)
        scheduler.holds = False
        assert await asyncio.wait_for(pending.result(), SECONDS) == 2

    play_returning(scenario)


def test_asking_again_while_away_fails_only_with_what_it_is():
    async def scenario(client, scheduler):
        await lose(client, scheduler)
        with pytest.raises(CommClosedError, match="being looked for"):
            _ = client.session.epoch

    play_returning(scenario)
