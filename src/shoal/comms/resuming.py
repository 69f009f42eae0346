"""The side of a stream that dials: after a break it comes back, again and again if need be."""

from __future__ import annotations

import asyncio
import math
import secrets
from collections.abc import Awaitable
from typing import Any, Final, Protocol

import msgspec

from shoal.comms.addresses import TCP
from shoal.comms.endpoints import connect
from shoal.comms.sockets import SocketConnection
from shoal.comms.streams import Carrier, Stream
from shoal.comms.transport import Connection
from shoal.comms.unacknowledged import ASK_BYTES
from shoal.protocol.codec import Decoder
from shoal.protocol.handshake import Keyring
from shoal.protocol.streams import (
    BeginStream,
    ResumeStream,
    StreamBegun,
    StreamResumed,
    StreamWord,
    TellReceived,
)

NAME_NBYTES: Final = 16
PAUSE_SECONDS_MIN: Final = 0.1
PAUSE_SECONDS_MAX: Final = 2.0
"""Between two attempts to come back; the first is made at once."""
ANSWER_SECONDS_MAX: Final = 5.0
"""Until somebody who is there has said anything, after a question."""


async def connect_resuming(
    address: str,
    keyring: Keyring,
    role: str,
    decoder: Decoder,
    *,
    timeout_seconds: float,
    keep_trying: bool = False,
    window_seconds: float,
) -> Connection:
    """As `connect`; what may break without an end of either side becomes a stream.

    That is TCP: a Unix socket or a connection within a process ends with one of the two.

    Args:
        decoder: one that knows STREAM_WORDS.
        window_seconds: how long to try to come back after a break; the other side may have less
            patience.  0: not at all.

    Raises:
        OSError: as `connect`.
    """

    def dial(seconds: float) -> Awaitable[Connection]:
        return connect(address, keyring, role, decoder, timeout_seconds=seconds)

    connection = await connect(
        address, keyring, role, decoder, timeout_seconds=timeout_seconds, keep_trying=keep_trying
    )
    if not window_seconds or connection.scheme != TCP:
        return connection
    assert isinstance(connection, SocketConnection)
    return DialledStream(connection, dial, window_seconds)


class Dial(Protocol):
    """Makes another connection to the same service."""

    def __call__(self, seconds: float) -> Awaitable[Any]:
        """Not later than that.  Raises OSError."""


class DialledStream(Stream):
    """See `Stream`.  Until the other side has agreed, a break is its end."""

    def __init__(self, carrier: Carrier, dial: Dial, window_seconds: float) -> None:
        super().__init__(carrier, 0.0)
        self._dial = dial
        self._name = secrets.token_bytes(NAME_NBYTES)
        self._sent.ask_bytes = math.inf
        self._returning: asyncio.Task[None] | None = None
        self._asked: tuple[Carrier, float, int] | None = None  # when, and what had come by then
        self._say(carrier, BeginStream(self._name, window_seconds))

    def _hear(self, word: StreamWord) -> None:
        if not isinstance(word, StreamBegun):
            super()._hear(word)
            return
        self.window_seconds = word.window_seconds
        with self._lock:
            if self.window_seconds:
                self._sent.ask_bytes = ASK_BYTES
            else:
                self._sent.stop()

    def keep_alive(self) -> None:
        """With a sign of life: say what has arrived, and see whether the other side is there."""
        self.tell_received()
        self.make_sure(self._loop.time())

    def make_sure(self, now: float) -> None:
        """Whether the other side is there, now and then.

        It is asked what has arrived.  If nothing at all comes for `ANSWER_SECONDS_MAX`, the
        connection is as good as gone, whatever the system thinks of it: that is a break.

        Args:
            now: the time of the loop.
        """
        carrier = self._carrier
        if carrier is None or not self.window_seconds:
            return
        if self._asked is not None and self._asked[0] is carrier:
            _, asked_at, received_nbytes = self._asked
            if now - asked_at < ANSWER_SECONDS_MAX:
                return
            if carrier.received_nbytes == received_nbytes:
                carrier.abort()
                return
        self._asked = carrier, now, carrier.received_nbytes
        self._say(carrier, TellReceived())

    def _wait_for_another(self) -> None:
        self._returning = self._loop.create_task(self._come_back(), name=f"back to {self!r}")

    def _let_go(self) -> None:
        if self._returning is not None:
            self._returning.cancel()

    async def _come_back(self) -> None:
        """Until it has succeeded, or is cancelled as patience is over."""
        pause_seconds = PAUSE_SECONDS_MIN
        while not await self._try_to_come_back():
            await asyncio.sleep(pause_seconds)
            pause_seconds = min(2 * pause_seconds, PAUSE_SECONDS_MAX)

    async def _try_to_come_back(self) -> bool:
        """One attempt; whether it is the last."""
        try:
            carrier: Carrier = await self._dial(self.window_seconds)
        except OSError:
            return False
        answered: asyncio.Future[bool] = self._loop.create_future()

        def on_closed(reason: Exception | None) -> None:
            if not answered.done():
                answered.set_result(False)

        carrier.start(
            lambda messages, buffers: self._hear_answer(carrier, messages[0], answered), on_closed
        )
        self._say(carrier, ResumeStream(self._name, self._nreceived))
        try:
            return await answered
        except asyncio.CancelledError:
            carrier.abort()
            raise

    def _hear_answer(
        self, carrier: Carrier, word: msgspec.Struct, answered: asyncio.Future[bool]
    ) -> None:
        """What the service says first on a connection by which we come back."""
        if answered.done():
            return  # we have given up meanwhile
        answered.set_result(True)
        if isinstance(word, StreamResumed):
            with self._lock:
                lacking = self._sent.lacking(word.nreceived)
                if lacking is not None:
                    self._go_on(carrier, lacking)
            if lacking is not None:
                self._resumed(carrier)
                return
        carrier.abort()
        self.give_up()
