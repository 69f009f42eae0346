"""Locks by name, on either face."""

import asyncio
import pickle

import pytest

from shoal import Lock, get_client
from shoal.client.coordination.errors import NotAwaited, NotHeld
from tests.cluster.conftest import SMALL
from tests.cluster.faces import ask, play_asynchronous


async def by_hand(client):
    lock, same, other = Lock("a"), Lock("a"), Lock("b")
    assert await ask(lock.acquire()) is True
    assert await ask(same.acquire(blocking=False)) is False
    assert await ask(same.acquire(timeout=0.01)) is False
    assert await ask(other.acquire(timeout="1 s")) is True
    assert await ask(same.locked()) is True
    await ask(lock.release())
    assert await ask(same.locked()) is False


async def of_one_object(client):
    """Acquired twice in a row, it waits for itself, as any lock."""
    lock = Lock(client=client)
    assert await ask(lock.acquire())
    assert not await ask(lock.acquire(timeout=0.01))
    await ask(lock.release())
    assert await ask(lock.acquire(timeout=1))
    await ask(lock.release())
    with pytest.raises(NotHeld, match="Released too often"):
        lock.release()


async def of_a_copy(client):
    lock = Lock()
    copy = pickle.loads(pickle.dumps(lock))
    assert copy.name == lock.name
    await ask(lock.acquire())
    assert await ask(copy.locked())
    with pytest.raises(NotHeld):
        copy.release()
    await ask(lock.release())


async def by_statement(client):
    lock = Lock("a")
    if client.is_blocking:
        with lock:
            assert lock.locked()
    else:
        async with lock:
            assert await lock.locked()
        with pytest.raises(NotAwaited, match="async with"), lock:
            raise AssertionError("nobody has waited for the lock")
    assert not await ask(lock.locked())


SCENARIOS = [by_hand, by_statement, of_one_object, of_a_copy]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_a_lock_is_held_once(play, scenario):
    play(scenario)


def test_whoever_waits_is_next_and_may_give_up():
    async def scenario(client):
        first, second, third = Lock("a"), Lock("a"), Lock("a")
        await first.acquire()
        waiting = asyncio.ensure_future(second.acquire())
        behind = asyncio.ensure_future(third.acquire())
        await first.locked()  # both have said so
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await first.release()
        assert await behind is True
        await third.release()

    play_asynchronous(scenario, processes=False, **SMALL)


def test_a_lock_can_be_made_before_there_is_a_client_but_not_used():
    lock = Lock()
    with pytest.raises(ValueError, match="No clients found"):
        lock.acquire()
    with pytest.raises(ValueError, match="no use for a timeout"):
        lock.acquire(blocking=False, timeout=1)
    with pytest.raises(ValueError, match="No clients found"):
        get_client()
