"""A worker at rest, and whoever vouches for it."""

import asyncio
import threading

from shoal.protocol.answers import Answer
from shoal.protocol.directions import answered
from shoal.protocol.messages import TaskFinished
from shoal.protocol.payload import dump_function, load
from shoal.protocol.running import Outcome, RunFunction
from tests.unit.worker.fake_scheduler import FakeScheduler, run, worker_of
from tests.unit.worker.test_service import BLOCK, block

SAID: list[float] = []


def latest_said() -> list[float]:
    return list(SAID)


def test_a_worker_that_rests_says_so_once_and_tells_before_it_is_held_up() -> None:
    """At rest it is not vouched for, and is again as soon as anything comes from the scheduler."""

    async def scene() -> None:
        scheduler = await FakeScheduler().start()
        said = SAID
        said.clear()
        worker = worker_of(scheduler)
        worker.at_beat = said.append
        async with worker:
            belonging = worker._belonging
            belonging.begin()
            assert said == [0]
            BLOCK[:] = [threading.Event(), threading.Event()]
            scheduler.run(worker, block)
            await asyncio.to_thread(BLOCK[0].wait)
            assert said == [0, 60.0]
            belonging.begin()
            assert said == [0, 60.0, 60.0]
            BLOCK[1].set()
            await scheduler.hear(worker, TaskFinished)
            belonging.begin()
            belonging.begin()
            assert said == [0, 60.0, 60.0, 0]
            scheduler.say(worker, RunFunction(1, dump_function((latest_said, (), {}))))
            found = answered(RunFunction, await scheduler.hear(worker, Answer))
            assert isinstance(found, Outcome)
            assert load(found.value) == [0, 60.0, 60.0, 0, 60.0]  # before it was called
        await scheduler.close()

    run(scene())
