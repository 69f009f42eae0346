"""A way between two ends that breaks where a test says, and both sides of streams that use it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from shoal.comms.errors import CommClosedError
from shoal.comms.resumable import AcceptedStream, Streams
from shoal.comms.resuming import DialledStream
from shoal.comms.streams import Stream
from shoal.protocol.codec import Decoder, encode
from shoal.protocol.framing import FrameLimits
from shoal.protocol.streams import STREAM_WORDS, BeginStream, ResumeStream
from tests.unit.comms.ends import Note, Parcel

DECODER = Decoder(Note | Parcel | STREAM_WORDS)


class LineEnd:
    """One end of a line: a carrier of a stream.  What is sent arrives in a later round of the loop,
    frame by frame, as long as the line lets it."""

    scheme = "tcp"
    limits = FrameLimits(body_bytes_max=1000, buffer_bytes_max=1000)
    local_address, peer_address = "tcp://here:1", "tcp://there:1"

    def __init__(self, line: Line, role: str, nframes_max: float) -> None:
        self.role = role
        self.closed = False
        self.unsent_nbytes = 0
        self.received_nbytes = 0
        self.is_deaf = False  # what is sent to it is lost, and nobody notices
        self.other: LineEnd
        self._line = line
        self.nframes_left = nframes_max  # that it delivers before it breaks
        self._loop = asyncio.get_running_loop()
        self._hears: Any = None
        self._on_closed: Any = None
        self._early: list[tuple[list[Any], list[Any]]] = []
        self._finished: asyncio.Future[None] = self._loop.create_future()

    def start(self, on_messages: Any, on_closed: Any) -> None:
        self._hears, self._on_closed = on_messages, on_closed
        early, self._early = self._early, []
        for messages, buffers in early:
            self._loop.call_soon(self._deliver, messages, buffers)

    def send(self, messages: Sequence[msgspec.Struct], body: bytes = b"") -> None:
        self._post(body or encode(messages), [])

    def send_with_buffers(self, message: msgspec.Struct, buffers: Sequence[Any]) -> None:
        self._post(encode((message,)), [bytes(buffer) for buffer in buffers])

    def _post(self, body: bytes, buffers: list[bytes]) -> None:
        if self.closed:
            raise CommClosedError.already(self.peer_address)
        if self.nframes_left < 1:
            self._line.cut()
        if self._line.is_cut:
            return  # it is on its way to nobody
        self.nframes_left -= 1
        self._loop.call_soon(self.other._deliver, DECODER.decode(body), buffers)

    def _deliver(self, messages: list[Any], buffers: list[Any]) -> None:
        if self.is_deaf:
            return
        self.received_nbytes += 1
        if self._hears is None:
            self._early.append((messages, buffers))
        elif not self.closed:
            self._hears(messages, buffers)

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._loop.call_soon(self._line.end, None)

    abort = close

    def end(self, reason: Exception | None) -> None:
        if not self._finished.done():
            self.closed = True
            self._finished.set_result(None)
            if self._on_closed is not None:
                self._loop.call_soon(self._on_closed, reason)

    async def drain(self) -> None:
        """All has left."""

    async def wait_closed(self) -> None:
        await asyncio.shield(self._finished)


class Line:
    """Two ends; each delivers so many frames, and then the line breaks."""

    def __init__(self, nframes: tuple[float, float], role: str = "client") -> None:
        """`nframes`: of the dialling end, and of the accepting one."""
        self.dialled = LineEnd(self, "server", nframes[0])
        self.accepted = LineEnd(self, role, nframes[1])
        self.dialled.other, self.accepted.other = self.accepted, self.dialled
        self.is_cut = False

    def hold(self) -> None:
        """Break no more."""
        self.dialled.nframes_left = self.accepted.nframes_left = float("inf")

    def cut(self) -> None:
        """Nothing leaves any more; what has left arrives, and then both ends notice it."""
        if not self.is_cut:
            self.is_cut = True
            lost = CommClosedError.lost("tcp://there:1", "the line was cut")
            asyncio.get_running_loop().call_soon(self.end, lost)

    def end(self, reason: Exception | None) -> None:
        self.dialled.end(reason)
        self.accepted.end(reason)


class Owner:
    """Who has a stream: what it heard, frame by frame, and how it ended."""

    def __init__(self) -> None:
        self.stream: Stream | None = None
        self.heard: list[tuple[list[Any], list[Any]]] = []
        self.reasons: list[Exception | None] = []
        self.nbroken = self.nresumed = 0
        self.answer: Callable[[Owner, Any], None] = lambda owner, message: None
        self._changed = asyncio.Event()

    def have(self, stream: Stream) -> None:
        self.stream = stream
        stream.on_broken, stream.on_resumed = self._on_broken, self._on_resumed
        stream.start(self._on_messages, self._on_closed)

    def _on_messages(self, messages: list[Any], buffers: list[Any]) -> None:
        self.heard.append((messages, [bytes(buffer) for buffer in buffers]))
        self._changed.set()
        for message in messages:
            self.answer(self, message)

    def _on_closed(self, reason: Exception | None) -> None:
        self.reasons.append(reason)
        self._changed.set()

    def _on_broken(self) -> None:
        self.nbroken += 1
        self._changed.set()

    def _on_resumed(self) -> None:
        self.nresumed += 1
        self._changed.set()

    @property
    def messages(self) -> list[Any]:
        return [message for messages, _ in self.heard for message in messages]

    @property
    def buffers(self) -> list[Any]:
        return [buffer for _, buffers in self.heard for buffer in buffers]

    async def until(self, holds: Callable[[Owner], bool]) -> None:
        """Wait until `holds(self)`, looking after every callback."""
        async with asyncio.timeout(10):
            while not holds(self):
                self._changed.clear()
                await self._changed.wait()


class Conversation:
    """A dialling owner and an accepting one, and the lines between them: one after another."""

    def __init__(
        self,
        *breaks: tuple[float, float],
        window_seconds: float = 5.0,
        allowed_seconds: float = 5.0,
    ) -> None:
        """`breaks`: how many frames the ends of each line deliver; lines after those hold."""
        self.streams = Streams({"client": allowed_seconds})
        self.dialling, self.accepting = Owner(), Owner()
        self.plain: LineEnd | None = None  # the accepting end, if it carries no stream
        self.lines: list[Line] = []
        self._breaks = list(breaks)
        self._window_seconds = window_seconds
        self.is_reachable = True

    def begin(self) -> None:
        stream = DialledStream(self._line().dialled, self._dial, self._window_seconds)
        self.dialling.have(stream)

    async def _dial(self, seconds: float) -> LineEnd:
        if not self.is_reachable:
            raise ConnectionRefusedError
        return self._line().dialled

    def _line(self) -> Line:
        line = Line(self._breaks.pop(0) if self._breaks else (float("inf"), float("inf")))
        self.lines.append(line)
        end = line.accepted
        end.start(lambda messages, buffers: self._accept(end, messages), lambda reason: None)
        return line

    def _accept(self, end: LineEnd, messages: list[Any]) -> None:
        """The first that is heard from a line."""
        match messages[0]:
            case BeginStream() as word:
                stream = self.streams.begin(end, word)
                if isinstance(stream, AcceptedStream):
                    self.accepting.have(stream)
                else:
                    self.plain = end
                    end.start(self.accepting._on_messages, self.accepting._on_closed)
            case ResumeStream() as word:
                self.streams.resume(end, word)
