"""Bytes to frames and back, without a socket.

A frame is ``<II`` (length of the body, number of buffers), one u64 length per buffer, the body
(a msgpack array of messages), then the buffers, raw.  Two rules for whoever edits this file:
a length is checked against the limits before memory is asked for, and a large buffer is read
straight into the memory that will hold it, so that nothing ever copies it.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from typing_extensions import Buffer

HEADER: Final = struct.Struct("<II")
SCRATCH_NBYTES: Final = 1 << 17
"""Small frames are read many at a time into this much memory."""
DIRECT_NBYTES: Final = 1 << 14
"""What lacks at least this much is read into memory of its own, and not through the scratch."""

_READ_HEADER: Final = 0
_READ_LENGTHS: Final = 1
_READ_BODY: Final = 2
_READ_BUFFER: Final = 3
_NO_BUFFERS: Final[list[memoryview]] = []


class ProtocolError(Exception):
    """The peer said something that its role and protocol version do not allow."""

    last_word: object = None
    """A message to send to the peer before its connection ends, if there is one."""


class FrameTooLarge(ProtocolError):
    """A frame, received or about to be sent, exceeds a limit; no memory was allocated for it."""

    def __init__(self, what: str, amount: int, amount_max: int) -> None:
        """`what`: the part that is too large; `amount`: how much it is, in bytes or buffers."""
        super().__init__(what, amount, amount_max)
        self.what, self.amount, self.amount_max = what, amount, amount_max

    def __str__(self) -> str:
        return (
            f"A frame has {self.amount:,} {self.what}, but the limit is {self.amount_max:,}. "
            "Either send less at a time, or raise the limit on the side that receives; "
            "if nothing so large was meant, the peer does not speak this protocol."
        )


@dataclasses.dataclass(frozen=True, slots=True)
class FrameLimits:
    """The largest frame that a connection accepts."""

    body_bytes_max: int = 1 << 30
    nbuffers_max: int = 1 << 16
    buffer_bytes_max: int = 1 << 40
    """For all buffers of one frame together."""

    def check(self, body_nbytes: int, nbuffers: int) -> None:
        """Raise FrameTooLarge if a frame with this header is not acceptable."""
        if body_nbytes > self.body_bytes_max:
            raise FrameTooLarge("bytes of messages", body_nbytes, self.body_bytes_max)
        if nbuffers > self.nbuffers_max:
            raise FrameTooLarge("buffers", nbuffers, self.nbuffers_max)


class Frame(NamedTuple):
    """One frame as received; it owns its memory, so it may be kept."""

    body: bytes | memoryview
    buffers: Sequence[memoryview]


def frame_head(body: bytes, buffer_lengths: Sequence[int]) -> bytes:
    """All of a frame that precedes its buffers.  Cost: one copy of `body`."""
    nbuffers = len(buffer_lengths)
    head = HEADER.pack(len(body), nbuffers)
    if nbuffers:
        head += struct.pack(f"<{nbuffers}Q", *buffer_lengths)
    return head + body


class FrameReader:
    """Cuts a stream of bytes into frames, however the stream was split.

    Ask `get_buffer` where the next bytes belong, put some there, and tell `buffer_updated` how
    many.  `allocate(nbytes)` returns a writable buffer of at least one byte; it is asked for one
    buffer at a time, when the bytes before that buffer have arrived.

    `scratch`, of SCRATCH_NBYTES, may be shared by all readers of one thread: nothing stays in it
    after `buffer_updated`, so that ten thousand idle connections cost nothing.

    A reader that raised is of no further use: the stream has lost its frame boundaries.
    """

    __slots__ = (
        "_allocate",
        "_body",
        "_body_nbytes",
        "_buffers",
        "_end",
        "_filled",
        "_lengths",
        "_limits",
        "_nbuffers",
        "_rest",
        "_scratch",
        "_stage",
        "_start",
        "_target",
        "_wanted",
    )

    def __init__(
        self,
        limits: FrameLimits | None = None,
        allocate: Callable[[int], Buffer] = bytearray,
        scratch: bytearray | None = None,
    ) -> None:
        self._limits = limits or FrameLimits()
        self._allocate = allocate
        self._scratch = memoryview(scratch or bytearray(SCRATCH_NBYTES))
        self._start = 0  # while parsing, the scratch holds unread bytes from here ...
        self._end = 0  # ... to here
        self._rest = b""  # between two calls, the part of an item that has arrived
        self._target: memoryview | None = None  # memory of its own for the item being read
        self._filled = 0  # bytes of the target that have arrived
        self._stage = _READ_HEADER
        self._wanted = HEADER.size  # bytes of the item being read
        self._body_nbytes = 0
        self._nbuffers = 0
        self._body: bytes | memoryview = b""
        self._lengths: tuple[int, ...] = ()
        self._buffers: list[memoryview] = []

    @property
    def at_boundary(self) -> bool:
        """Whether the stream may end here without cutting a frame in two."""
        return self._stage == _READ_HEADER and not self._rest and self._target is None

    def get_buffer(self) -> memoryview:
        """Where to put the next bytes; never empty, and valid until `buffer_updated`."""
        target = self._target
        if target is not None:
            return target[self._filled :]
        rest = self._rest
        if not rest:
            return self._scratch
        nbytes = len(rest)
        self._scratch[:nbytes] = rest
        return self._scratch[nbytes:]

    def buffer_updated(self, nbytes: int) -> list[Frame]:
        """The frames completed by the `nbytes` that were just put into `get_buffer`.

        Raises:
            FrameTooLarge: a header announces more than the limits allow.

        Cost: under 1 us for each small frame, one copy of its body included.
        """
        frames: list[Frame] = []
        target = self._target
        if target is not None:
            self._filled += nbytes
            if self._filled == len(target):
                self._target = None
                self._take(target, frames)
                self._start = self._end = 0
                self._parse(frames)  # what follows may be empty, and so complete
            return frames
        self._start, self._end = 0, len(self._rest) + nbytes
        self._parse(frames)
        self._rest = (
            bytes(self._scratch[self._start : self._end]) if self._start < self._end else b""
        )
        return frames

    def _parse(self, frames: list[Frame]) -> None:
        """Read items until the scratch, or the chance to complete one, is used up."""
        scratch, unpack = self._scratch, HEADER.unpack_from
        body_bytes_max = self._limits.body_bytes_max
        while True:
            start = self._start
            available = self._end - start
            if self._stage == _READ_HEADER and available >= 8:
                # The path of nearly all frames: small, complete, without buffers.
                body_nbytes, nbuffers = unpack(scratch, start)
                if not nbuffers and body_nbytes <= available - 8 and body_nbytes <= body_bytes_max:
                    self._start = end = start + 8 + body_nbytes
                    frames.append(Frame(bytes(scratch[start + 8 : end]), _NO_BUFFERS))
                    continue
            wanted = self._wanted
            if available >= wanted:
                self._start = start + wanted
                if self._stage == _READ_BUFFER:
                    item = self._memory(wanted)
                    item[:] = scratch[start : start + wanted]
                else:
                    item = memoryview(bytes(scratch[start : start + wanted]))
                self._take(item, frames)
                continue
            if wanted - available >= DIRECT_NBYTES or wanted > SCRATCH_NBYTES:
                self._read_directly(available)
            return

    def _read_directly(self, available: int) -> None:
        """Give the item being read its own memory, beginning with what the scratch has of it."""
        if self._stage == _READ_BUFFER:
            target = self._memory(self._wanted)
        else:
            target = memoryview(bytearray(self._wanted))
        target[:available] = self._scratch[self._start : self._end]
        self._start = self._end = 0
        self._target = target
        self._filled = available

    def _memory(self, nbytes: int) -> memoryview:
        if not nbytes:
            return memoryview(bytearray())
        return memoryview(self._allocate(nbytes)).cast("B")[:nbytes]

    def _take(self, item: memoryview, frames: list[Frame]) -> None:
        """Accept a complete item, and decide which one comes next."""
        if self._stage == _READ_HEADER:
            self._body_nbytes, self._nbuffers = HEADER.unpack(item)
            self._limits.check(self._body_nbytes, self._nbuffers)
            if self._nbuffers:
                self._stage, self._wanted = _READ_LENGTHS, 8 * self._nbuffers
            else:
                self._stage, self._wanted = _READ_BODY, self._body_nbytes
            return
        if self._stage == _READ_LENGTHS:
            self._lengths = struct.unpack(f"<{self._nbuffers}Q", item)
            total = sum(self._lengths)
            if total > self._limits.buffer_bytes_max:
                raise FrameTooLarge("bytes of buffers", total, self._limits.buffer_bytes_max)
            self._stage, self._wanted = _READ_BODY, self._body_nbytes
            return
        if self._stage == _READ_BODY:
            self._body = item
        else:
            self._buffers.append(item)
        nread = len(self._buffers)
        if nread < self._nbuffers:
            self._stage, self._wanted = _READ_BUFFER, self._lengths[nread]
            return
        frames.append(Frame(self._body, self._buffers))
        self._stage, self._wanted, self._nbuffers = _READ_HEADER, HEADER.size, 0
        self._body, self._buffers, self._lengths = b"", [], ()
