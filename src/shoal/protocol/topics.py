"""What happened, told under topics: kept for who asks later, and sent on to who subscribed.

Values are pickled by whoever tells them.  The scheduler keeps the bytes, and opens them only for
code that runs beside it, and only if they are plain; see `plain.py`.
"""

from shoal.protocol.messages import Message
from shoal.protocol.subject import UNANSWERED, Subject


class TellTopics(Message, frozen=True, tag=284):
    """A client tells something; answered once it is kept and on its way to subscribers."""

    request: int
    topics: list[str]
    value: bytes


class TellTopicsOfWorker(Message, frozen=True, tag=285):
    """A worker tells something."""

    topics: list[str]
    value: bytes


class GetEvents(Message, frozen=True, tag=286):
    """Topic -> when (s, wall clock of the scheduler) and what, oldest first."""

    request: int
    topic: str | None = None  # None: all topics


class SubscribeTopics(Message, frozen=True, tag=287):
    """Send on to this client what is told from now on, until it leaves or unsubscribes."""

    topics: list[str]


class UnsubscribeTopics(Message, frozen=True, tag=288):
    """Send on no more of these."""

    topics: list[str]


class TopicEvent(Message, frozen=True, tag=289):
    """Something was told under a topic that the client has subscribed to."""

    topic: str
    at: float  # s, wall clock of the scheduler
    value: bytes


def topic_names(topic: object) -> list[str]:
    """The topics that users mean: one text, or a collection of texts.

    Raises:
        TypeError: it is something else.
    """
    names: list[str] = []
    for name in topic if isinstance(topic, list | tuple | set | frozenset) else (topic,):
        if not isinstance(name, str):
            raise TypeError(f"a topic is a text, not {name!r} of type {type(name).__name__}")
        names.append(name)
    return names


SUBJECT = Subject(
    from_client={
        TellTopics: None,
        GetEvents: dict[str, list[tuple[float, bytes]]],
        SubscribeTopics: UNANSWERED,
        UnsubscribeTopics: UNANSWERED,
    },
    to_client={TopicEvent: UNANSWERED},
    from_worker={TellTopicsOfWorker: UNANSWERED},
)
