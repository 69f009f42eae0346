"""Memory that tasks have freed goes back to the system, now and then and not with every array.

The C library keeps freed memory for the next array, which then costs no page faults: at 2 us for
each 4 kB, computations on arrays of some 100 kB took half as long again with a library that was
told to keep nothing.  But what it keeps, no other process can have.
"""

from __future__ import annotations

from typing import Final

KEPT_IDLE_BYTES: Final = 128 << 20
"""What an idle worker keeps beyond the least that it was seen to need besides its results."""
KEPT_BUSY_BYTES: Final = 1 << 30
"""The same of one that is at work, which would soon have to ask for it again."""


KEPT_OF_LIMIT: Final = 8
"""Neither is more than this part, an eighth, of what the process may have."""


class Trimming:
    """Decides when it is time, from what is seen again and again."""

    def __init__(self, limit: int = 0) -> None:
        """`limit`: what the process may have (bytes); 0: there is none."""
        most = limit // KEPT_OF_LIMIT or KEPT_BUSY_BYTES
        self._idle_bytes = min(KEPT_IDLE_BYTES, most)
        self._busy_bytes = min(KEPT_BUSY_BYTES, most)
        self._needed_bytes: int | None = None  # besides results, as far as is known
        self._was_due = False

    def is_due(self, rss_bytes: int, held_bytes: int, *, is_idle: bool) -> bool:
        """Whether to give memory back now.

        Args:
            rss_bytes: resident memory of the process.
            held_bytes: of that, the results.
        """
        beyond = rss_bytes - held_bytes
        needed = self._needed_bytes
        if needed is None or beyond < needed or self._was_due:
            self._needed_bytes = beyond  # right after it was done, nothing more can be given
            self._was_due = False
        else:
            self._was_due = beyond - needed > (self._idle_bytes if is_idle else self._busy_bytes)
        return self._was_due


def give_back() -> bool:
    """Have the C library give back what it can; whether it knows how.  Some ms per 100 MB."""
    import ctypes  # when it is needed for the first time, and not by every worker

    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return False
    trim(0)
    return True
