"""What one side of a stream has sent, and may have to send again."""

from __future__ import annotations

import collections
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from shoal.protocol.framing import ProtocolError

if TYPE_CHECKING:
    from typing_extensions import Buffer

KEPT_BYTES_MAX: Final = 64_000_000
"""If more is on its way, the stream ends with its connection: results that travel this way are
large, and are not kept from leaving memory for the sake of a break that may never come."""
ASK_BYTES: Final = 1 << 20
"""After so much the other side is asked what has arrived."""
FRAME_BYTES: Final = 1 << 12
"""What a frame counts for beside its bytes in that: 256 small ones are asked about as well."""


KeptFrame: TypeAlias = "tuple[int, int, bytes, msgspec.Struct | None, Sequence[Buffer]]"
"""One frame as it was sent: how many messages, its bytes, its body; or, if it has buffers, its one
message and those.  A plain tuple, as one is made for each frame."""


class Unacknowledged:
    """Frames that were sent and may not have arrived.  Messages are counted from 1; no I/O."""

    __slots__ = (
        "_bytes_max", "_due", "_first", "_frames", "ask_bytes", "nacknowledged", "nbytes", "nsent",
    )  # fmt: skip

    def __init__(self, bytes_max: int = KEPT_BYTES_MAX, ask_bytes: float = ASK_BYTES) -> None:
        self._bytes_max, self.ask_bytes = bytes_max, ask_bytes
        self._frames: collections.deque[KeptFrame] = collections.deque()
        self._first = 0  # messages that were sent before the first that is kept
        self._due = 0  # bytes until the other side is asked, counted upwards
        self.nsent = 0
        self.nacknowledged = 0
        self.nbytes = 0

    def __len__(self) -> int:
        return len(self._frames)

    @property
    def is_complete(self) -> bool:
        """Whether all that may not have arrived is kept."""
        return self._first <= self.nacknowledged

    def keep(self, frame: KeptFrame) -> bool:
        """Keep what is being sent; whether the other side should be asked what has arrived.

        Cost: 0.2 us.
        """
        nbytes = frame[1]
        self.nsent += frame[0]
        self.nbytes += nbytes
        self._frames.append(frame)
        if self.nbytes > self._bytes_max:
            self._frames.clear()
            self._first, self.nbytes = self.nsent, 0
        self._due += nbytes + FRAME_BYTES
        if self._due < self.ask_bytes:
            return False
        self._due = 0
        return True

    def stop(self) -> None:
        """Keep nothing from now on: there will be nobody to send it to again."""
        self._frames.clear()
        self._bytes_max, self.ask_bytes = -1, math.inf
        self._first, self.nbytes = self.nsent, 0

    def acknowledge(self, nreceived: int) -> None:
        """The other side has so many messages.

        Raises:
            ProtocolError: it can't.
        """
        if not self.nacknowledged <= nreceived <= self.nsent:
            raise ProtocolError(
                f"{nreceived} messages are said to have arrived, of {self.nsent} that were sent "
                f"and {self.nacknowledged} that had arrived before"
            )
        self.nacknowledged = nreceived
        frames = self._frames
        while frames and self._first + frames[0][0] <= nreceived:
            nmessages, nbytes, *_ = frames.popleft()
            self._first += nmessages
            self.nbytes -= nbytes

    def lacking(self, nreceived: int) -> list[KeptFrame] | None:
        """What to send again to a side that has so many messages; None if that is impossible.

        A frame arrives as a whole or not at all.
        """
        try:
            self.acknowledge(nreceived)
        except ProtocolError:
            return None
        if self._first != nreceived:
            return None  # not all of it is kept, or a frame was cut
        return list(self._frames)
