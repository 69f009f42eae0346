"""Futures of another client, as inputs of this one's tasks."""

import asyncio
from concurrent.futures import CancelledError

import pytest
from dask._task_spec import List, Task, TaskRef

from shoal.client.asynchronous import AsyncClient
from shoal.client.borrowing import lenders
from shoal.client.errors import ForeignFuture
from shoal.ids import Epoch
from shoal.protocol.messages import SubmitTasks, WantKey
from tests.unit.client.fake_scheduler import TOKEN, FakeScheduler, play
from tests.until import until


def inc(x):
    return x + 1


def test_a_future_of_another_client_may_be_an_argument_but_is_gathered_by_its_own():
    async def scenario(client, scheduler):
        async with AsyncClient(scheduler.address, security=TOKEN, set_as_default=False) as other:
            future = other.submit(inc, 1)
            assert await future == 2
            assert await client.submit(inc, future) == 3
            with pytest.raises(ForeignFuture):
                await client.gather([future])
            assert len(await scheduler.heard_of(WantKey)) == 1  # once for all that use it
            assert client.refcount[future.key] == 1
            del future
            await until(lambda: not client.refcount)  # with that future goes what stood for it

    play(scenario)


def test_nothing_is_said_of_another_clients_future_before_the_scheduler_has_heard_of_it():
    async def scenario(client, scheduler):
        async with AsyncClient(scheduler.address, security=TOKEN, set_as_default=False) as other:
            mark = other.session.hold_back(60)
            result = client.submit(inc, other.submit(inc, 1))
            question = asyncio.ensure_future(client.nthreads())
            await asyncio.wait([question], timeout=0.1)
            assert not question.done()
            assert not any(isinstance(m, (WantKey, SubmitTasks)) for m in scheduler.heard)
            other.session.go_on(mark)
            other.session.go_on(mark)  # nothing happens
            await question
            heard = [m for m in scheduler.heard if isinstance(m, (WantKey, SubmitTasks))]
            assert [type(m) for m in heard] == [SubmitTasks, WantKey, SubmitTasks]
            assert await result == 3

    play(scenario)


def test_a_client_that_waits_for_another_one_does_so_for_a_limited_time():
    async def scenario(client, scheduler):
        client.session.hold_back(0.01)
        assert await client.submit(inc, 1) == 2

    play(scenario)


def test_a_client_whose_future_is_used_may_close_before_it_was_heard():
    async def scenario(client, scheduler):
        other = await AsyncClient(scheduler.address, security=TOKEN, set_as_default=False)
        future = other.submit(inc, 1)
        result = client.submit(inc, future)
        await other.close()
        assert await result == 3  # what it had said was sent

    play(scenario)


def test_what_a_graph_has_of_another_client_is_wanted_before_its_tasks_have_numbers():
    """As a task, within one of either form, and once for all that need it."""

    async def scenario(client, scheduler):
        async with AsyncClient(scheduler.address, security=TOKEN, set_as_default=False) as other:
            future, unused = other.submit(inc, 1), other.submit(inc, 5)
            graph = {
                future.key: future,
                "old": (inc, future.key),
                "nested": (sum, [future, "old"]),
                "new": Task("new", max, List(TaskRef(future.key), TaskRef("old"))),
            }
            del unused
            made = client.get(graph, ["nested", "new", future.key], sync=False)
            assert await client.gather(made) == [5, 3, 2]
            (want,) = await scheduler.heard_of(WantKey)
            assert want.key == future.key
            sent = [m for m in scheduler.heard if isinstance(m, SubmitTasks)][-1]
            assert want.task < sent.first
            del made
            await until(lambda: not client.refcount)
            await until(lambda: other.refcount[future.key] == 1)  # what was kept of it has gone

    play(scenario)


def test_graphs_are_looked_through_only_where_another_client_has_what_they_may_need():
    async def scenario(client, scheduler):
        assert lenders(client.session) == []
        async with AsyncClient(scheduler.address, security=TOKEN, set_as_default=False) as other:
            assert lenders(client.session) == []
            future = other.submit(inc, 1)
            assert lenders(client.session) == [other.session]
            assert lenders(other.session) == []
        assert lenders(client.session) == [other.session]  # what it published may be there
        assert await client.get({"x": (inc, 1)}, "x", sync=False) == 2
        del future

    play(scenario)


def test_a_graph_with_a_future_of_a_closed_client_fails_once_nobody_knows_its_result():
    async def scenario(client, scheduler):
        other = await AsyncClient(scheduler.address, security=TOKEN, set_as_default=False)
        future = other.submit(inc, 1)
        await other.close()
        made = client.get({future.key: future, "x": (inc, future.key)}, "x", sync=False)
        (want,) = await scheduler.heard_of(WantKey)
        assert want.key == future.key
        del made

    play(scenario)


def test_a_future_of_another_scheduler_is_refused():
    async def scenario(client, scheduler):
        elsewhere = FakeScheduler()
        elsewhere.epoch = Epoch(2)
        await elsewhere.__aenter__()
        other = await AsyncClient(elsewhere.address, security=TOKEN, set_as_default=False)
        future = other.submit(inc, 1)
        with pytest.raises(ForeignFuture):
            client.submit(inc, future)
        with pytest.raises(CancelledError):
            await client.gather([future])
        await other.close()
        await elsewhere.__aexit__()

    play(scenario)
