"""`as_completed` and `wait`: each future once, results together, whatever else happens."""

import asyncio
import concurrent.futures
import pickle
import queue

import pytest

from shoal.client.completing import as_completed
from shoal.client.errors import UnknownWait, WaitedTooLong
from shoal.client.waiting import FIRST_COMPLETED, FIRST_EXCEPTION, wait
from shoal.compat.completing import first_completed, put_as_completed
from shoal.errors import FutureCancelledError, FuturesCancelledError
from shoal.protocol.messages import SubmitTasks, TaskErred, TaskInMemory
from tests.unit.client.fake_scheduler import TOKEN, AsyncClient, play
from tests.unit.client.fake_worker import FakeWorker


def fail(x):
    raise ValueError(f"not {x}")


async def large(client, scheduler, worker, values):
    """Futures of results that the worker holds."""
    scheduler.holds = True
    futures = [client.submit(len, value, key=value) for value in values]
    await asyncio.sleep(0)
    told = []
    for message in await scheduler.heard_of(SubmitTasks):
        for i, key in enumerate(message.keys):
            number = message.first + i
            worker.values[number] = f"large {key}"
            told.append(TaskInMemory(number, number, 1000, None, [worker.address], "x.y"))
    scheduler.say(*told)
    await client.session.wait_all([future.record for future in futures])
    return futures


def test_large_results_that_have_ended_are_fetched_together():
    async def scenario(client, scheduler):
        async with FakeWorker() as worker:
            futures = await large(client, scheduler, worker, "abcde")
            got = [pair async for pair in as_completed(futures, with_results=True)]
            assert got == [(f, f"large {f.key}") for f in futures]
            assert [len(message.tasks) for message in worker.asked] == [5]

    play(scenario)


def test_a_batch_of_large_results_is_fetched_together():
    async def scenario(client, scheduler):
        async with FakeWorker() as worker:
            futures = await large(client, scheduler, worker, "abc")
            batches = as_completed(futures, with_results=True).batches()
            assert [[r for _, r in batch] async for batch in batches] == [
                ["large a", "large b", "large c"]
            ]
            assert [len(message.tasks) for message in worker.asked] == [3]

    play(scenario)


def test_the_rest_of_a_batch_in_which_one_fails_is_given_later():
    async def scenario(client, scheduler):
        futures = [client.submit(abs, 1), client.submit(fail, 2), client.submit(abs, 3)]
        await client.session.wait_all([future.record for future in futures])
        completed = as_completed(futures, with_results=True)
        with pytest.raises(ValueError, match="not 2"):
            await completed.awaited_batch()
        assert [r for _, r in await completed.awaited_batch()] == [1, 3]
        assert completed.is_empty()

    play(scenario)


def test_a_queue_that_is_emptied_by_others_ends_the_iteration():
    """As a program does that gives up: it empties what is waited for, under the lock."""

    async def scenario(client, scheduler):
        scheduler.holds = True
        futures = [client.submit(abs, 1), client.submit(abs, 2)]
        completed = as_completed(futures)
        await scheduler.heard_of(SubmitTasks)
        scheduler.let_go(1)
        await client.session.wait_any([future.record for future in futures])
        with completed.lock:
            completed.futures.clear()
            while not completed.queue.empty():
                completed.queue.get()
        scheduler.let_go()
        await client.session.wait_all([future.record for future in futures])
        assert completed.count() == 0
        with pytest.raises(queue.Empty):
            completed.queue.get(timeout=0.01)
        with pytest.raises(queue.Empty):
            completed.queue.get(block=False)
        assert [future async for future in completed] == []

    play(scenario)


def test_futures_of_thread_pools_and_of_several_clients_may_be_mixed():
    async def scenario(client, scheduler):
        async with AsyncClient(scheduler.address, security=TOKEN, set_as_default=False) as other:
            foreign = concurrent.futures.Future()
            failing = concurrent.futures.Future()
            futures = [client.submit(abs, 1), other.submit(abs, 2), foreign, failing]
            completed = as_completed(futures, with_results=True, raise_errors=False)
            foreign.set_result(3)
            failing.set_exception(KeyError(4))
            got = {future: result async for future, result in completed}
            assert [got[future] for future in futures[:3]] == [1, 2, 3]
            assert got[failing][0] is KeyError
            assert (await wait(futures[:2])).done == set(futures[:2])
            scheduler.holds = True
            held = [client.submit(abs, 5), other.submit(abs, 6)]
            first = await wait([held[0], futures[1]], return_when=FIRST_COMPLETED)
            assert first == ({futures[1]}, {held[0]})
            with pytest.raises(TimeoutError, match="2 of 2"):
                await wait(held, timeout=0.01)
            failing = other.submit(fail, 7)
            await scheduler.heard_of(SubmitTasks, 5)
            scheduler.let_go()
            assert failing in (await wait([held[0], failing], return_when=FIRST_EXCEPTION)).done

    play(scenario)


def test_the_first_failure_ends_a_wait_for_it():
    async def scenario(client, scheduler):
        scheduler.holds = True
        first, second, third = (client.submit(abs, n, pure=False) for n in range(3))
        [message] = await scheduler.heard_of(SubmitTasks)
        waiting = asyncio.ensure_future(wait([first, second, third], return_when=FIRST_EXCEPTION))
        scheduler.say(scheduler.kept[0])
        await client.session.wait_all([first.record])
        assert not waiting.done()
        failure = scheduler._outcome(message.first + 1, lambda: fail(1)).failure
        scheduler.say(TaskErred(message.first + 1, failure))
        assert await waiting == ({first, second}, {third})

    play(scenario)


def test_a_wait_that_takes_too_long_says_which_have_ended():
    async def scenario(client, scheduler):
        done = client.submit(abs, 1)
        await done
        scheduler.holds = True
        pending = client.submit(abs, 2)
        with pytest.raises(TimeoutError, match="1 of 2 futures have not ended") as caught:
            await wait([done, pending], timeout="10 ms")
        assert (caught.value.done, caught.value.not_done) == ({done}, {pending})
        assert (await wait([done, pending], return_when=FIRST_COMPLETED)).done == {done}
        with pytest.raises(NotImplementedError, match="FIRST_EXCEPTION"):
            wait([done], return_when="LAST")

    play(scenario)


def test_cancelled_futures_are_told_by_reason():
    async def scenario(client, scheduler):
        scheduler.holds = True
        first, second, third = (client.submit(abs, n, pure=False) for n in range(3))
        await client.cancel([first, second], reason="too slow")
        await client.cancel(third)
        with pytest.raises(FuturesCancelledError, match="3 futures were cancelled") as caught:
            await wait([first, second, third])
        reasons = {group.reason: len(group.errors) for group in caught.value.error_groups}
        assert reasons == {"too slow": 2, "unknown": 1}
        with pytest.raises(FuturesCancelledError, match="reason: too slow: abs-"):
            client.futures_of([first])

    play(scenario)


@pytest.mark.parametrize(
    "error",
    [
        WaitedTooLong({1}, {2}, 3.0),
        UnknownWait("LAST", ["FIRST"]),
        FuturesCancelledError.of([FutureCancelledError("x", "why"), FutureCancelledError("y", "")]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_of_waiting_survive_pickling(error):
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_an_iterator_is_gathered_one_by_one():
    async def scenario(client, scheduler):
        futures = [client.submit(abs, -1), client.submit(fail, 2), client.submit(abs, -3)]
        first, second, third = client.gather(iter(futures))
        assert await first == 1
        with pytest.raises(ValueError, match="not 2"):
            await second
        assert await third == 3
        with pytest.raises(ValueError, match="errors is"):
            client.gather(futures, errors="hide")

    play(scenario)


def test_foreign_functions_wait_for_our_futures():
    """`concurrent.futures.wait` and `as_completed`, in a thread of their own."""

    async def scenario(client, scheduler):
        ended = client.submit(abs, 1)
        await ended
        scheduler.holds = True
        pending, failing = client.submit(abs, 2), client.submit(fail, 3)
        cancelled = client.submit(abs, 4)
        await scheduler.heard_of(SubmitTasks, 2)
        found = concurrent.futures.wait([ended, pending], timeout=0)
        assert found == ({ended}, {pending})
        futures = [ended, pending, failing, cancelled]
        in_order = asyncio.to_thread(lambda: list(concurrent.futures.as_completed(futures, 10)))
        waiting = asyncio.ensure_future(in_order)
        await asyncio.sleep(0)
        await client.cancel(cancelled)
        scheduler.let_go(2)
        assert set(await waiting) == set(futures)
        first = concurrent.futures.wait(futures, return_when="FIRST_COMPLETED")
        assert first == (set(futures), set())

    play(scenario)


def test_a_future_takes_attributes_of_its_users():
    async def scenario(client, scheduler):
        future = client.submit(abs, 1)
        future.task_run_id = 5
        assert future.task_run_id == 5
        assert await asyncio.wait_for(future, 10) == 1
        assert await asyncio.gather(future, client.submit(abs, -2)) == [1, 2]

    play(scenario)


def test_nothing_is_waited_for_at_once():
    assert wait([]) == (set(), set())
    assert list(as_completed()) == []
    assert repr(as_completed()) == "<as_completed: waiting=0 done=0>"


class SlowWorker(FakeWorker):
    """Answers no question until it may."""

    def __init__(self):
        super().__init__()
        self.was_asked, self.may_answer = asyncio.Event(), False
        self.on_ask = lambda: None

    def _on_messages(self, connection, messages, buffers):
        self.was_asked.set()
        if self.may_answer:
            super()._on_messages(connection, messages, buffers)
        else:
            self.may_answer = True
            self.on_ask()


@pytest.mark.parametrize("is_batch", [False, True], ids=["one", "batch"])
def test_who_is_interrupted_gets_the_same_future_next(is_batch):
    async def scenario(client, scheduler):
        async with SlowWorker() as worker:
            futures = await large(client, scheduler, worker, "ab")
            completed = as_completed(futures, with_results=True)
            take = completed.awaited_batch if is_batch else completed.__anext__
            taking = asyncio.ensure_future(take())
            await worker.was_asked.wait()
            taking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await taking
            assert completed.count() == 2
            assert [pair async for pair in completed] == [(f, f"large {f.key}") for f in futures]

    play(scenario)


def test_what_was_not_waited_for_to_the_end_is_not_watched():
    async def scenario(client, scheduler):
        async with AsyncClient(scheduler.address, security=TOKEN, set_as_default=False) as other:
            done = client.submit(abs, 1)
            await done
            scheduler.holds = True
            held = other.submit(abs, 2)
            assert (await wait([done, held], return_when=FIRST_COMPLETED)).done == {done}
            assert await first_completed([done, held]) is done
            assert not held.record.watchers
            with pytest.raises(asyncio.QueueFull):
                await put_as_completed([done, held], full())
            assert not held.record.watchers

    play(scenario)


def full():
    queue = asyncio.Queue(1)
    queue.put_nowait(None)
    return queue


def test_results_that_are_fetched_together_are_of_the_same_client():
    """Each client's own, whichever came first."""

    async def scenario(client, scheduler):
        async with FakeWorker() as worker:
            futures = await large(client, scheduler, worker, "ab")
            async with AsyncClient(
                scheduler.address, security=TOKEN, set_as_default=False
            ) as other:
                scheduler.holds = False
                first = other.submit(abs, -1)
                await first
                scheduler.holds = True
                completed = as_completed([first, *futures], with_results=True)
                assert [r async for _, r in completed] == [1, "large a", "large b"]
                assert [len(message.tasks) for message in worker.asked] == [2]

    play(scenario)
