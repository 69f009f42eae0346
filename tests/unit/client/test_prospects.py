"""Whoever waits for workers that can't come any more is told why; nobody else is."""

import asyncio
import threading
from typing import Any

import pytest

from shoal.client.prospects import Prospects, prospects_of, unless_hopeless


class Lost(Exception):
    """Why no worker comes."""


class Cluster:
    """All that is asked of one."""

    def __init__(self) -> None:
        self.prospects = Prospects()


async def for_ever() -> Any:
    """A wait that ends only if it is cancelled."""
    await asyncio.Event().wait()


def test_those_who_want_more_than_there_can_be_are_told_and_the_others_wait_on() -> None:
    prospects = Prospects()
    few, many = prospects.wait(1), prospects.wait(3)
    prospects.end(2, Lost("two at most"))
    assert isinstance(many.exception(0), Lost)
    assert not few.done()
    prospects.end(0, Lost("none"))
    assert isinstance(few.exception(0), Lost)


def test_who_comes_later_is_told_at_once_until_there_is_hope_again() -> None:
    prospects = Prospects()
    prospects.end(0, Lost("none"))
    assert isinstance(prospects.wait(1).exception(0), Lost)
    prospects.renew()
    waiting = prospects.wait(1)
    assert not waiting.done()
    waiting.cancel()
    prospects.end(0, Lost("none"))  # nobody waits


class Waiting:
    """Waits for results."""

    def __init__(self) -> None:
        self.told: list[Exception | None] = []

    def lose_hope(self, reason: Exception) -> None:
        self.told.append(reason)

    def regain_hope(self) -> None:
        self.told.append(None)


def test_who_waits_for_results_is_told_only_if_all_is_lost_and_only_while_in_use() -> None:
    prospects, waiting, gone = Prospects(), Waiting(), Waiting()
    told_of_gone = gone.told
    prospects.tell(waiting)
    prospects.tell(gone)
    del gone
    prospects.end(0, Lost("none, but somebody else sees to the results"))
    assert not waiting.told
    reason = Lost("all")
    prospects.end_all(reason)
    assert waiting.told == [reason]
    assert prospects.wait(1).exception(0) is reason
    assert not told_of_gone


def test_who_comes_after_all_was_lost_is_told_too_and_everybody_when_there_is_hope_again() -> None:
    prospects, first, second = Prospects(), Waiting(), Waiting()
    prospects.tell(first)
    prospects.renew()
    assert not first.told
    reason = Lost("all")
    prospects.end_all(reason)
    prospects.tell(second)
    assert second.told == [reason]
    prospects.renew()
    assert first.told == second.told == [reason, None]
    third = Waiting()
    prospects.tell(third)
    assert not third.told


def test_a_wait_ends_with_the_reason_from_any_thread() -> None:
    async def story() -> None:
        cluster = Cluster()
        waiting = asyncio.ensure_future(unless_hopeless(for_ever(), prospects_of(cluster), 2))
        await asyncio.sleep(0)
        thread = threading.Thread(target=cluster.prospects.end, args=(1, Lost("one at most")))
        thread.start()
        with pytest.raises(Lost, match="one at most"):
            await waiting
        thread.join()

    asyncio.run(story())


def test_an_answer_wins_over_a_prospect_and_an_error_is_its_own() -> None:
    async def answer() -> int:
        return 5

    async def fail() -> int:
        raise TimeoutError("it took too long")

    async def story() -> None:
        cluster = Cluster()
        assert await unless_hopeless(answer(), prospects_of(cluster), 2) == 5
        with pytest.raises(TimeoutError, match="took too long"):
            await unless_hopeless(fail(), prospects_of(cluster), 2)

    asyncio.run(story())


def test_a_wait_that_is_cancelled_leaves_nothing_behind() -> None:
    async def story() -> None:
        waiting = asyncio.ensure_future(unless_hopeless(for_ever(), prospects_of(Cluster()), 2))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(story())


def test_other_clusters_and_none_at_all_can_not_tell() -> None:
    async def answer() -> int:
        return 5

    assert prospects_of(None) is None
    assert prospects_of(object()) is None
    assert asyncio.run(unless_hopeless(answer(), None, 2)) == 5
