"""Values to a stream that is written as it is made, and back from one that is read as it is needed.

What `payload.dump` makes in one piece comes out of here bit by bit: a frame of a million texts is
never there twice, and other threads have their turns between two bits, which they have not while
one call of pickle's makes, or reads, the whole stream.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from shoal.protocol import payload, ways
from shoal.protocol.teaching import (
    BETTER_NAMES,
    MAIN,
    PROTOCOL,
    has_better_way,
    holds_copies,
    is_by_value,
    pickling,
)

if TYPE_CHECKING:
    from typing_extensions import Buffer

STREAMED_NBYTES_MIN: Final = 1 << 20
"""A shorter stream is read by one call, which is over before anybody notices."""

_NO_FRAMES: Final = frozenset((bytes, bytearray, memoryview))


class Sink(Protocol):
    """Takes a stream."""

    def write(self, part: bytes) -> object:
        """The next part of it."""

    def restart(self) -> None:
        """All that was written is void."""


class _Undecided(Exception):
    """The stream names what has to go another way."""


class _Watched:
    """A stream on its way to a sink; what the sink raises is told apart from a pickler's errors."""

    __slots__ = ("error", "sink")

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self.error: BaseException | None = None

    def write(self, part: Any) -> int:
        if type(part) is bytes and (MAIN in part or holds_copies(part)):
            raise _Undecided
        try:
            self.sink.write(part)
        except BaseException as error:
            self.error = error
            raise
        return len(part)


def dump_stream(value: object, sink: Sink) -> list[Buffer]:
    """Write `value` to the sink, but for its large buffers, which still are the memory of `value`.

    Raises:
        Exception: as `payload.dump`, and what the sink raises.
    """
    if type(value) in _NO_FRAMES or is_by_value():
        return _dump_whole(value, sink)
    buffers: list[Buffer] = []

    def in_band(buffer: pickle.PickleBuffer) -> bool:
        try:
            raw = buffer.raw()
        except BufferError:
            return True
        if raw.nbytes < payload.OUT_OF_BAND_NBYTES_MIN or len(buffers) >= payload.NBUFFERS_MAX:
            return True
        buffers.append(raw)
        return False

    make = pickling.Pickler
    if type(value).__name__ in BETTER_NAMES:
        if has_better_way(value):
            make = ways.family_pickler
        else:
            value = _in_one_piece(value)
    stream = _Watched(sink)
    try:
        make(stream, PROTOCOL, buffer_callback=in_band).dump(value)
    except BaseException as error:
        if stream.error is not None:
            raise stream.error from None
        if not isinstance(error, Exception):
            raise
        sink.restart()  # cloudpickle, or a family of types, can do more
        return _dump_whole(value, sink)
    return buffers


def load_stream(stream: Buffer, buffers: Sequence[Buffer]) -> object:
    """What `dump_stream` made these of; it lives in the memory of `buffers`.

    Raises:
        BaseException: whatever the value's own code raises.
    """
    if memoryview(stream).nbytes < STREAMED_NBYTES_MIN:
        return payload.load(bytes(stream), buffers)
    return pickle.Unpickler(_Reader(stream), buffers=buffers).load()


def as_message(stream: Buffer, buffers: Sequence[Buffer]) -> tuple[bytes, list[Buffer]]:
    """The same as header and buffers, as `payload.dump` would give it."""
    if memoryview(stream).nbytes < payload.OUT_OF_BAND_NBYTES_MIN:
        return bytes(stream), list(buffers)
    return payload.split(cast(bytes, stream), list(buffers))


def _dump_whole(value: object, sink: Sink) -> list[Buffer]:
    stream, buffers = payload.dump(value)
    sink.write(stream)
    return buffers


def _in_one_piece(value: Any) -> Any:
    """An array that does not lie in one piece, copied by numpy, which lets other threads run."""
    if type(value).__name__ != "ndarray" or type(value).__module__ != "numpy":
        return value
    if value.dtype.hasobject or value.flags.c_contiguous or value.flags.f_contiguous:
        return value
    return value.copy(order="K")


class _Reader:
    """A stream in memory that is read as a file is, by code that other threads can interrupt."""

    __slots__ = ("_at", "_stream")

    def __init__(self, stream: Buffer) -> None:
        self._stream = memoryview(stream)
        self._at = 0

    def read(self, nbytes: int) -> bytes:
        start = self._at
        self._at = start + nbytes
        return bytes(self._stream[start : self._at])

    def readinto(self, room: Any) -> int:
        nbytes = len(room)
        room[:] = self._stream[self._at : self._at + nbytes]
        self._at += nbytes
        return nbytes

    def readline(self) -> bytes:
        """Of protocols that nobody writes any more."""
        rest = bytes(self._stream[self._at :])
        line = rest[: rest.index(b"\n") + 1]
        self._at += len(line)
        return line
