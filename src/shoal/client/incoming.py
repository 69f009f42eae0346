"""What the scheduler says beside how wanted tasks are: who hears it.

A message of a type that has a row in `INCOMING` is given to its handler; all others are the
machine's.  A handler runs on the loop, must not wait, and sees to what users' code raises in it.
What it remembers is of a class of its own, which `session.state_of` has one of.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar

from shoal.client.inboxes import on_published
from shoal.client.members import on_member_joined, on_member_left, on_members
from shoal.client.notices import HeldByOuterTasks, JournalGone, NobodyBegins, NobodyMayRun
from shoal.client.topics import on_topic_event
from shoal.comms import PendingCalls
from shoal.protocol.actors import ActorReply, ActorsLost
from shoal.protocol.answers import Answer, Refusal
from shoal.protocol.coordination import Published
from shoal.protocol.detached import JournalStopped
from shoal.protocol.keys import to_text
from shoal.protocol.limits import PlacesHeld, TasksStranded
from shoal.protocol.looking import MemberJoined, MemberLeft, Members
from shoal.protocol.memory import AllPaused
from shoal.protocol.messages import Replicas, Shutdown
from shoal.protocol.topics import TopicEvent

P = TypeVar("P")

_logger = logging.getLogger("shoal.client")


class Listening(Protocol):
    """What a handler needs of a session."""

    calls: PendingCalls | None
    ending_reason: str

    def state_of(self, kind: type[P]) -> P:
        """The session's one `kind`, made when it is first asked for."""


class Delivery:
    """A reply together with the buffers that came with it."""

    __slots__ = ("buffers", "message", "request")

    def __init__(self, message: Any, buffers: list[Any]) -> None:
        self.request: int = message.request
        self.message = message
        self.buffers = buffers


def on_reply(
    session: Listening, message: Answer | Refusal | Replicas | ActorReply, buffers: list[Any]
) -> None:
    """Whoever asked is answered."""
    assert session.calls is not None
    session.calls.resolve(Delivery(message, buffers))


def on_shutdown(session: Listening, message: Shutdown, buffers: list[Any]) -> None:
    """The scheduler is about to hang up; remember why, for whoever asks."""
    session.ending_reason = message.reason


def on_tasks_stranded(session: Listening, message: TasksStranded, buffers: list[Any]) -> None:
    """Whoever waits for these tasks is to know what they wait for."""
    fields = [getattr(message, name) for name in TasksStranded.__struct_fields__[1:]]
    _logger.warning("%s", NobodyMayRun(to_text(message.key), *fields))


def on_all_paused(session: Listening, message: AllPaused, buffers: list[Any]) -> None:
    """Whoever waits is to know what for."""
    said = message.nworkers, message.seconds, message.worker, message.why
    _logger.warning("%s", NobodyBegins(*said))


def on_places_held(session: Listening, message: PlacesHeld, buffers: list[Any]) -> None:
    """Whoever waits for these tasks is to know that they may wait for each other."""
    key, holder = to_text(message.key), to_text(message.holder)
    error = HeldByOuterTasks(key, holder, message.nholders, message.names, message.seconds)
    _logger.warning("%s", error)


def on_journal_stopped(session: Listening, message: JournalStopped, buffers: list[Any]) -> None:
    """Whoever relies on work that outlives the scheduler is to know that it does not."""
    _logger.warning("%s", JournalGone(message.why))


class CallsUnderWay:
    """How those to the actors of one worker are ended."""

    def __init__(self) -> None:
        self.forget: Callable[[str, str], None] | None = None  # worker, why; None: none was made


def on_actors_lost(session: Listening, message: ActorsLost, buffers: list[Any]) -> None:
    """Nobody waits for the actors of a worker that was given up, though its connection live on."""
    forget = session.state_of(CallsUnderWay).forget
    if forget is not None:
        forget(message.address, message.why)


Handler = Callable[[Any, Any, list[Any]], None]  # of a session, a message, the frame's buffers

INCOMING: Final[dict[type, Handler]] = {
    Answer: on_reply,
    Refusal: on_reply,
    Replicas: on_reply,
    ActorReply: on_reply,
    ActorsLost: on_actors_lost,
    Shutdown: on_shutdown,
    TopicEvent: on_topic_event,
    Members: on_members,
    MemberJoined: on_member_joined,
    MemberLeft: on_member_left,
    Published: on_published,
    TasksStranded: on_tasks_stranded,
    PlacesHeld: on_places_held,
    AllPaused: on_all_paused,
    JournalStopped: on_journal_stopped,
}
"""Type of a message -> its handler."""
