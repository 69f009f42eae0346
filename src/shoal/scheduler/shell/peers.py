"""One connected worker or client: what it says goes to the machine, or to the operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from shoal.comms import Connection, FrameTooLarge, PendingCalls, ProtocolError
from shoal.errors import NameTaken
from shoal.protocol import answers
from shoal.protocol.handshake import CLIENT
from shoal.protocol.messages import Message, RegisterClient, RegisterWorker, Shutdown
from shoal.scheduler.machine.table import FROM_CLIENT, FROM_WORKER
from shoal.scheduler.model.entities import Client, Worker
from shoal.scheduler.shell.host import Hearing

REPLIES: Final = (answers.Answer, answers.Refusal)


class Peer:
    """The connection to a worker or client, from its first message to its end."""

    def __init__(self, scheduler: Hearing, connection: Connection) -> None:
        self.connection = connection
        self.calls = PendingCalls(connection.peer_address)
        self.entity: Worker | Client | None = None
        self._scheduler = scheduler
        connection.start(self._on_messages, self._on_closed)

    def send(self, messages: Sequence[Message]) -> None:
        """Send one frame, unless the connection has ended, which is told by itself.

        Messages that are too large together go one by one.
        """
        if self.connection.closed:
            return
        try:
            self.connection.send(messages)
        except FrameTooLarge:
            if len(messages) == 1:
                raise
            for message in messages:
                self.connection.send([message])

    def send_with_buffers(self, message: Message, buffers: Sequence[Any]) -> None:
        """Send one message with out-of-band buffers, unless the connection has ended."""
        if not self.connection.closed:
            self.connection.send_with_buffers(message, buffers)

    def _on_messages(self, messages: list[msgspec.Struct], buffers: list[Any]) -> None:
        entity = self.entity
        if entity is None:
            entity = self._register(messages.pop(0))
            if entity is None or not messages:
                return
        if isinstance(entity, Worker):
            self._take(messages, FROM_WORKER, self._scheduler.receive_from_worker, entity)
        else:
            self._take(messages, FROM_CLIENT, self._scheduler.receive_from_client, entity)

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
                self.entity = self._scheduler.worker_joined(self, message)
                return self.entity
        except NameTaken as error:
            self.send([Shutdown(str(error))])
            self.connection.close()
            return None
        if isinstance(message, RegisterClient) and self.connection.role == CLIENT:
            self.entity = self._scheduler.client_joined(self, message)
            return self.entity
        raise ProtocolError(
            f"{self.connection.peer_address} began with {type(message).__name__}, "
            "and not by saying who it is"
        )

    def _on_closed(self, reason: Exception | None) -> None:
        self.calls.close(reason)
        self._scheduler.peer_lost(self, reason)
