"""One connected worker or client: what it says goes to the machine, or to the operations."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from shoal.comms import Connection, FrameTooLarge, PendingCalls, ProtocolError
from shoal.comms.lending import Lent
from shoal.comms.resumable import AcceptedStream
from shoal.errors import NameTaken
from shoal.protocol import answers
from shoal.protocol.exceptions import to_failure
from shoal.protocol.freestanding import Handed, Parcel, Taken
from shoal.protocol.handshake import CLIENT
from shoal.protocol.messages import (
    Message,
    RegisterClient,
    RegisterWorker,
    Shutdown,
    VouchForWorker,
    WorkerHeartbeat,
)
from shoal.protocol.streams import BeginStream, ResumeStream
from shoal.protocol.topics import TopicEvent
from shoal.scheduler.machine.table import FROM_CLIENT, FROM_WORKER
from shoal.scheduler.model.entities import Client, Worker
from shoal.scheduler.shell.host import Hearing

logger = logging.getLogger("shoal.scheduler")

REPLIES: Final = (answers.Answer, answers.Refusal)

SAID_BY_PROGRAMS: Final = (Parcel, Handed, Taken)

UNSENT_BYTES_MAX: Final = 64_000_000
"""What may wait for a client to read it; if it is more, events of topics are not added to it."""


class Peer:
    """The connection to a worker or client, from its first message to its end."""

    def __init__(self, scheduler: Hearing, connection: Connection) -> None:
        self.connection = connection
        self.calls = PendingCalls(connection.peer_address)
        self.entity: Worker | Client | None = None
        self._held: list[Message] | None = None
        self._misses_events = False  # as it does not read
        self._waits = False  # it has said who it is, and is not registered yet
        self._early: list[msgspec.Struct] = []  # what it has said meanwhile
        self._lent: Lent | None = None  # for a program's own comm
        self._scheduler = scheduler
        connection.start(self._on_messages, self._on_closed)

    def send(self, messages: Sequence[Message]) -> None:
        """Send one frame, unless the connection has ended, which is told by itself.

        Messages that are too large together go one by one; an answer that is too large by itself
        becomes a refusal.
        """
        if self._held is not None:
            self._held.extend(messages)
            return
        if self.connection.closed:
            return
        if self._misses_events or self.connection.unsent_nbytes > UNSENT_BYTES_MAX:
            messages = self._without_events(messages)
            if not messages:
                return
        try:
            self.connection.send(messages)
        except FrameTooLarge:
            for message in messages:
                self._send_alone(message)

    def _send_alone(self, message: Message) -> None:
        try:
            self.connection.send([message])
        except FrameTooLarge as error:
            if not isinstance(message, answers.Answer):
                raise
            self.connection.send([answers.Refusal(message.request, to_failure(error))])

    def _without_events(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Keep events from whoever does not read, until it has read what waits for it."""
        if not self.connection.unsent_nbytes:
            self._misses_events = False
            return messages
        if not self._misses_events:
            self._misses_events = True
            waits = self.connection.unsent_nbytes
            logger.warning(
                "%s has yet to read %d bytes, and misses events of topics until it has read them",
                self.entity,
                waits,
            )
        return [message for message in messages if type(message) is not TopicEvent]

    @property
    def is_held(self) -> bool:
        """Whether what is to be sent is kept."""
        return self._held is not None

    def hold(self) -> None:
        """From now on, keep what is to be sent."""
        self._held = []

    def release(self) -> None:
        """Send what was kept, and whatever comes from now on."""
        held, self._held = self._held, None
        if held:
            self.send(held)

    def send_away(self, reason: str) -> None:
        """Say why it has to go, though it be held, and end the connection."""
        self._held = None  # what was kept is for nobody
        if self._lent is None:
            self.send([Shutdown(reason)])
        self.connection.close()

    def send_with_buffers(self, message: Message, buffers: Sequence[Any]) -> None:
        """Send one message with out-of-band buffers, unless the connection has ended."""
        if not self.connection.closed:
            self.connection.send_with_buffers(message, buffers)

    def _on_messages(self, messages: list[msgspec.Struct], buffers: list[Any]) -> None:
        entity = self.entity
        if entity is None:
            if buffers and isinstance(messages[0], (BeginStream, ResumeStream)):
                self._scheduler.carry_stream(self, messages[0])
                return
            if self._lent is None and type(messages[0]) in SAID_BY_PROGRAMS:
                self._lent = self._lend()
            if self._lent is not None:
                self._lent.hear(messages, buffers)
                return
            if self._waits:
                self._hear_early(messages)
                return
            entity = self._register(messages.pop(0))
            if entity is None:
                self._early += messages
                return
            if not messages:
                return
        if isinstance(entity, Worker):
            self._take(messages, FROM_WORKER, self._scheduler.receive_from_worker, entity)
            return
        try:
            self._take(messages, FROM_CLIENT, self._scheduler.receive_from_client, entity)
        except ProtocolError as error:
            logger.warning("%s is disconnected: %s", entity, error)
            self.send_away(str(error))  # or it would come back, and say the same again

    def _take(
        self,
        messages: list[Any],
        handled: dict[type[Message], Any],
        receive: Callable[[Any, list[Message]], None],
        entity: Worker | Client,
    ) -> None:
        """Hand runs of messages to the machine in one step each, and what is between them to us."""
        start = 0
        for index, message in enumerate(messages):
            if type(message) not in handled:
                if index > start:
                    receive(entity, messages[start:index])
                start = index + 1
                if isinstance(message, REPLIES):
                    self.calls.resolve(message)
                else:
                    self._scheduler.operations.begin(self, message)
        if start < len(messages):
            receive(entity, messages[start:] if start else messages)

    def _register(self, message: msgspec.Struct) -> Worker | Client | None:
        """The first message says who it is; None if it is turned away."""
        try:
            if isinstance(message, RegisterWorker):
                self._waits = not self._waits and self._scheduler.worker_must_wait(self, message)
                if not self._waits:
                    self.entity = self._scheduler.worker_joined(self, message)
                return self.entity
        except NameTaken as error:
            self.send_away(str(error))
            return None
        if isinstance(message, VouchForWorker):
            self._scheduler.worker_vouched(message)
            self.connection.close()
            return None
        if isinstance(message, RegisterClient) and self.connection.role == CLIENT:
            self.entity = self._scheduler.client_joined(self, message)
            return self.entity
        raise ProtocolError(
            f"{self.connection.peer_address} began with {type(message).__name__}, "
            "and not by saying who it is"
        )

    def carried_by(self, stream: AcceptedStream) -> None:
        """What was our connection carries a stream, by which the peer is heard from now on."""
        self.connection = stream
        stream.on_broken = partial(self._scheduler.peer_broken, self, stream)
        stream.on_resumed = partial(self._scheduler.peer_resumed, self)
        stream.start(self._on_messages, self._on_closed)

    def admit(self, message: RegisterWorker) -> None:
        """A worker that had to wait is registered now, and heard."""
        if self._register(message) is not None and self._early:
            early, self._early = self._early, []
            self._on_messages(early, [])

    def _hear_early(self, messages: list[msgspec.Struct]) -> None:
        """It answers what it was asked; what else it says is for later."""
        for message in messages:
            if isinstance(message, REPLIES):
                self.calls.resolve(message)
            elif not isinstance(message, WorkerHeartbeat):  # it lives
                self._early.append(message)

    def _lend(self) -> Lent:
        """It is no client, but a program that calls operations by name."""
        if self.connection.role != CLIENT or self._waits:
            raise ProtocolError(
                f"{self.connection.peer_address} proved itself a worker, and calls operations by "
                "name, which are for clients"
            )
        lent = Lent(self.connection)
        self._scheduler.operations.welcome(lent)
        return lent

    def _on_closed(self, reason: Exception | None) -> None:
        if self._lent is not None:
            self._lent.end(reason)
        self.calls.close(reason)
        self._scheduler.peer_lost(self, reason)
