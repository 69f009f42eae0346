"""How many strangers may stand at the door, and how often the log speaks of one of them."""

from __future__ import annotations

import collections
import dataclasses
import logging
from typing import Final

logger = logging.getLogger("shoal.comms")

LOG_INTERVAL_SECONDS: Final = 10.0
_REMEMBERED_MAX: Final = 1024


@dataclasses.dataclass(frozen=True, slots=True)
class AdmissionLimits:
    """What an unauthenticated peer may take of a listener."""

    unauthenticated_max: int = 512
    unauthenticated_per_host_max: int = 64
    """For each IP address; processes of our own user on this host, over Unix, are exempt."""
    handshake_seconds: float = 5.0


class Admission:
    """Counts the peers of one listener whose handshake is under way."""

    __slots__ = ("_nby_host", "_nwaiting", "limits")

    def __init__(self, limits: AdmissionLimits) -> None:
        self.limits = limits
        self._nwaiting = 0
        self._nby_host: collections.Counter[str] = collections.Counter()

    def enter(self, host: str) -> bool:
        """Count one more from `host` (empty: not limited by host); False if it must go."""
        if self._nwaiting >= self.limits.unauthenticated_max:
            return False
        if host:
            if self._nby_host[host] >= self.limits.unauthenticated_per_host_max:
                return False
            self._nby_host[host] += 1
        self._nwaiting += 1
        return True

    def leave(self, host: str) -> None:
        """The handshake of one that had entered is over."""
        self._nwaiting -= 1
        if host:
            self._nby_host[host] -= 1
            if not self._nby_host[host]:
                del self._nby_host[host]


class RateLimitedLog:
    """At most one line per subject in ten seconds, so that nobody can fill the disk."""

    __slots__ = ("_at_by_subject",)

    def __init__(self) -> None:
        self._at_by_subject: dict[str, float] = {}

    def warning(self, now: float, subject: str, text: str, *arguments: object) -> None:
        """Log `text` unless `subject` was spoken of lately.  `now`: seconds, any clock."""
        last_at = self._at_by_subject.pop(subject, None)
        quiet = last_at is not None and now - last_at < LOG_INTERVAL_SECONDS
        self._at_by_subject[subject] = last_at if last_at is not None and quiet else now
        if len(self._at_by_subject) > _REMEMBERED_MAX:
            del self._at_by_subject[next(iter(self._at_by_subject))]  # the one not seen longest
        if not quiet:
            logger.warning(text, *arguments)
