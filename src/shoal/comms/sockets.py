"""A connection over a non-blocking stream socket, TCP or Unix: the hot path of the whole system.

Own sockets with readiness callbacks and not asyncio's transports, because those copy what is
sent, and cost more per frame.  A small frame is one `send` and one `recv`; nothing else is made
for it but its bytes.

A thread that has something to say sends it itself: to wake the loop for that would cost more than
the system call.  The lock keeps its frame whole, and the descriptor from being closed meanwhile;
whatever else there is to do is left to the loop.
"""

from __future__ import annotations

import asyncio
import collections
import socket
import threading
from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Final

import msgspec

from shoal.comms import forks
from shoal.comms.ending import DRAINED_NBYTES, Ending
from shoal.comms.errors import CommClosedError
from shoal.comms.memory import allocate
from shoal.comms.transport import OnClosed, OnMessages
from shoal.protocol.codec import Decoder, encode
from shoal.protocol.framing import (
    HEADER,
    SCRATCH_NBYTES,
    Frame,
    FrameLimits,
    FrameReader,
    FrameTooLarge,
    ProtocolError,
    frame_head,
)

if TYPE_CHECKING:
    from typing_extensions import Buffer

READS_MAX: Final = 16
"""Reads per readiness callback, so that one busy peer can't starve the others."""
READING_SECONDS: Final = 0.002
"""After so long another peer's turn comes, even if there is more: a graph arrives in large frames,
and what one of them brings about may take milliseconds."""
WRITES_MAX: Final = 8
CHUNKS_MAX: Final = 64
"""Queued pieces given to the system in one call."""
WHOLE_NBYTES_MAX: Final = 1 << 18
"""From here on, a second system call costs less than a copy of what is sent."""
FLUSH_SECONDS: Final = 5.0
"""How long `close` waits for the peer to take what is queued."""
LINGER_SECONDS: Final = 1.0
"""How long `close` then waits for the peer to see the end: a reset could cost it the tail."""

_pack_header: Final = HEADER.pack


class _Thread(threading.local):
    """What the connections of one thread share, as only one of them reads at a time."""

    def __init__(self) -> None:
        self.scratch = bytearray(SCRATCH_NBYTES)


_thread: Final = _Thread()


class SocketConnection(Ending):
    """See `Connection`.  Made by `connect` and `listen`, after the handshake."""

    def __init__(
        self,
        sock: socket.socket,
        *,
        scheme: str,
        role: str,
        peer_address: str,
        local_address: str,
        decoder: Decoder,
        limits: FrameLimits | None = None,
        leftover: bytes = b"",
    ) -> None:
        """`sock` is non-blocking and owned from now on; `leftover` came after the handshake."""
        super().__init__()
        self.scheme, self.role = scheme, role
        self.peer_address, self.local_address = peer_address, local_address
        self._lock = threading.RLock()
        self._sock = sock
        self._fd = sock.fileno()
        self._recv_into = sock.recv_into
        self._sock_send = sock.send
        self._decode = decoder.decode
        self.limits = limits or FrameLimits()
        self._body_bytes_max = self.limits.body_bytes_max
        self._reader = FrameReader(self.limits, allocate, _thread.scratch)
        self._leftover = leftover
        self._queue: collections.deque[memoryview] = collections.deque()
        self._broken = False  # the peer takes nothing any more; `on_closed` will say so
        self._reading = False
        self._writing = False
        self._deadline: asyncio.TimerHandle | None = None
        forks.belongs_to_this_process(self)

    def __repr__(self) -> str:
        state = "closed" if self.closed else "open"
        return f"<{self.scheme} connection to {self.role} {self.peer_address}, {state}>"

    # ---- sending

    def send(self, messages: Sequence[msgspec.Struct], body: bytes = b"") -> None:
        """See `Connection.send`.  Cost: 0.6 us and one system call; large bodies aren't copied.

        `body`: the same, encoded, if somebody has done that already.
        """
        body = body or encode(messages)
        nbytes = len(body)
        if nbytes > self._body_bytes_max:
            raise FrameTooLarge("bytes of messages", nbytes, self._body_bytes_max)
        if nbytes > WHOLE_NBYTES_MAX:
            self._send_pieces([memoryview(_pack_header(nbytes, 0)), memoryview(body)])
            return
        frame = _pack_header(nbytes, 0) + body
        with self._lock:
            if self.closed:
                self._refuse()
                return
            if self._queue:
                self._enqueue(memoryview(frame))
                return
            try:
                nsent = self._sock_send(frame)
            except (BlockingIOError, InterruptedError):
                nsent = 0
            except OSError as error:
                self._on_loop(self._break, error)
                return
            if nsent != nbytes + 8:
                self._enqueue(memoryview(frame)[nsent:])

    def send_with_buffers(self, message: msgspec.Struct, buffers: Sequence[Buffer]) -> None:
        """See `Connection.send_with_buffers`."""
        views = [memoryview(buffer).cast("B") for buffer in buffers]
        body = encode((message,))
        self.limits.check(len(body), len(views))
        total = sum(map(len, views))
        if total > self.limits.buffer_bytes_max:
            raise FrameTooLarge("bytes of buffers", total, self.limits.buffer_bytes_max)
        head = frame_head(body, [len(view) for view in views])
        self._send_pieces([memoryview(head), *[view for view in views if view]])

    def _send_pieces(self, pieces: Sequence[memoryview]) -> None:
        """Send what is one frame without making it one piece of memory."""
        with self._lock:
            if self.closed:
                self._refuse()
                return
            was_idle = not self._queue
            self._queue.extend(pieces)
            self.unsent_nbytes += sum(map(len, pieces))
        if was_idle:
            self._on_loop(self._write)

    def _on_loop(self, function: Callable[..., object], *args: object) -> None:
        """Call `function` here if this is the loop's thread, else soon on the loop."""
        if threading.get_ident() == self._loop_thread:
            function(*args)
            return
        try:
            self._loop.call_soon_threadsafe(function, *args)
        except RuntimeError:
            self.closed = True  # the loop has ended, and the connection with it

    def _refuse(self) -> None:
        """What sending means after the end: nothing until the owner was told, then an error."""
        if self._told or not self._broken:
            raise CommClosedError.already(self.peer_address)

    def _enqueue(self, rest: memoryview) -> None:
        self._queue.append(rest)
        self.unsent_nbytes += len(rest)
        if not self._writing:
            self._on_loop(self._write)

    def _write(self) -> None:
        """Give the system as much of the queue as it takes."""
        with self._lock:
            if not self._ended:
                self._write_locked()

    def _write_locked(self) -> None:
        queue = self._queue
        for _ in range(WRITES_MAX):
            if not queue:
                break
            chunks = [queue[i] for i in range(min(len(queue), CHUNKS_MAX))]
            try:
                nsent = self._sock.sendmsg(chunks)
            except (BlockingIOError, InterruptedError):
                break
            except OSError as error:
                self._break(error)
                return
            self._forget(nsent)
        if queue:
            if not self._writing:
                self._writing = True
                self._loop.add_writer(self._fd, self._write)
        elif self._writing:
            self._writing = False
            self._loop.remove_writer(self._fd)
        if self._drained and self.unsent_nbytes <= DRAINED_NBYTES:
            self._wake_drained()
        if self.closed and not queue:
            self._half_close()

    def _forget(self, nsent: int) -> None:
        """Drop the first `nsent` bytes of the queue: they are the system's now."""
        self.unsent_nbytes -= nsent
        queue = self._queue
        while nsent:
            first = queue[0]
            if len(first) > nsent:
                queue[0] = first[nsent:]
                return
            nsent -= len(first)
            queue.popleft()

    def _break(self, error: OSError) -> None:
        """The peer takes nothing any more.  What it has said before is still to be heard."""
        with self._lock:
            if self._broken or self._ended:
                return
            self.closed = self._broken = True
            self._queue.clear()
            self.unsent_nbytes = 0
            if self._writing:
                self._writing = False
                self._loop.remove_writer(self._fd)
        self._wake_drained()
        lost = CommClosedError.lost(self.peer_address, _why(error))
        self._loop.call_soon(self._hear_the_rest, lost)

    # ---- receiving

    def start(self, on_messages: OnMessages, on_closed: OnClosed) -> None:
        """See `Connection.start`."""
        self._on_messages, self._on_closed = on_messages, on_closed
        if self._ended:
            self._loop.call_soon(self._tell)
            return
        if not self._reading:
            self._reading = True
            self._loop.add_reader(self._fd, self._read)
        if self._leftover:
            self._loop.call_soon(self._read_leftover)

    def _read_leftover(self) -> None:
        leftover, self._leftover = self._leftover, b""
        if leftover and not self._ended:
            room = self._reader.get_buffer()
            room[: len(leftover)] = leftover
            self._accept(len(leftover))

    def _read(self) -> bool:
        """Read what is there, within bounds.  Whether there may be more."""
        if self._leftover:
            self._read_leftover()
        reader = self._reader
        give_up_at = monotonic() + READING_SECONDS
        for _ in range(READS_MAX):
            if self._ended:
                return False
            room = reader.get_buffer()
            try:
                nbytes = self._recv_into(room)
            except (BlockingIOError, InterruptedError):
                return False
            except OSError as error:
                self._end(CommClosedError.lost(self.peer_address, _why(error)))
                return False
            if not nbytes:
                self._end(self._reason_of_end())
                return False
            self._accept(nbytes)
            if nbytes < len(room) <= SCRATCH_NBYTES:
                return False  # a short read: the system has no more for now
            if monotonic() > give_up_at:
                break
        return True

    def _accept(self, nbytes: int) -> None:
        """Handle `nbytes` that were put into the reader's buffer."""
        if self.closed and not self._broken:
            return  # we are closing: only the end of the stream is waited for
        self.received_nbytes += nbytes
        try:
            frames = self._reader.buffer_updated(nbytes)
        except (ProtocolError, MemoryError) as error:
            self._end(error)
            return
        if frames:
            self._deliver(frames)

    def _deliver(self, frames: list[Frame]) -> None:
        """Give frames without buffers to the owner all at once, those with buffers singly."""
        decode = self._decode
        batch: list[msgspec.Struct] = []
        failure: ProtocolError | None = None
        try:
            for body, buffers in frames:
                messages = decode(body)
                if not buffers:
                    if batch:
                        batch += messages
                    else:
                        batch = messages
                    continue
                if batch:
                    self._hand_over(batch, [])
                    batch = []
                self._hand_over(messages, list(buffers))
        except ProtocolError as error:
            failure = error
        if batch:
            self._hand_over(batch, [])
        if failure is not None:
            self._turn_away(failure)

    def _hand_over(self, messages: list[msgspec.Struct], buffers: list[memoryview]) -> None:
        if self._ended or (self.closed and not self._broken):
            return
        assert self._on_messages is not None
        try:
            self._on_messages(messages, buffers)
        except Exception as error:
            self._loop.call_exception_handler(
                {
                    "message": f"The receiver of {self!r} raised; the connection is aborted",
                    "exception": error,
                }
            )
            self._end(error)

    def _hear_the_rest(self, lost: CommClosedError) -> None:
        """Read on until the peer's last word, then end."""
        if self._on_messages is not None and self._read():
            self._loop.call_soon(self._hear_the_rest, lost)
        elif not self._ended:
            self._end(lost)

    def _reason_of_end(self) -> Exception | None:
        if self.closed and not self._broken:
            return None
        if self._reader.at_boundary:
            return None
        return CommClosedError.lost(self.peer_address, "it ended in the middle of a frame")

    # ---- ending

    def close(self) -> None:
        """See `Connection.close`."""
        with self._lock:
            if self.closed:
                return
            self.closed = True
        if self._queue:
            unsent = CommClosedError.lost(self.peer_address, "it did not take what was queued")
            self._deadline = self._loop.call_later(FLUSH_SECONDS, self._end, unsent)
        else:
            self._half_close()

    def _half_close(self) -> None:
        """Say that nothing more will come, and wait for the same from the peer.

        Closing a socket that has unread bytes resets it, and the peer might lose our tail.
        """
        if self._deadline is not None:
            self._deadline.cancel()
        try:
            self._sock.shutdown(socket.SHUT_WR)
        except OSError:
            self._end(None)  # the peer is gone already
            return
        self._deadline = self._loop.call_later(LINGER_SECONDS, self._end, None)
        if not self._reading:
            self._reading = True
            self._loop.add_reader(self._fd, self._read)

    def abort(self) -> None:
        """See `Connection.abort`."""
        self._end(None)

    def disown(self) -> None:
        """See `forks.Disowned`; whoever had the lock is not in this process."""
        self._lock = threading.RLock()
        self.closed = self._ended = True
        self._sock.close()

    def _end(self, reason: Exception | None) -> None:
        """Close the socket, and tell the owner soon."""
        with self._lock:
            if self._ended:
                return
            self.closed = self._ended = True
            self._reason = reason or self._failure
            if self._reading:
                self._loop.remove_reader(self._fd)
            if self._writing:
                self._loop.remove_writer(self._fd)
            if self._deadline is not None:
                self._deadline.cancel()
            self._sock.close()
            self._queue.clear()
            self.unsent_nbytes = 0
        self._wake_drained()
        self._loop.call_soon(self._tell)


def _why(error: OSError) -> str:
    return error.strerror or str(error) or type(error).__name__
