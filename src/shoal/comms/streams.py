"""A connection that survives those beneath it: what both of its sides have in common.

To its owner a stream is one `Connection`.  Beneath it is a connection that may break; then what is
sent is kept until there is another, and each side sends again, once and in order, what the other
had not received.  So nothing is lost or doubled, whatever the moment of the break.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from shoal.comms.errors import CommClosedError
from shoal.comms.transport import Connection, OnClosed, OnMessages
from shoal.comms.unacknowledged import KeptFrame, Unacknowledged
from shoal.protocol.codec import encode
from shoal.protocol.framing import FrameLimits, FrameTooLarge, ProtocolError
from shoal.protocol.streams import EndStream, MessagesReceived, StreamWord, TellReceived

if TYPE_CHECKING:
    from typing_extensions import Buffer

MARK: Final = (b"",)
"""The buffers of a frame that has a word of the stream itself."""


class Carrier(Connection, Protocol):
    """A connection that may carry a stream."""

    @property
    def limits(self) -> FrameLimits:
        """The largest frame that it sends."""

    def send(self, messages: Sequence[msgspec.Struct], body: bytes = b"") -> None:
        """See `Connection.send`; `body`: the same, encoded, if somebody has done that already."""


class Stream(ABC):
    """See `Connection`.  On the loop that made it, but for `send`."""

    def __init__(self, carrier: Carrier, window_seconds: float) -> None:
        """`window_seconds`: how long a break is waited out."""
        self.role, self.scheme = carrier.role, carrier.scheme
        self.peer_address, self.local_address = carrier.peer_address, carrier.local_address
        self.closed = False
        self.window_seconds = window_seconds
        self.nbreaks = 0
        self.on_broken: Callable[[], object] | None = None
        """Called when the connection beneath it has broken, and is waited for."""
        self.on_resumed: Callable[[], object] | None = None
        """Called when there is another."""
        self._limits = carrier.limits
        self._carrier: Carrier | None = carrier
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._lock = threading.Lock()  # what is kept is in the order in which it was sent
        self._sent = Unacknowledged()
        self._nreceived = 0
        self._ntold = 0  # how much of that the other side knows
        self._hears: OnMessages | None = None
        self._on_closed: OnClosed | None = None
        self._is_lost = False  # nobody closed it here, and its owner is about to be told
        self._is_told = False
        self._has_failed = False  # its owner, at what it was told
        self._has_left = False  # the other side
        self._broken_by: tuple[Exception | None] | None = None
        self._patience: asyncio.TimerHandle | None = None
        self._carried = asyncio.Event()  # set while there is a connection, and after the end
        self._carried.set()
        self._finished: asyncio.Future[None] = self._loop.create_future()

    def __repr__(self) -> str:
        state = "closed" if self.closed else "open" if self._carrier is not None else "broken"
        return f"<stream to {self.role} {self.peer_address}, {state}>"

    # ---- sending

    @property
    def is_broken(self) -> bool:
        """Whether it waits for another connection."""
        return self._broken_by is not None

    @property
    def received_nbytes(self) -> int:
        """See `Connection.received_nbytes`; of the carrier that there is."""
        return 0 if self._carrier is None else self._carrier.received_nbytes

    @property
    def unsent_nbytes(self) -> int:
        """See `Connection.unsent_nbytes`; during a break, of all that is kept."""
        carrier = self._carrier
        return self._sent.nbytes if carrier is None else carrier.unsent_nbytes

    def send(self, messages: Sequence[msgspec.Struct]) -> None:
        """See `Connection.send`.  Cost: 1 us more than without a stream."""
        body = encode(messages)
        nbytes = len(body)
        if nbytes > self._limits.body_bytes_max:
            raise FrameTooLarge("bytes of messages", nbytes, self._limits.body_bytes_max)
        with self._lock:
            if self.closed:
                self._refuse()
                return
            is_due = self._sent.keep((len(messages), nbytes, body, None, ()))
            carrier = self._carrier
            if carrier is None:
                self._see_whether_all_is_kept()
                return
            try:
                carrier.send(messages, body)
                if is_due:
                    carrier.send_with_buffers(TellReceived(), MARK)
            except CommClosedError:
                return  # it has broken, and this is sent again by the next

    def send_with_buffers(self, message: msgspec.Struct, buffers: Sequence[Buffer]) -> None:
        """See `Connection.send_with_buffers`; they stay unchanged until they have arrived."""
        nbytes = sum(memoryview(buffer).nbytes for buffer in buffers)
        self._limits.check(len(encode((message,))), len(buffers))
        if nbytes > self._limits.buffer_bytes_max:
            raise FrameTooLarge("bytes of buffers", nbytes, self._limits.buffer_bytes_max)
        with self._lock:
            if self.closed:
                self._refuse()
                return
            is_due = self._sent.keep((1, nbytes, b"", message, buffers))
            carrier = self._carrier
            if carrier is None:
                self._see_whether_all_is_kept()
                return
            with contextlib.suppress(CommClosedError):  # as in `send`
                carrier.send_with_buffers(message, buffers)
                if is_due:
                    carrier.send_with_buffers(TellReceived(), MARK)

    def tell_received(self) -> None:
        """Say how much has arrived, if that is news; for whoever gives a sign of life anyway."""
        carrier = self._carrier
        if carrier is not None and self.window_seconds and self._nreceived != self._ntold:
            self._ntold = self._nreceived
            self._say(carrier, MessagesReceived(self._nreceived))

    def _say(self, carrier: Carrier, word: StreamWord) -> None:
        """Send a word of our own, unless that connection has gone."""
        with contextlib.suppress(CommClosedError):
            carrier.send_with_buffers(word, MARK)

    def _refuse(self) -> None:
        """What sending means after the end: nothing until the owner was told, then an error."""
        if self._is_told or not self._is_lost:
            raise CommClosedError.already(self.peer_address)

    def _see_whether_all_is_kept(self) -> None:
        """During a break; under the lock."""
        if not self._sent.is_complete:
            with contextlib.suppress(RuntimeError):  # the loop is closed, and all with it
                self._loop.call_soon_threadsafe(self._overflow)

    def _overflow(self) -> None:
        if self.is_broken:
            self._finish(self._gone("more is to be said than is kept"))

    # ---- receiving

    def start(self, on_messages: OnMessages, on_closed: OnClosed) -> None:
        """See `Connection.start`."""
        self._hears, self._on_closed = on_messages, on_closed
        if self._carrier is not None:
            self._listen_to(self._carrier)

    def _listen_to(self, carrier: Carrier) -> None:
        carrier.start(self._receive, partial(self._carrier_ended, carrier))

    def _receive(self, messages: list[msgspec.Struct], buffers: list[Any]) -> None:
        if buffers and isinstance(messages[0], StreamWord):
            self._hear(messages[0])
            return
        self._nreceived += len(messages)
        if self.closed or self._hears is None:
            return
        try:
            self._hears(messages, buffers)
        except BaseException:
            self._has_failed = True
            raise

    def _hear(self, word: StreamWord) -> None:
        """A word of the stream itself.

        Raises:
            ProtocolError: it makes no sense now.
        """
        carrier = self._carrier
        if isinstance(word, MessagesReceived):
            with self._lock:
                self._sent.acknowledge(word.nreceived)
        elif isinstance(word, TellReceived) and carrier is not None:
            self._ntold = self._nreceived
            self._say(carrier, MessagesReceived(self._nreceived))
        elif isinstance(word, EndStream):
            self._has_left = True
        else:
            raise ProtocolError(
                f"{self.peer_address} says {type(word).__name__} in the midst of a stream"
            )

    # ---- breaks

    def _carrier_ended(self, carrier: Carrier, reason: Exception | None) -> None:
        """The connection beneath has ended; whether that is the end of the stream, too."""
        with self._lock:
            if self._carrier is not carrier:
                return
            self._carrier = None
        is_break = reason is None or isinstance(reason, CommClosedError)
        if (
            self.closed
            or self._has_left
            or self._has_failed
            or not is_break
            or not self.window_seconds
            or not self._sent.is_complete
        ):
            self._finish(reason)
            return
        self._carried.clear()
        self.nbreaks += 1
        self._broken_by = (reason,)
        self._patience = self._loop.call_later(self.window_seconds, self._lose_patience)
        self._wait_for_another()
        if self.on_broken is not None:
            self.on_broken()

    @abstractmethod
    def _wait_for_another(self) -> None:
        """It has broken: do what there is to do about it."""

    def _lose_patience(self) -> None:
        self._finish(self._gone(f"it did not come back within {self.window_seconds:g} s"))

    def _gone(self, why: str) -> CommClosedError:
        """The end of a break, in words."""
        (reason,) = self._broken_by or (None,)
        lost = CommClosedError.lost(self.peer_address, f"it broke, and {why}")
        lost.__cause__ = reason
        return lost

    def give_up(self) -> None:
        """During a break: nobody will come back, so end as the connection has ended."""
        if self._broken_by is not None:
            self._finish(self._broken_by[0])

    def _go_on(self, carrier: Carrier, lacking: Sequence[KeptFrame], *first: StreamWord) -> None:
        """`carrier` carries the stream from now on, what had not arrived first of all.

        Under the lock; `_resumed` is to be called after it.
        """
        with contextlib.suppress(CommClosedError):  # this one has broken already
            for word in first:
                carrier.send_with_buffers(word, MARK)
            for _, _, body, message, buffers in lacking:
                if message is None:
                    carrier.send((), body)
                else:
                    carrier.send_with_buffers(message, buffers)
        self._carrier = carrier

    def _resumed(self, carrier: Carrier) -> None:
        self._listen_to(carrier)
        was_broken, self._broken_by = self._broken_by is not None, None
        self._forget_patience()
        self._carried.set()
        if was_broken and self.on_resumed is not None:
            self.on_resumed()

    def _forget_patience(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    # ---- ending

    def close(self) -> None:
        """See `Connection.close`.  During a break, what is kept is lost."""
        carrier = self._leave()
        if carrier is not None:
            carrier.close()

    def abort(self) -> None:
        """See `Connection.abort`."""
        carrier = self._leave()
        if carrier is not None:
            carrier.abort()

    def _leave(self) -> Carrier | None:
        """Say, if it may be heard, that the end is meant; what is left to be ended."""
        with self._lock:
            was_closed, self.closed = self.closed, True
            carrier = self._carrier
        if carrier is None:
            if not was_closed:
                self._finish(None)
        elif not was_closed and self.window_seconds:
            self._say(carrier, EndStream())
        return carrier

    def _finish(self, reason: Exception | None) -> None:
        """Nothing comes or goes any more: tell the owner soon."""
        self._is_lost = not self.closed
        self.closed = True
        self._broken_by = None
        self._forget_patience()
        self._carried.set()
        with self._lock:
            self._sent.stop()
        self._let_go()
        self._loop.call_soon(self._tell, reason)

    @abstractmethod
    def _let_go(self) -> None:
        """Forget what belongs to a stream that is not over; also if nothing does."""

    def _tell(self, reason: Exception | None) -> None:
        if not self._finished.done():
            self._finished.set_result(None)
        on_closed, self._hears, self._on_closed = self._on_closed, None, None
        self._is_told = True
        if on_closed is not None:
            on_closed(reason)

    async def drain(self) -> None:
        """See `Connection.drain`; a break is waited out."""
        while True:
            await self._carried.wait()
            carrier = self._carrier
            if carrier is None:
                return  # it is over
            await carrier.drain()
            if self._carrier is carrier:
                return

    async def wait_closed(self) -> None:
        """See `Connection.wait_closed`."""
        await asyncio.shield(self._finished)


def tell_of_breaks(connection: Connection, logger: logging.Logger, whose: str) -> None:
    """Log breaks of a connection, if it is a stream, and their ends; `whose` begins a line."""
    if not isinstance(connection, Stream):
        return
    stream = connection

    def on_broken() -> None:
        logger.info(
            "%s connection to %s broke; it is made again within %g s, or given up",
            whose,
            stream.peer_address,
            stream.window_seconds,
        )

    def on_resumed() -> None:
        logger.info("%s connection to %s is there again", whose, stream.peer_address)

    stream.on_broken, stream.on_resumed = on_broken, on_resumed
