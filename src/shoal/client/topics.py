"""What a client hears of topics: whom to tell of each event, and what clients do by themselves.

A handler of a blocking client runs in the thread of callbacks, so that it may use the client; one
of an asynchronous client, or that is a coroutine function, on the client's loop.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from shoal.client.blocking import CALLBACKS
from shoal.comms.cancellation import is_our_cancellation
from shoal.observe import saying
from shoal.protocol.payload import load
from shoal.protocol.topics import SubscribeTopics, TopicEvent

_logger = logging.getLogger("shoal.client")

P = TypeVar("P")
Handler = Callable[[tuple[float, Any]], Any]

ECHOED: Final = (saying.PRINT, saying.WARN)
"""Topics of which clients hear without having asked."""


class Hearing(Protocol):
    """What is needed of a session."""

    loop: asyncio.AbstractEventLoop | None

    def state_of(self, kind: type[P]) -> P:
        """The session's one `kind`, made when it is first asked for."""


class Subscriber(NamedTuple):
    """Who hears of a topic, and where."""

    handler: Handler
    is_on_loop: bool


class Subscriptions:
    """The handlers of one client."""

    def __init__(self) -> None:
        self.by_topic: dict[str, Subscriber] = {}
        self.silenced: dict[str, None] = {}  # of those that are echoed
        self.echoes = False  # whether those are heard unasked
        self.echoes_on_loop = False  # the user's: what tasks print appears before their results
        self.running: set[asyncio.Future[Any]] = set()  # handlers, only to keep them alive

    def add(self, topic: str, handler: Handler, *, is_on_loop: bool) -> bool:
        """Have `handler` hear of a topic; whether that is new."""
        is_new = topic not in self.by_topic
        if not is_new:
            _logger.info("Another handler of the topic %r is taken in place of the first", topic)
        on_loop = is_on_loop or inspect.iscoroutinefunction(handler)
        self.by_topic[topic] = Subscriber(handler, on_loop)
        self.silenced.pop(topic, None)
        return is_new

    def remove(self, topic: str) -> bool:
        """No handler hears of it any more; whether one did."""
        if self.by_topic.pop(topic, None) is not None:
            return True
        if topic in ECHOED and topic not in self.silenced:
            self.silenced[topic] = None
            return True
        return False

    def greeting(self) -> list[SubscribeTopics]:
        """What to say to a scheduler that does not know who hears of what."""
        echoed = [topic for topic in ECHOED if self.echoes and topic not in self.silenced]
        return [SubscribeTopics(list(dict.fromkeys([*echoed, *self.by_topic])))]

    def find(self, topic: str) -> Subscriber | None:
        """Who hears of it."""
        found = self.by_topic.get(topic)
        if found is None and topic in ECHOED and topic not in self.silenced:
            return Subscriber(_echo(topic), self.echoes_on_loop)
        return found


def on_topic_event(session: Hearing, message: TopicEvent, buffers: list[Any]) -> None:
    """Something was told that this client wants to hear."""
    subscriptions = session.state_of(Subscriptions)
    subscriber = subscriptions.find(message.topic)
    if subscriber is None:
        return
    if not subscriber.is_on_loop:
        CALLBACKS.put(_Delivery(subscriber.handler, session.loop), message)
        return
    try:
        result = subscriber.handler((message.at, load(message.value)))
    except BaseException:  # a SystemExit of a handler must not end the loop
        _logger.exception("The handler of the topic %r raised", message.topic)
        return
    if inspect.isawaitable(result):
        running = asyncio.ensure_future(_awaited(result, message.topic))
        subscriptions.running.add(running)
        running.add_done_callback(subscriptions.running.discard)


class _Delivery:
    """Calls a handler, in the thread of callbacks, which logs what it raises."""

    def __init__(self, handler: Handler, loop: asyncio.AbstractEventLoop | None) -> None:
        self._handler, self._loop = handler, loop

    def __call__(self, message: TopicEvent) -> None:
        result = self._handler((message.at, load(message.value)))
        if inspect.iscoroutine(result) and self._loop is not None:
            asyncio.run_coroutine_threadsafe(_awaited(result, message.topic), self._loop)


async def _awaited(result: Any, topic: str) -> None:
    try:
        await result
    except BaseException as error:  # as above
        if is_our_cancellation(error):
            raise
        _logger.exception("The handler of the topic %r raised", topic)


def _echo(topic: str) -> Handler:
    """What clients do about what tasks print and warn of, if nobody has said else."""
    again = saying.print_again if topic == saying.PRINT else saying.warn_again
    return lambda event: again(event[1])
