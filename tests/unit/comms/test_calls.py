"""Calls: every request ends, with its reply, its deadline, or the connection."""

import asyncio
from collections.abc import Coroutine
from typing import Any, NamedTuple

import pytest

from shoal.comms import CallTimeoutError, CommClosedError, PendingCalls


class Answer(NamedTuple):
    request: int
    text: str = ""


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


def test_replies_find_their_requests_in_any_order() -> None:
    async def story() -> None:
        calls = PendingCalls("peer")
        first, first_reply = calls.open()
        second, second_reply = calls.open()
        assert first != second
        assert calls.resolve(Answer(second, "b"))
        assert calls.resolve(Answer(first, "a"))
        assert (await first_reply, await second_reply) == (Answer(first, "a"), Answer(second, "b"))
        assert len(calls) == 0

    run(story())


def test_a_reply_that_nobody_waits_for_is_reported_and_harmless() -> None:
    async def story() -> None:
        calls = PendingCalls("peer")
        request, reply = calls.open()
        assert not calls.resolve(Answer(request + 1))
        assert calls.resolve(Answer(request))
        assert not calls.resolve(Answer(request))
        assert not calls.fail(request, ValueError("late"))
        assert await reply == Answer(request)

    run(story())


def test_a_call_that_is_cancelled_is_forgotten() -> None:
    async def story() -> None:
        calls = PendingCalls("peer")
        request, reply = calls.open(timeout_seconds=60)
        reply.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reply
        await asyncio.sleep(0)
        assert len(calls) == 0
        assert not calls.resolve(Answer(request))

    run(story())


def test_a_call_without_a_reply_ends_at_its_deadline() -> None:
    async def story() -> None:
        calls = PendingCalls("tcp://peer:1")
        request, reply = calls.open("the question", timeout_seconds=0.01)
        with pytest.raises(CallTimeoutError, match=r"tcp://peer:1 did not answer the question"):
            await reply
        assert not calls.resolve(Answer(request))

    run(story())


@pytest.mark.parametrize(
    "reason", [None, CommClosedError("gone"), ValueError("a bug")], ids=["None", "lost", "bug"]
)
def test_all_calls_fail_when_the_connection_ends_and_later_ones_too(
    reason: Exception | None,
) -> None:
    async def story() -> None:
        calls = PendingCalls("peer")
        replies = [calls.open(timeout_seconds=60)[1] for _ in range(3)]
        calls.close(reason)
        calls.close(None)
        for reply in replies:
            with pytest.raises(CommClosedError) as caught:
                await reply
            if reason is not None:
                assert str(reason) in str(caught.value)
        with pytest.raises(CommClosedError):
            calls.open()
        assert len(calls) == 0

    run(story())


def test_one_call_can_fail_alone() -> None:
    async def story() -> None:
        calls = PendingCalls("peer")
        request, reply = calls.open()
        _, other = calls.open()
        assert calls.fail(request, KeyError("no such"))
        with pytest.raises(KeyError):
            await reply
        assert not other.done()

    run(story())


def test_a_question_that_can_not_be_said_leaves_nothing_behind() -> None:
    def say(question: int) -> None:
        raise ValueError("too large")

    async def story() -> None:
        calls = PendingCalls("peer")
        with pytest.raises(ValueError, match="too large"):
            await calls.ask(lambda request: request, say)
        await asyncio.sleep(0)
        assert len(calls) == 0

    run(story())
