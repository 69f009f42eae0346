"""Large results come from whoever can give them; scattered values go to whoever takes them."""

import asyncio

import numpy as np
import pytest

from shoal.client.errors import NoWorkers, ResultUnreachable
from shoal.client.gathering import Gathering
from shoal.ids import TaskId
from shoal.protocol.answers import answer
from shoal.protocol.exceptions import to_failure
from shoal.protocol.messages import SubmitTasks, TaskErred, TaskInMemory, TaskLost
from shoal.protocol.transfers import FetchThroughScheduler, Placement, PlaceScatter
from tests.unit.client.fake_scheduler import play
from tests.unit.client.fake_worker import FakeWorker, gone, pack
from tests.until import until


async def large(client, scheduler, holders, key="x"):
    """A future of a result that `holders` (addresses) hold, and its task id."""
    scheduler.holds = True
    future = client.submit(len, "abc", key=key)
    [*_, message] = await scheduler.heard_of(SubmitTasks)
    task = TaskId(6 + message.first)
    scheduler.say(TaskInMemory(message.first, task, 10_000_000, None, holders, "x.y"))
    return future, task


def test_a_large_result_comes_from_its_holder_with_its_buffers():
    async def scenario(client, scheduler):
        async with FakeWorker() as worker:
            future, task = await large(client, scheduler, [worker.address])
            worker.values[task] = np.arange(100_000)
            assert (await future == np.arange(100_000)).all()
            assert [(m.tasks, m.epoch) for m in worker.asked] == [([task], 1)]

    play(scenario)


def test_results_of_one_holder_are_asked_for_together():
    async def scenario(client, scheduler):
        async with FakeWorker() as worker:
            futures = []
            for name in "abc":
                future, task = await large(client, scheduler, [worker.address], name)
                worker.values[task] = name
                futures.append(future)
                scheduler.heard.clear()
            assert await client.gather(futures) == ["a", "b", "c"]
            assert [len(m.tasks) for m in worker.asked] == [3]

    play(scenario)


def test_another_holder_is_asked_if_the_first_is_dead_or_lacks_it():
    async def scenario(client, scheduler):
        async with FakeWorker() as empty, FakeWorker() as worker:
            holders = [await gone(), empty.address, worker.address]
            future, task = await large(client, scheduler, holders)
            worker.values[task] = "here"
            assert await future == "here"
            assert len(empty.asked) == 1

    play(scenario)


def test_the_scheduler_is_asked_if_no_holder_can_be_reached():
    async def scenario(client, scheduler):
        future, task = await large(client, scheduler, [await gone()])
        waiting = asyncio.ensure_future(future.result())
        [call] = await scheduler.heard_of(FetchThroughScheduler)
        assert call.tasks == [task]
        replicas, buffers = pack(call.request, call.tasks, {task: np.ones(10_000)})
        scheduler.say_with_buffers(replicas, buffers)
        assert (await waiting).sum() == 10_000

    play(scenario)


def test_only_the_scheduler_is_asked_if_that_is_wished():
    async def scenario(client, scheduler):
        async with FakeWorker() as worker:
            future, task = await large(client, scheduler, [worker.address])
            waiting = asyncio.ensure_future(client.gather(future, direct=False))
            [call] = await scheduler.heard_of(FetchThroughScheduler)
            replicas, _ = pack(call.request, call.tasks, {task: 5})
            scheduler.say(replicas)
            assert await waiting == 5
            assert worker.asked == []

    play(scenario)


def test_a_result_that_has_gone_is_waited_for_again():
    async def scenario(client, scheduler):
        async with FakeWorker() as worker:
            future, task = await large(client, scheduler, [await gone()])
            waiting = asyncio.ensure_future(future.result())
            [call] = await scheduler.heard_of(FetchThroughScheduler)
            replicas, _ = pack(call.request, call.tasks, {})
            number = future.record.number
            scheduler.say(TaskLost(number), replicas)
            worker.values[task + 50] = "again"
            scheduler.say(TaskInMemory(number, task + 50, 100, None, [worker.address]))
            assert await waiting == "again"

    play(scenario)


def test_a_result_that_is_nowhere_is_an_error_in_the_end():
    async def scenario(client, scheduler):
        future, task = await large(client, scheduler, [])
        gathering = Gathering(client.session, client.exchange, missing_seconds_max=0.0)
        waiting = asyncio.ensure_future(gathering.run([future.record]))
        for n in (1, 2):
            calls = await scheduler.heard_of(FetchThroughScheduler, n)
            scheduler.say(pack(calls[-1].request, [task], {})[0])
        with pytest.raises(ResultUnreachable, match="held by nobody"):
            await waiting

    play(scenario)


def test_a_result_that_is_computed_again_may_take_its_time_and_be_nowhere_once_more():
    async def scenario(client, scheduler):
        future, task = await large(client, scheduler, [])
        number = future.record.number
        gathering = Gathering(client.session, client.exchange, missing_seconds_max=0.0)
        waiting = asyncio.ensure_future(gathering.run([future.record]))
        for n in (1, 2):
            calls = await scheduler.heard_of(FetchThroughScheduler, n)
            scheduler.say(pack(calls[-1].request, [task], {})[0], TaskLost(number))
            await until(lambda: future.record.watchers)
            scheduler.say(TaskInMemory(number, task, 10_000_000, None, [], "x.y"))
        calls = await scheduler.heard_of(FetchThroughScheduler, 3)
        scheduler.say(pack(calls[-1].request, [task], {task: "here"})[0])
        assert await waiting == {future.record: "here"}

    play(scenario)


def test_a_value_that_does_not_pickle_there_raises_what_it_raised():
    async def scenario(client, scheduler):
        async with FakeWorker() as worker:
            future, task = await large(client, scheduler, [worker.address])
            worker.values[task] = TypeError("no pickle for me")
            with pytest.raises(TypeError, match="no pickle"):
                await future
            assert await client.gather([future], errors="skip") == []

    play(scenario)


class Stubborn:
    def __reduce__(self):
        return open, ("/nowhere/at/all",)


def test_an_error_of_a_value_is_not_taken_for_one_of_the_network():
    async def scenario(client, scheduler):
        async with FakeWorker() as worker:
            future, task = await large(client, scheduler, [worker.address])
            worker.values[task] = Stubborn()
            with pytest.raises(FileNotFoundError):
                await future
            assert len(worker.asked) == 1

    play(scenario)


# --- scatter ---------------------------------------------------------------------------------


async def place(scheduler, workers, n=1):
    """Answer the `n`-th PlaceScatter: all values to these workers; later puts are reported."""
    call = (await scheduler.heard_of(PlaceScatter, n))[-1]
    numbers = {TaskId(50 + call.first + i): call.first + i for i in range(len(call.keys))}
    for worker in workers:
        if isinstance(worker, FakeWorker):
            worker.on_put = lambda tasks, worker=worker: scheduler.say(
                *(TaskInMemory(numbers[t], t, 10, None, [worker.address]) for t in tasks)
            )
    addresses = [worker if isinstance(worker, str) else worker.address for worker in workers]
    scheduler.say(answer(call.request, [Placement(task, addresses) for task in numbers]))
    return call


def test_scattered_values_go_where_the_scheduler_says_in_the_shape_they_came_in():
    async def scenario(client, scheduler):
        async with FakeWorker() as worker:
            scattering = asyncio.ensure_future(client.scatter({"a": np.ones(9000), "b": 2}))
            call = await place(scheduler, [worker])
            assert (call.keys, call.ncopies, call.workers) == (["a", "b"], 1, [])
            futures = await scattering
            assert set(futures) == {"a", "b"}
            assert futures["a"].done()
            assert await futures["b"] == 2
            assert (await futures["a"]).sum() == 9000

    play(scenario)


def test_a_value_goes_to_another_worker_if_the_first_dies():
    """Asked again under the same number, the scheduler knows where the value is on its way to."""

    async def scenario(client, scheduler):
        async with FakeWorker() as worker:
            scattering = asyncio.ensure_future(client.scatter([5]))
            first = await place(scheduler, [await gone()])
            lost = to_failure(RuntimeError("lost with its worker"))
            scheduler.say(TaskErred(first.first, lost))
            second = await place(scheduler, [worker], 2)
            assert (second.first, second.keys) == (first.first, first.keys)
            [future] = await scattering
            assert await future == 5

    play(scenario)


def test_a_value_that_nobody_takes_raises_in_the_end():
    async def scenario(client, scheduler):
        async with FakeWorker() as worker:
            worker.refuses = ConnectionError("not mine")
            scattering = asyncio.ensure_future(client.scatter([5]))
            for n in (1, 2, 3):
                await place(scheduler, [worker], n)
            with pytest.raises(ConnectionError, match="not mine"):
                await scattering
            assert not client.futures

    play(scenario)


def test_a_value_that_can_not_be_read_there_raises_at_once():
    async def scenario(client, scheduler):
        async with FakeWorker() as worker:
            worker.refuses = ValueError("bad value")
            scattering = asyncio.ensure_future(client.scatter([5, 6]))
            await place(scheduler, [worker])
            with pytest.raises(ValueError, match="bad value"):
                await scattering

    play(scenario)


def test_scatter_without_workers_says_so():
    async def scenario(client, scheduler):
        with pytest.raises(NoWorkers, match="No valid workers found to scatter to"):
            await client.scatter([1], timeout=0.05)

    play(scenario)


def test_values_that_are_wanted_already_are_not_sent_again():
    async def scenario(client, scheduler):
        async with FakeWorker() as worker:
            first = asyncio.ensure_future(client.scatter([5]))
            await place(scheduler, [worker])
            [future] = await first
            [again] = await client.scatter([5])
            assert again.record is future.record
            assert len(await scheduler.heard_of(PlaceScatter)) == 1

    play(scenario)


@pytest.mark.parametrize("data", [iter([1]), (i for i in [1])])
def test_what_can_be_read_only_once_is_refused(data):
    async def scenario(client, scheduler):
        with pytest.raises(TypeError, match="only once"):
            await client.scatter(data)
        assert await client.scatter([]) == []

    play(scenario)
