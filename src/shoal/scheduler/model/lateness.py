"""How late the scheduler is with what is due: the worst of the last seconds."""

from typing import Final

KEPT_SECONDS: Final = 10.0
"""How long a lateness is remembered, unless a worse one follows."""


class Lateness:
    """Noted whenever time has come for something, so it costs nothing while nothing is due."""

    __slots__ = ("at", "seconds")

    def __init__(self) -> None:
        self.seconds = 0.0
        self.at = 0.0  # s, monotonic

    def note(self, seconds: float, now: float) -> None:
        """Something is done so long after it was due."""
        if seconds >= self.seconds or now > self.at + KEPT_SECONDS:
            self.seconds, self.at = seconds, now

    def latest(self, now: float) -> float:
        """The worst of the last seconds (s)."""
        return self.seconds if now <= self.at + KEPT_SECONDS else 0.0
