"""The side of streams that accepts: those that there are, and who comes back to which."""

from __future__ import annotations

from collections.abc import Mapping

from shoal.comms.errors import ProtocolError
from shoal.comms.streams import MARK, Carrier, Stream
from shoal.protocol.streams import (
    BeginStream,
    ResumeStream,
    StreamBegun,
    StreamForgotten,
    StreamResumed,
)


class AcceptedStream(Stream):
    """See `Stream`.  After a break it waits to be resumed."""

    def __init__(
        self, carrier: Carrier, name: bytes, window_seconds: float, streams: Streams
    ) -> None:
        super().__init__(carrier, window_seconds)
        self._name, self._streams = name, streams
        self._say(carrier, StreamBegun(window_seconds))

    def _wait_for_another(self) -> None:
        """Nothing: whoever dialled comes back, or patience ends."""

    def _let_go(self) -> None:
        self._streams.forget(self._name)

    def resume(self, carrier: Carrier, nreceived: int) -> bool:
        """Whoever dialled has come back by `carrier`, with so many of our messages.

        Perhaps before we have noticed the break.  False: what he lacks is not here any more.
        """
        if self.closed:
            return False
        with self._lock:
            lacking = self._sent.lacking(nreceived)
            if lacking is None:
                return False
            before = self._carrier
            self._go_on(carrier, lacking, StreamResumed(self._nreceived))
        if before is not None:
            before.abort()  # nothing that comes by it is heard any more
        self._resumed(carrier)
        return True


class Streams:
    """The streams of one service that have not ended."""

    def __init__(self, window_seconds_by_role: Mapping[str, float]) -> None:
        """How long a break is waited out, by who it is with; 0: not at all."""
        self._window_seconds_by_role = window_seconds_by_role
        self._stream_by_name: dict[bytes, AcceptedStream] = {}

    def __len__(self) -> int:
        return len(self._stream_by_name)

    def begin(self, carrier: Carrier, word: BeginStream) -> AcceptedStream | None:
        """A new stream; None if this is to end with its connection, which its owner keeps.

        Raises:
            ProtocolError: there is one of this name.
        """
        if word.name in self._stream_by_name:
            raise ProtocolError(f"{carrier.peer_address} begins a stream that there is already")
        allowed_seconds = self._window_seconds_by_role.get(carrier.role, 0.0)
        window_seconds = max(0.0, min(word.window_seconds, allowed_seconds))
        if not window_seconds:
            carrier.send_with_buffers(StreamBegun(0.0), MARK)
            return None
        stream = AcceptedStream(carrier, word.name, window_seconds, self)
        self._stream_by_name[word.name] = stream
        return stream

    def resume(self, carrier: Carrier, word: ResumeStream) -> bool:
        """Have `carrier` carry on a stream; False if there is none, and it has been told so."""
        stream = self._stream_by_name.get(word.name)
        if stream is not None and stream.role == carrier.role:
            if stream.resume(carrier, word.nreceived):
                return True
            stream.abort()
        carrier.send_with_buffers(StreamForgotten(), MARK)
        carrier.close()
        return False

    def forget(self, name: bytes) -> None:
        """A stream has ended."""
        self._stream_by_name.pop(name, None)
