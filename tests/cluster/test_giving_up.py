"""Who waits for something known by its name, and is made to stop, leaves nothing behind."""

import asyncio

import pytest

from shoal import Client, Event, Lock, MultiLock, Queue, Variable
from shoal.client.coordination.errors import QueueClosed
from tests.cluster.conftest import SMALL
from tests.cluster.faces import play_asynchronous


async def cancelled_waits(client):
    """Whoever gives up takes nothing with him."""
    queue, variable, event, full = Queue("q"), Variable("v"), Event("e"), Queue("f", maxsize=1)
    await full.put(1)
    waits = [queue.get(), variable.get(), event.wait(), full.put(2), MultiLock(["m"]).acquire()]
    waiting = [asyncio.ensure_future(wait) for wait in waits]
    await queue.qsize()  # all have said so
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    await queue.put("a value")
    assert await queue.get(timeout=5) == "a value"
    assert await full.get(batch=True) == [1]
    assert (await client.coordination_info())["events"] == {}


def test_a_wait_that_is_cancelled_leaves_nothing_behind():
    play_asynchronous(cancelled_waits, processes=False, **SMALL)


class StopsItsReader:
    """Cancels the coroutine that reads it, the first time."""

    nread = 0

    def __reduce__(self):
        return StopsItsReader.read, ()

    @classmethod
    def read(cls):
        cls.nread += 1
        if cls.nread == 1:
            asyncio.current_task().cancel()
        return "read"


async def stopped_while_it_came(client):
    """As the future in it was about to be known here."""
    queue, future = Queue("q"), client.submit(sum, [1, 2])
    await queue.put([future, StopsItsReader()])
    with pytest.raises(asyncio.CancelledError):
        await asyncio.ensure_future(queue.get())
    assert await queue.qsize() == 1
    again, word = await queue.get()
    assert await again.result() == 3
    assert (word, StopsItsReader.nread) == ("read", 2)


def test_a_value_that_its_reader_did_not_get_is_there_for_the_next():
    play_asynchronous(stopped_while_it_came, processes=False, **SMALL)


async def closed_queues(client):
    queue, full = Queue("q"), Queue("f", maxsize=1)
    await full.put(1)
    waiting = [queue.get(), queue.get(timeout=20), queue.get(batch=2), full.put(2)]
    waiting = [asyncio.ensure_future(wait) for wait in [*waiting, full.put(3, timeout=20)]]
    await queue.qsize()  # all have said so
    await queue.close()
    await full.close()
    errors = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(error) for error in errors] == [QueueClosed] * 5
    assert "waited for a value" in str(errors[0])
    assert "waited for a place" in str(errors[3])


def test_who_waits_for_a_queue_that_its_own_client_closes_is_told_so():
    play_asynchronous(closed_queues, processes=False, **SMALL)


def test_a_coroutine_beside_a_blocking_client_gives_up_without_a_trace():
    """Else the lock would be granted to nobody, and never be let go of."""

    async def enter_in_vain(held):
        waiting = asyncio.ensure_future(Lock("l").__aenter__())
        await asyncio.sleep(0)
        assert held.locked()  # which is asked after the other has said that it waits
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)

    with Client(processes=False, **SMALL) as client:
        held = Lock("l")
        held.acquire()
        asyncio.run(enter_in_vain(held))
        assert client.coordination_info()["locks"]["l"]["waiting"] == []
        held.release()
        assert Lock("l").acquire(blocking=False) is True
