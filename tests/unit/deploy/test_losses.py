"""Which workers a cluster is told to be lost, and when."""

import asyncio
from types import SimpleNamespace

import pytest

from shoal.deploy.losses import LostWorkers

SCHEDULER = SimpleNamespace(
    workers={address: SimpleNamespace(name=address[0]) for address in ("a", "a2", "b")}
)


@pytest.fixture
def told():
    return []


def run(losses, *steps):
    """`+a` comes, `-a` goes, and the loop then turns until every timer that is due has run."""

    async def play():
        for step in steps:
            hook = losses.add_worker if step[0] == "+" else losses.remove_worker
            hook(SCHEDULER, step[1:])
        await asyncio.sleep(0.01)

    asyncio.run(play())


def test_a_worker_that_stays_away_is_told_by_its_name(told):
    run(LostWorkers(0.001, told.append), "+a", "+b", "-a")
    assert told == ["a"]


def test_one_that_comes_back_under_its_name_in_time_is_not(told):
    run(LostWorkers(0.001, told.append), "+a", "-a", "+a2")
    run(LostWorkers(0.001, told.append), "+a", "+a2", "-a")
    assert told == []


def test_one_that_has_gone_as_it_is_told_of_is_no_loss(told):
    run(LostWorkers(0.001, told.append), "+nowhere", "-nowhere")
    assert told == []


def test_nobody_is_told_after_the_end(told):
    losses = LostWorkers(60.0, told.append)

    async def end():
        losses.add_worker(SCHEDULER, "a")
        losses.remove_worker(SCHEDULER, "a")
        (timer,) = losses._timers.values()
        await losses.close()
        assert timer.cancelled()

    asyncio.run(end())
    assert told == []


def test_of_two_with_one_name_both_must_go(told):
    losses = LostWorkers(0.001, told.append)
    run(losses, "+a", "+a2", "-a2")
    assert losses.is_there("a")
    run(losses, "-a")
    assert not losses.is_there("a")
    assert told == ["a"]
