"""Topics: what was told under each, and who wants to hear more; bounded in number and bytes."""

from collections import deque
from typing import NamedTuple

from shoal.scheduler.model.entities import Client

EVENT_NBYTES = 100
"""What an event takes beside its value."""


class Event(NamedTuple):
    """Something that was told."""

    at: float  # s, wall clock
    value: bytes  # pickled by whoever told it


class Topic:
    """The latest events of one name, oldest first."""

    __slots__ = ("events", "nbytes", "subscribers")

    def __init__(self) -> None:
        self.events: deque[Event] = deque()
        self.nbytes = 0
        self.subscribers: dict[Client, None] = {}

    def add(self, event: Event, nevents_max: int, nbytes_max: int) -> None:
        """Keep an event, and as many of those before it as the limits allow; all of those if it is
        too large by itself."""
        nbytes = EVENT_NBYTES + len(event.value)
        if nbytes > nbytes_max:
            return
        self.events.append(event)
        self.nbytes += nbytes
        while len(self.events) > nevents_max or self.nbytes > nbytes_max:
            self.nbytes -= EVENT_NBYTES + len(self.events.popleft().value)

    def __repr__(self) -> str:
        return f"<Topic of {len(self.events)} events, {self.nbytes} B>"


class Forwarding(NamedTuple):
    """A client's wish to get the log records of a logger."""

    client: Client
    topic: str
    logger: str
