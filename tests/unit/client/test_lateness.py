"""Whoever waits in vain is told why, in the scheduler's words."""

import asyncio

import pytest

from shoal.client.completing import as_completed
from shoal.client.lateness import POLL_SECONDS
from shoal.client.waiting import wait
from shoal.protocol.placement import ExplainTasks
from tests.unit.client.fake_scheduler import play

SAID = ["'x' is no-worker:", "  it needs GPU=1 of one worker, and none has so much"]


async def late_text(work):
    with pytest.raises(TimeoutError) as caught:
        await work
    return str(caught.value)


def test_whoever_waits_in_vain_is_told_what_the_scheduler_says():
    async def scenario(client, scheduler):
        scheduler.holds = True
        scheduler.answers[ExplainTasks] = lambda call: SAID
        future = client.submit(abs, -1, key="x")
        completed = as_completed([future], timeout=POLL_SECONDS)
        texts = await asyncio.gather(
            late_text(future.result(timeout=POLL_SECONDS)),
            late_text(future.exception(timeout=POLL_SECONDS)),
            late_text(wait(future, timeout=POLL_SECONDS)),
            late_text(completed.__anext__()),
        )
        why = "\n".join(("", *SAID))
        assert texts[:2] == [f"x has not ended within {POLL_SECONDS:g} s{why}"] * 2
        assert f"have not ended within {POLL_SECONDS:g} s.{why}\n" in texts[2]
        assert texts[3] == f"1 future has not ended in time{why}"
        assert [call.keys for call in scheduler.heard if type(call) is ExplainTasks] == [["x"]] * 4

    play(scenario)


def test_a_scheduler_that_does_not_answer_is_said_to_be_busy():
    async def scenario(client, scheduler):
        scheduler.holds = True
        future = client.submit(abs, -1, key="x")
        text = await late_text(future.result(timeout=POLL_SECONDS))
        assert text.endswith(
            "The scheduler has not said why within 0.5 s: it is busy, or can't be reached."
        )

    play(scenario)


def test_whoever_only_polls_is_told_nothing_and_asks_nobody():
    async def scenario(client, scheduler):
        scheduler.holds = True
        future = client.submit(abs, -1, key="x")
        text = await late_text(future.result(timeout=0.01))
        assert text == "x has not ended within 0.01 s"
        assert not [call for call in scheduler.heard if type(call) is ExplainTasks]

    play(scenario)
