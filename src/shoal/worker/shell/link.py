"""The connection to the scheduler: made, watched, and made again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from shoal import config
from shoal.comms import CommClosedError, Connection, ProtocolError
from shoal.comms.calls import PendingCalls
from shoal.comms.endpoints import RETRY_SECONDS_MAX, RETRY_SECONDS_MIN
from shoal.comms.resuming import DialledStream, connect_resuming
from shoal.comms.streams import tell_of_breaks
from shoal.observe.reasons import NOT_UNDERSTOOD
from shoal.protocol.answers import Answer, Refusal
from shoal.protocol.codec import Decoder
from shoal.protocol.directions import SchedulerToWorker, answered
from shoal.protocol.exceptions import from_failure
from shoal.protocol.handshake import Keyring
from shoal.protocol.messages import Message, WorkerLeaving
from shoal.protocol.streams import STREAM_WORDS
from shoal.worker.shell.errors import NotUnderstood, SchedulerSilent, WorkerRefused

logger = logging.getLogger("shoal.worker")

_decoder: Final = Decoder(
    SchedulerToWorker | STREAM_WORDS, lambda why: WorkerLeaving(f"{NOT_UNDERSTOOD}: {why}")
)


class SchedulerLink:
    """At most one connection to the scheduler at a time."""

    def __init__(
        self,
        address: str,
        keyring: Keyring,
        on_messages: Callable[[list[Any]], None],
        on_lost: Callable[[Exception | None], None],
    ) -> None:
        """`on_lost`: called when a connection ends that neither `close` nor a refusal ended."""
        self.address = address
        self._keyring = keyring
        self._on_messages = on_messages
        self._on_lost = on_lost
        self._connection: Connection | None = None
        self._welcomed: asyncio.Future[None] | None = None
        self._calls: PendingCalls | None = None  # of that connection
        self._patience: asyncio.Timeout | None = None
        self.heard = 0  # the scheduler's latest question whether it has come, on that connection
        self.at_stir: Callable[[], object] | None = None
        """Called once, before the next messages are taken up."""

    def __repr__(self) -> str:
        return f"<link to {self.address}, {'up' if self.is_up else 'down'}>"

    @property
    def is_up(self) -> bool:
        """Whether there is a connection."""
        return self._connection is not None and not self._connection.closed

    def hearing(self) -> dict[str, int]:
        """What a heartbeat says of what has come from the scheduler, by the names it has there."""
        came = -1 if self._connection is None else self._connection.received_nbytes or -1
        return {"received_bytes": came, "heard": self.heard}

    async def open(
        self,
        registration: Callable[[], msgspec.Struct],
        *,
        timeout_seconds: float,
        keep_trying: bool = False,
    ) -> None:
        """Connect and register; returns once the scheduler has welcomed the worker.

        Args:
            registration: made when the connection is there, so that it tells the latest.
            keep_trying: also where nobody listens yet, or somebody ends the connection before
                it has answered, as a scheduler does that was just about to close.

        Raises:
            OSError: no connection, or it broke.
            WorkerRefused: the scheduler doesn't want us.
            NotUnderstood: it speaks another version.
            SchedulerSilent: it didn't answer in time.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_seconds
        pause_seconds = RETRY_SECONDS_MIN
        while True:
            try:
                await self._register(registration, deadline, timeout_seconds, keep_trying)
                return
            except ConnectionResetError:
                if not keep_trying or loop.time() + pause_seconds >= deadline:
                    raise
            await asyncio.sleep(pause_seconds)
            pause_seconds = min(2 * pause_seconds, RETRY_SECONDS_MAX)

    async def _register(
        self,
        registration: Callable[[], msgspec.Struct],
        deadline: float,
        timeout_seconds: float,
        keep_trying: bool,
    ) -> None:
        """One connection, and what the scheduler says on it; see `open`."""
        loop = asyncio.get_running_loop()
        connection = await connect_resuming(
            self.address,
            self._keyring,
            "worker",
            _decoder,
            timeout_seconds=max(0.0, deadline - loop.time()),
            keep_trying=keep_trying,
            window_seconds=config.read(config.Comm).resume_seconds,
        )
        welcomed: asyncio.Future[None] = loop.create_future()
        self._connection, self._welcomed, self.heard = connection, welcomed, 0
        calls = self._calls = PendingCalls(self.address)

        def on_messages(messages: list[Any], buffers: list[Any]) -> None:
            if self._connection is connection:
                if self.at_stir is not None:
                    at_stir, self.at_stir = self.at_stir, None
                    at_stir()
                self._on_messages(messages)

        def on_closed(reason: Exception | None) -> None:
            calls.close(reason)
            if self._connection is not connection:
                return
            self._connection = None
            if welcomed.done():
                self._on_lost(reason)
            elif isinstance(reason, ProtocolError):
                welcomed.set_exception(NotUnderstood(self.address, str(reason)))
            else:
                broken = ConnectionResetError(
                    f"The scheduler at {self.address} ended the connection before it had answered "
                    "this worker's registration. See the scheduler's log."
                )
                broken.__cause__ = reason
                welcomed.set_exception(broken)

        tell_of_breaks(connection, logger, "This worker's")
        connection.start(on_messages, on_closed)
        try:
            connection.send([registration()])
            async with asyncio.timeout_at(deadline) as self._patience:
                await welcomed
        except TimeoutError as error:
            self.abort()
            raise SchedulerSilent(self.address, timeout_seconds) from error
        except BaseException:
            self.abort()
            raise

    def welcomed(self) -> None:
        """The scheduler has answered the registration."""
        if self._welcomed is not None and not self._welcomed.done():
            self._welcomed.set_result(None)

    def wait_longer(self) -> None:
        """The scheduler has heard of us, and welcomes us later: as long as the connection lasts."""
        patience, welcomed = self._patience, self._welcomed
        if patience is None or welcomed is None or welcomed.done() or patience.expired():
            return
        patience.reschedule(None)

    def refused(self, reason: str) -> bool:
        """The scheduler sends us away; True if that is its answer to the registration."""
        if self._welcomed is None or self._welcomed.done():
            return False
        self._welcomed.set_exception(WorkerRefused(self.address, reason))
        return True

    def send(self, messages: Sequence[msgspec.Struct]) -> None:
        """Send a frame, unless the connection has gone: then it is for nobody."""
        connection = self._connection
        if connection is not None and not connection.closed:
            connection.send(messages)

    def keep_alive(self) -> None:
        """With a sign of life, if a break would be survived: see `DialledStream.keep_alive`."""
        if isinstance(self._connection, DialledStream):
            self._connection.keep_alive()

    def sender(self) -> Callable[[Sequence[msgspec.Struct]], None]:
        """What sends on the connection that is there now, and never on a later one."""
        connection = self._connection

        def send(messages: Sequence[msgspec.Struct]) -> None:
            if connection is not None and not connection.closed:
                connection.send(messages)

        return send

    async def call(
        self, make: Callable[[int], Message], *, timeout_seconds: float | None = None
    ) -> Any:
        """Ask the scheduler, and return the value of its answer.

        Args:
            make: the message, given its request number.
            timeout_seconds: None: until it is answered or the connection ends.

        Raises:
            CommClosedError: there is no connection, or it ended.
            CallTimeoutError: no answer came in time.
            BaseException: what the scheduler refused it with.
        """
        if self._calls is None:
            raise CommClosedError.lost(self.address, "it was not made yet")
        message, said = await self._calls.ask(make, lambda one: self.send([one]), timeout_seconds)
        if isinstance(said, Refusal):
            raise from_failure(said.failure)
        return answered(type(message), said)

    def answered(self, reply: Answer | Refusal) -> None:
        """The scheduler has answered a call of ours."""
        if self._calls is not None:
            self._calls.resolve(reply)

    def abort(self) -> None:
        """End the connection at once."""
        connection = self._let_go()
        if connection is not None:
            connection.abort()

    async def close(self) -> None:
        """Send what is queued, then end the connection."""
        connection = self._let_go()
        if connection is not None:
            connection.close()
            await connection.wait_closed()

    def _let_go(self) -> Connection | None:
        """The connection is none of ours any more; nor will what was asked on it be answered."""
        connection, self._connection = self._connection, None
        if self._calls is not None:
            self._calls.close()
        return connection
