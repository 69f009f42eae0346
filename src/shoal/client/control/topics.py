"""What happens in the cluster, told under topics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shoal.client.control.errors import UnknownTopic
from shoal.client.lifecycle import ClientBase
from shoal.client.topics import Subscriptions
from shoal.protocol import topics
from shoal.protocol.payload import dump_function, load


class Topics(ClientBase):
    """`log_event`, `get_events`, `subscribe_topic` and `unsubscribe_topic`."""

    async def log_event(self, topic: Any, msg: Any) -> None:
        """Tell something under a topic.

        The scheduler keeps the latest events of each topic, 1000 of them and 4 MB unless it is set
        otherwise, for `get_events`, and sends each on to whoever has subscribed.

        Args:
            topic: its name, or a list of names.
            msg: any value that can be pickled; small ones, please.

        Raises:
            TypeError: a topic is no text.
            Exception: the value can't be pickled.
        """
        names = topics.topic_names(topic)
        value = dump_function(msg)
        await self.session.call(lambda request: topics.TellTopics(request, names, value))

    async def get_events(self, topic: str | None = None) -> Any:
        """What was told under a topic, oldest first: pairs of time and value.

        The scheduler itself tells under `all` who comes and goes, under `scheduler` of graphs, and
        of each worker and client under its address or id.

        Args:
            topic: its name; None: a dict of all topics.

        Returns:
            A tuple of (seconds since the epoch, value); an empty one if nothing is known.
        """
        found: dict[str, list[tuple[float, bytes]]] = await self.session.call(
            lambda request: topics.GetEvents(request, topic)
        )
        events = {
            name: tuple((at, load(value)) for at, value in pairs) for name, pairs in found.items()
        }
        return events if topic is None else events.get(topic, ())

    def subscribe_topic(self, topic: str, handler: Callable[[tuple[float, Any]], Any]) -> None:
        """Have `handler` called with each event that is told under a topic from now on.

        One topic has one handler; a second takes the place of the first.

        Args:
            topic: its name; `print` and `warn`, too, of which clients hear without asking.
            handler: is given (seconds since the epoch, value), in a thread that the handlers of
                all blocking clients share, so it may use the client.  That of an asynchronous
                client, and a coroutine function, runs on the client's loop.  What it raises is
                logged.
        """
        session = self.session
        session.require_running()
        session.state_of(Subscriptions).add(topic, handler, is_on_loop=not self.face.is_blocking)
        session.say(topics.SubscribeTopics([topic]))

    def unsubscribe_topic(self, topic: str) -> None:
        """Hear of a topic no more.

        Raises:
            ValueError: no handler hears of it.
        """
        session = self.session
        session.require_running()
        if not session.state_of(Subscriptions).remove(topic):
            raise UnknownTopic(topic)
        session.say(topics.UnsubscribeTopics([topic]))
