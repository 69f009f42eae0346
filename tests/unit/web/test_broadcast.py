"""One look for all who watch, and none while nobody does."""

import asyncio

import pytest

from shoal.testing.clusters import gen_test
from shoal.web.broadcast import Broadcast


class Looks:
    """What is looked at: a number that tests change, and how often somebody looked."""

    def __init__(self) -> None:
        self.value = 1
        self.n = 0
        self.changed: asyncio.Event = asyncio.Event()

    def __call__(self) -> bytes:
        self.n += 1
        self.changed.set()
        return str(self.value).encode()


@gen_test()
async def test_everybody_gets_the_same_look() -> None:
    """Three viewers cost what one does."""
    looks = Looks()
    broadcast = Broadcast(looks, 60.0)
    seen = await asyncio.gather(*(broadcast.after(0) for _ in range(3)))
    assert seen == [(1, b"1")] * 3
    assert looks.n == 1
    broadcast.close()


@gen_test()
async def test_a_viewer_is_told_of_what_is_new_only() -> None:
    """Looks that are like the one before wake nobody."""
    looks = Looks()
    broadcast = Broadcast(looks, 0.001)
    number, _ = await broadcast.after(0)
    waiting = asyncio.create_task(broadcast.after(number))
    for _ in range(3):
        looks.changed.clear()
        await looks.changed.wait()
    assert not waiting.done()
    looks.value = 2
    assert await waiting == (2, b"2")
    broadcast.close()


@gen_test()
async def test_nobody_looks_once_all_viewers_have_gone() -> None:
    """The timer that is due then is the last."""
    looks = Looks()
    broadcast = Broadcast(looks, 0.001)
    number, _ = await broadcast.after(0)
    waiting = asyncio.create_task(broadcast.after(number))
    looks.changed.clear()
    await looks.changed.wait()
    waiting.cancel()
    await asyncio.wait((waiting,))
    looks.changed.clear()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):  # fifty times the period
            await looks.changed.wait()
    looks.value = 2
    assert await broadcast.after(number) == (2, b"2")  # whoever comes back finds it looking again
    broadcast.close()


@gen_test()
async def test_a_slow_viewer_gets_the_newest_look() -> None:
    """What he missed does not pile up."""
    looks = Looks()
    broadcast = Broadcast(looks, 0.001)
    fast = 0
    for value in (1, 2, 3):
        looks.value = value
        fast, _ = await broadcast.after(fast)
    assert await broadcast.after(0) == (3, b"3")
    broadcast.close()
