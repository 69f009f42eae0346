"""Which workers that could go may, by now; time is an argument.

A worker goes once it could have gone in several looks in a row, and for as long as the start of one
takes: whoever lets it go sooner may pay for another start with less than was saved.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from typing import Any, Final

START_SECONDS_MAX: Final = 600.0
"""No worker is kept for longer, however long starts take."""

KEPT_SHARE: Final = 0.5
"""Of what was known of starts, in what is known after a quicker one."""


class Ripening:
    """How often in a row, and since when, each worker could go; and how long starts take.

    Cost: O(names) for each call.
    """

    def __init__(self) -> None:
        self.start_seconds = 0.0
        """What the start of a worker takes, as far as that was seen: a high estimate."""
        self.nlooks: dict[Any, int] = {}
        """Worker that could go → in how many looks in a row."""
        self._since: dict[Any, float] = {}
        self._asked_at: dict[Any, float] = {}

    def note(self, now: float, wanted: Iterable[Any], observed: Collection[Any]) -> None:
        """See who is there, so that it is known how long starts take.

        Args:
            now: seconds; of a clock that only goes on.
            wanted: names of all that are there or were asked for.
            observed: names of those that are there.
        """
        asked_at: dict[Any, float] = {}
        for name in dict.fromkeys(wanted):
            if name not in observed:
                asked_at[name] = self._asked_at.get(name, now)
            elif name in self._asked_at:
                self._learn(now - self._asked_at[name])
        self._asked_at = asked_at

    def _learn(self, seconds: float) -> None:
        seconds = min(seconds, START_SECONDS_MAX)
        kept = self.start_seconds * KEPT_SHARE + seconds * (1 - KEPT_SHARE)
        self.start_seconds = max(seconds, kept)

    def ripe(
        self,
        now: float,
        could_go: Iterable[Hashable],
        observed: Collection[Any],
        nlooks_min: int,
    ) -> list[Any]:
        """Of those that could go, the ones that may; any that is not named begins anew.

        One that was asked for and is not there yet costs no start when it goes: it does not wait
        for as long.

        Args:
            nlooks_min: looks in a row in which it could go, this one included.
        """
        names = list(dict.fromkeys(could_go))
        self.nlooks = {name: self.nlooks.get(name, 0) + 1 for name in names}
        self._since = {name: self._since.get(name, now) for name in names}
        return [
            name
            for name in names
            if self.nlooks[name] >= nlooks_min
            and (name not in observed or now - self._since[name] >= self.start_seconds)
        ]

    def seconds_left(self, now: float) -> float:
        """Until the first of those that could go has been spare for long enough; 0: none waits."""
        ends = [since + self.start_seconds - now for since in self._since.values()]
        return max(0.0, min(ends, default=0.0))

    def start_anew(self) -> None:
        """None could go."""
        self.nlooks, self._since = {}, {}
