"""Results of tasks as futures of the standard library: each ends, whatever its result does."""

import asyncio
import concurrent.futures
import pickle

import pytest

from shoal.client.completing import as_completed
from shoal.client.delivering import ExecutorFuture, deliver_when_ended
from shoal.client.executor import ClientExecutor
from shoal.client.foreign import ForeignFace
from shoal.client.machine import CANCELLED, FINISHED, LOST, UNRESOLVED, Record
from shoal.errors import FutureCancelledError
from shoal.protocol.messages import SubmitTasks, TaskInMemory
from tests.unit.client.fake_scheduler import play
from tests.unit.client.fake_worker import FakeWorker


class Leaving:
    """Whoever loads it is sent home."""

    def __reduce__(self):
        return leave, (3,)


def leave(code):
    raise SystemExit(code)


class ASession:
    """Has others ask again as long as a record is unresolved."""

    def __init__(self):
        self.loop = asyncio.get_running_loop()
        self.watchers = []
        self.states = {}

    def watch(self, record, watcher):
        if record.status in UNRESOLVED:
            self.watchers.append(watcher)
            return True
        return False

    def state_of(self, kind):
        return self.states.setdefault(kind, kind())

    def tell(self, record):
        told, self.watchers = self.watchers, []
        for watcher in told:
            watcher(record)


class ATask:
    """A future as those know it who deliver; its results are never brought."""

    key = "x"

    def __init__(self, status):
        self.face = self
        self.session = ASession()
        self.record = Record("x", 1)
        self.record.status = status

    async def await_results(self, records):
        await asyncio.Event().wait()


def test_a_result_that_exits_as_it_is_read_ends_its_future_and_not_the_loop():
    async def scenario(client, scheduler):
        scheduler.holds = True
        executor = ClientExecutor(client)
        futures = [executor.submit(len, "a"), executor.submit(len, "bc")]
        async with FakeWorker() as worker:
            told = []
            for message in await scheduler.heard_of(SubmitTasks, 1):
                for i in range(len(message.keys)):
                    number = message.first + i
                    worker.values[number] = "fine" if told else Leaving()
                    told.append(TaskInMemory(number, number, 1000, None, [worker.address], "x.y"))
            scheduler.say(*told)
            leaving = await asyncio.to_thread(futures[0].exception, 10)
            assert isinstance(leaving, SystemExit)
            assert await asyncio.wrap_future(futures[1]) == "fine"

    play(scenario)


def test_what_is_being_read_as_the_loop_ends_is_cancelled():
    future = ExecutorFuture(ATask.__new__(ATask))
    ended = []

    async def begin():
        deliver_when_ended(future, ATask(FINISHED), ended.append)
        await asyncio.sleep(0)

    asyncio.run(begin())
    assert isinstance(future.exception(0), FutureCancelledError)
    assert ended == [future]


def test_a_result_that_is_lost_before_it_was_delivered_is_waited_for_again():
    async def scenario():
        task = ATask(LOST)
        future = ExecutorFuture(task)
        deliver_when_ended(future, task, lambda future: None)
        task.session.tell(task.record)  # it had ended, and is lost again
        assert not future.done()
        task.record.status, task.record.value = FINISHED, pickle.dumps("here")
        task.session.tell(task.record)
        assert future.result(0) == "here"

    asyncio.run(scenario())


@pytest.mark.parametrize("status", [FINISHED, CANCELLED])
def test_foreign_functions_wait_again_for_a_result_that_is_lost(status):
    async def scenario():
        task = ATask(LOST)
        face = ForeignFace(task)
        task.session.tell(task.record)
        assert face.state == concurrent.futures._base.PENDING
        task.record.status = status
        task.session.tell(task.record)
        assert face.state != concurrent.futures._base.PENDING

    asyncio.run(scenario())


def test_the_functions_own_keywords_may_be_called_as_those_of_submit_are():
    async def scenario(client, scheduler):
        executor = ClientExecutor(client)
        future = executor.submit(dict, func=1, self=2, x=3)
        assert await asyncio.wrap_future(future) == {"func": 1, "self": 2, "x": 3}

    play(scenario)


def test_whoever_leaves_a_map_cancels_no_call_that_others_wait_for():
    async def scenario(client, scheduler):
        scheduler.holds = True
        executor = ClientExecutor(client)
        results = executor.map(abs, [-1, -2, -3])
        (shared,) = client.map(abs, [-2])
        await scheduler.heard_of(SubmitTasks)
        scheduler.let_go(1)
        assert await asyncio.to_thread(next, results) == 1
        await asyncio.to_thread(results.close)
        await asyncio.to_thread(executor.shutdown)
        scheduler.let_go()
        assert await asyncio.wait_for(shared.result(), 10) == 2

    play(scenario)


def test_whoever_leaves_one_of_two_equal_maps_leaves_the_other_alone():
    async def scenario(client, scheduler):
        scheduler.holds = True
        executor = ClientExecutor(client)
        first, second = executor.map(abs, [-1, -2]), executor.map(abs, [-1, -2])
        await scheduler.heard_of(SubmitTasks)
        scheduler.let_go(1)
        assert await asyncio.to_thread(next, first) == 1
        await asyncio.to_thread(first.close)
        assert "1 futures have not ended" in repr(executor)
        scheduler.let_go()
        assert await asyncio.to_thread(list, second) == [1, 2]
        await asyncio.to_thread(executor.shutdown)

    play(scenario)


def test_an_iteration_that_was_dropped_is_told_nothing():
    async def scenario(client, scheduler):
        scheduler.holds = True
        pending = client.submit(abs, -1)
        completed = as_completed([pending])
        assert len(pending.record.watchers) == 1
        del completed
        await asyncio.sleep(0)
        assert pending.record.watchers == []

    play(scenario)
