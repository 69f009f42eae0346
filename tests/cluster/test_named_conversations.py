"""Conversations with a scheduler that last: who subscribes, and who is fed."""

import asyncio
from functools import partial

import pytest

from shoal import Worker
from shoal.comms.errors import CommClosedError
from shoal.compat.comm import core as comms
from shoal.protocol.payload import dump_function
from tests.cluster.playing import play_with_worker


def test_whoever_subscribes_is_told_who_comes_and_goes_until_it_goes_itself():
    async def scenario(scheduler, worker):
        before = set(scheduler.plugins)
        comm = await comms.connect(scheduler.address)
        await comm.write({"op": "subscribe_worker_status"})
        assert set((await comm.read())["workers"]) == {worker.address}
        async with Worker(scheduler.address, nthreads=1) as other:
            ((what, told),) = await comm.read()
            assert (what, set(told["workers"])) == ("add", {other.address})
        assert [tuple(message) for message in await comm.read()] == [("remove", other.address)]
        (subscribed,) = set(scheduler.plugins) - before
        await comm.close()
        while subscribed in scheduler.plugins:
            await asyncio.sleep(0)

    play_with_worker(scenario)


def test_whoever_is_fed_is_told_again_and_again_until_it_goes():
    async def scenario(scheduler, worker):
        said = []
        comm = await comms.connect(scheduler.address)
        functions = {
            "setup": dump_function(lambda scheduler: iter(range(9))),
            "function": dump_function(lambda scheduler, numbers: next(numbers)),
        }
        scheduler.handlers["feed"] = partial(
            scheduler.feed, teardown=lambda scheduler, numbers: said.append(next(numbers))
        )
        await comm.write({"op": "feed", "interval": "1 ms", **functions})
        assert [await comm.read() for _ in range(3)] == [0, 1, 2]
        await comm.close()
        while not said:
            await asyncio.sleep(0)

    play_with_worker(scenario)


def test_what_goes_wrong_while_somebody_is_fed_is_told():
    async def scenario(scheduler, worker):
        numbers = iter([1])
        scheduler.handlers["feed"] = partial(scheduler.feed, function=lambda _: next(numbers))
        comm = await comms.connect(scheduler.address)
        await comm.write({"op": "feed", "interval": "1 ms"})
        assert await comm.read() == 1
        assert "StopIteration" in (await comm.read())["exception_text"]
        with pytest.raises(CommClosedError):
            await comm.read()

    play_with_worker(scenario)


class SlowComm:
    """The other side takes a message at a time."""

    peer_address = "tcp://127.0.0.1:1"

    def __init__(self):
        self.said, self.is_aborted = asyncio.Queue(maxsize=1), False

    async def write(self, message, **kwargs):
        await self.said.put(message)
        await self.said.join()

    async def read(self):
        await asyncio.Event().wait()

    def abort(self):
        self.is_aborted = True

    def closed(self):
        return self.is_aborted


def test_whoever_subscribes_misses_nobody_who_comes_meanwhile():
    async def scenario(scheduler, worker):
        comm = SlowComm()
        task = asyncio.create_task(scheduler.subscribe_worker_status(comm))
        assert set((await comm.said.get())["workers"]) == {worker.address}
        async with Worker(scheduler.address, nthreads=1) as other:
            comm.said.task_done()
            ((what, told),) = await comm.said.get()
            assert (what, set(told["workers"])) == ("add", {other.address})
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    play_with_worker(scenario)
