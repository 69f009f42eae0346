"""Whom a client tells of an event."""

import asyncio
import logging
import pickle
import threading

import pytest

from shoal.client.topics import Subscriptions, on_topic_event
from shoal.protocol.topics import TopicEvent

SECONDS = 10


class ASession:
    """What a handler needs of a session."""

    def __init__(self, loop=None):
        self.loop = loop
        self.subscriptions = Subscriptions()

    def state_of(self, kind):
        assert kind is Subscriptions
        return self.subscriptions


def an_event(value, topic="x"):
    return TopicEvent(topic, 5.0, pickle.dumps(value))


def test_an_event_that_comes_late_does_no_harm():
    """Its handler is gone."""
    session = ASession()
    session.subscriptions.add("x", print, is_on_loop=True)
    assert session.subscriptions.remove("x")
    on_topic_event(session, an_event(1), [])
    assert not session.subscriptions.remove("x")


def test_topics_that_are_heard_unasked_can_be_taken_and_silenced():
    """And taken again."""
    subscriptions = Subscriptions()
    assert subscriptions.find("print") is not None
    assert subscriptions.find("other") is None
    assert subscriptions.remove("print")
    assert subscriptions.find("print") is None
    assert not subscriptions.remove("print")
    assert subscriptions.add("print", repr, is_on_loop=True)
    assert subscriptions.find("print").handler is repr


def test_a_handler_on_the_loop_that_raises_is_logged(caplog):
    session = ASession()

    def handle(event):
        raise ValueError("not this way")

    session.subscriptions.add("x", handle, is_on_loop=True)
    on_topic_event(session, an_event(1), [])
    assert "ValueError: not this way" in caplog.text


def test_a_value_that_can_not_be_read_is_logged(caplog):
    session = ASession()
    session.subscriptions.add("x", repr, is_on_loop=True)
    on_topic_event(session, TopicEvent("x", 5.0, b"nonsense"), [])
    assert "The handler of the topic 'x' raised" in caplog.text


def test_a_coroutine_function_runs_on_the_loop_and_is_kept_until_it_has_ended(caplog):
    async def scenario():
        session = ASession(asyncio.get_running_loop())
        heard = []

        async def handle(event):
            await asyncio.sleep(0)
            heard.append(event)
            raise ValueError("not this way")

        session.subscriptions.add("x", handle, is_on_loop=False)
        on_topic_event(session, an_event([1]), [])
        (running,) = session.subscriptions.running
        await running
        assert heard == [(5.0, [1])]
        await asyncio.sleep(0)
        assert not session.subscriptions.running

    asyncio.run(scenario())
    assert "ValueError: not this way" in caplog.text


def test_another_function_runs_in_the_thread_of_callbacks_and_what_it_returns_on_the_loop():
    async def scenario():
        loop = asyncio.get_running_loop()
        session, ended, threads = ASession(loop), asyncio.Event(), []

        async def later():
            threads.append(threading.current_thread())
            ended.set()

        def handle(event):
            threads.append(threading.current_thread())
            return later()

        session.subscriptions.add("x", handle, is_on_loop=False)
        on_topic_event(session, an_event(1), [])
        await asyncio.wait_for(ended.wait(), SECONDS)
        assert threads[0].name == "shoal-client-callbacks"
        assert threads[1] is threading.current_thread()

    asyncio.run(scenario())


def test_a_second_handler_is_told_of(caplog):
    subscriptions = Subscriptions()
    with caplog.at_level(logging.INFO, "shoal.client"):
        assert subscriptions.add("x", repr, is_on_loop=True)
        assert not subscriptions.add("x", str, is_on_loop=True)
    assert "in place of the first" in caplog.text
    assert subscriptions.find("x").handler is str


@pytest.mark.parametrize("topic", ["print", "warn"])
def test_what_tasks_say_is_said_again_in_the_thread_of_callbacks(topic):
    assert not Subscriptions().find(topic).is_on_loop


def test_a_handler_that_exits_does_not_end_the_loop(caplog):
    async def scenario():
        session = ASession(asyncio.get_running_loop())

        def leave(event):
            raise SystemExit(3)

        async def leave_later(event):
            raise SystemExit(4)

        session.subscriptions.add("x", leave, is_on_loop=True)
        session.subscriptions.add("y", leave_later, is_on_loop=True)
        on_topic_event(session, an_event(1), [])
        on_topic_event(session, an_event(1, "y"), [])
        await asyncio.wait(session.subscriptions.running)

    asyncio.run(scenario())
    assert "SystemExit: 3" in caplog.text
    assert "SystemExit: 4" in caplog.text
