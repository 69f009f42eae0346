"""Room is made for what waits for it: what is chosen is begun, one thing after another, until all
that is left is to wait.

Whose memory it is, a worker's or a simulated one's, is known to the hands alone.
"""

from __future__ import annotations

from typing import Protocol

from shoal.worker.policies.making_room import RoomMaking, Sight


class Hands(Sight, Protocol):
    """What sees a worker, and does one thing about its memory at a time."""

    def trim(self) -> None:
        """Begin to give back what is free; `trimmed` is to be called once that has been done."""

    def write(self, nbytes: int) -> int:
        """Begin to write so many bytes of results, beside those that leave anyway; how many bytes
        that will be."""

    def let_in(self, *, is_overdue: bool) -> None:
        """The first that waits comes in, and what follows from that is done."""


class RoomMaker:
    """Has room made in one worker's memory."""

    __slots__ = ("_hands", "_making", "is_making", "is_trimming")

    def __init__(self, hands: Hands) -> None:
        self._hands = hands
        self._making = RoomMaking()
        self.is_making = False
        self.is_trimming = False
        """Whether what is free is about to be given back."""

    def looked(self, other_bytes: int) -> None:
        """So much of the process was neither a result, nor a run's, nor on its way."""
        self._making.looked(other_bytes)

    def trimmed(self) -> None:
        """What was free has been given back; what is there now can't be."""
        self.is_trimming = False
        self._making.trimmed(self._hands.other_bytes())

    def make(self, now: float) -> None:
        """Something waits for room: begin what makes some, or else have it let in.

        `now`: seconds of a monotonic clock.
        """
        if self.is_making:
            return
        self.is_making = True  # what is begun here comes here as well
        try:
            while self._begins_something(now):
                continue
        finally:
            self.is_making = False

    def _begins_something(self, now: float) -> bool:
        """Whether something was begun, and more may have to be."""
        hands = self._hands
        if not hands.lacking_bytes or self.is_trimming:
            return False
        deed = self._making.choose(hands, now)
        if deed is not None and deed.write_bytes:
            if hands.write(deed.write_bytes):
                return True
            deed = self._making.choose(hands, now, may_write=False)
        if deed is None:
            return False
        if deed.trims:
            self.is_trimming = True
            hands.trim()
        else:
            hands.let_in(is_overdue=deed.is_overdue)
        return False
