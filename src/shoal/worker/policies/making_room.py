"""Something waits for room: what is done about that, and for how long is it waited?

What is free is given back first, then results are written; as long as something goes on that may
leave room, that is waited for; and where it doesn't help, or nothing ends, who waits is let in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from shoal.worker.model.entities import NEVER

TRIM_BYTES: Final = 16 << 20
"""If the C library may keep more than this it is asked to give it back."""

TRIM_PAUSE_SECONDS: Final = 0.1
"""Between two such requests: each takes some milliseconds for 100 MB."""

SENDING_SECONDS_MAX: Final = 2.0
"""What waits for room waits so long for values that are being sent, where nothing else goes on."""

STANDSTILL_SECONDS: Final = 10.0
"""So long nothing ends and nothing works, before what waits for room is let in all the same: a run
may be waiting for just that, by an event or a lock of which nobody here knows."""

WORKING_SHARE: Final = 0.05
"""Of one processor: whoever takes more of it works."""


class Sight(Protocol):
    """What there is to be seen of a worker where something waits; only what matters is asked."""

    @property
    def lacking_bytes(self) -> int:
        """For the first of those that wait."""

    @property
    def leaving_bytes(self) -> int:
        """Of results that are being written to disk, or freed."""

    def other_bytes(self) -> int:
        """Of the process: what is neither a result, nor a run's, nor on its way."""

    def is_under_way(self) -> bool:
        """Whether anything goes on that may leave room as it ends."""

    def under_way(self) -> tuple[object, ...]:
        """What that is; as long as this is the same, nothing has ended."""

    def worked_seconds(self) -> float:
        """Of a processor, that the process has had."""

    def is_sending(self) -> bool:
        """Whether values are on their way to others that may not be kept any more."""


@dataclass(frozen=True, slots=True)
class Deed:
    """One thing to be done."""

    trims: bool = False  # what is free is to be given back
    write_bytes: int = 0  # of results, beside those that leave anyway
    lets_in: bool = False  # the first that waits
    is_overdue: bool = False  # it is let in though something is under way


class RoomMaking:
    """Chooses, time after time.  Times are seconds of one monotonic clock."""

    __slots__ = (
        "_needed_bytes",
        "_sending_until",
        "_stands",
        "_stands_since",
        "_trim_at",
        "_worked_before",
    )

    def __init__(self) -> None:
        self._needed_bytes = NEVER  # the least that was there, and was not to be given back
        self._trim_at = 0.0
        self._sending_until = 0.0  # is waited for what is being sent; 0: nobody waits for that
        self._stands: tuple[object, ...] = ()  # what was under way when something last went on
        self._stands_since = self._worked_before = 0.0  # and when that was

    def looked(self, other_bytes: int) -> None:
        """So much of the process was neither a result, nor a run's, nor on its way."""
        self._needed_bytes = min(self._needed_bytes, other_bytes)

    def trimmed(self, other_bytes: int) -> None:
        """What is there now can't be given back."""
        self._needed_bytes = other_bytes

    def choose(self, seen: Sight, now: float, *, may_write: bool = True) -> Deed | None:
        """What is to be done next; None: nothing but to wait.

        Args:
            may_write: False: it was just asked for, and there was nothing that could be.
        """
        if may_write:
            if self._trims(seen.other_bytes(), now):
                return Deed(trims=True)
            wanted = seen.lacking_bytes - seen.leaving_bytes
            if wanted > 0:
                return Deed(write_bytes=wanted)
        is_under_way = seen.is_under_way()
        if seen.leaving_bytes or (is_under_way and not self._stands_still(seen, now)):
            return None
        if not is_under_way and self._waits_for_sending(seen, now):
            return None
        return Deed(lets_in=True, is_overdue=is_under_way)

    def _trims(self, other_bytes: int, now: float) -> bool:
        """Whether what is free may be much."""
        if now < self._trim_at or other_bytes - self._needed_bytes < TRIM_BYTES:
            return False
        self._trim_at = now + TRIM_PAUSE_SECONDS
        return True

    def _stands_still(self, seen: Sight, now: float) -> bool:
        """Whether what is under way has neither ended nor worked for long."""
        worked, stands = seen.worked_seconds(), seen.under_way()
        seconds = now - self._stands_since
        works = worked - self._worked_before > WORKING_SHARE * max(seconds, 1.0)
        if stands != self._stands or works:
            self._stands, self._stands_since, self._worked_before = stands, now, worked
            return False
        if seconds < STANDSTILL_SECONDS:
            return False
        self._stands_since, self._worked_before = now, worked  # the next one waits as long
        return True

    def _waits_for_sending(self, seen: Sight, now: float) -> bool:
        """Whether what is being sent may leave room: for a while, as a peer may be frozen."""
        if not seen.is_sending():
            self._sending_until = 0.0
            return False
        if not self._sending_until:
            self._sending_until = now + SENDING_SECONDS_MAX
        return now < self._sending_until
