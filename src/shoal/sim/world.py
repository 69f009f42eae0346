"""Virtual time: a heap of things to come, and nothing that ever waits."""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, TypeAlias

Action: TypeAlias = Callable[..., None]


class World:
    """What is still to happen, in order of (time, order of planning).

    An action in the *background* (a heartbeat, a look for imbalance) recurs for ever, so it does
    not count when asking whether anything is still going on.
    """

    __slots__ = ("_heap", "_order", "nforeground", "nsteps", "now")

    def __init__(self) -> None:
        self.now = 0.0
        self.nsteps = 0
        self.nforeground = 0
        self._heap: list[tuple[float, int, bool, Action, tuple[Any, ...]]] = []
        self._order = 0

    def at(self, time: float, action: Action, *arguments: Any, background: bool = False) -> None:
        """Plan `action(*arguments)` for `time`; what has passed already happens at once."""
        self._order += 1
        if not background:
            self.nforeground += 1
        when = time if time > self.now else self.now
        heappush(self._heap, (when, self._order, background, action, arguments))

    def after(
        self, seconds: float, action: Action, *arguments: Any, background: bool = False
    ) -> None:
        """Plan `action(*arguments)` for `seconds` from now."""
        self.at(self.now + seconds, action, *arguments, background=background)

    def step(self) -> bool:
        """Let the next thing happen; False if there was none."""
        if not self._heap:
            return False
        self.now, _, background, action, arguments = heappop(self._heap)
        if not background:
            self.nforeground -= 1
        self.nsteps += 1
        action(*arguments)
        return True

    @property
    def next_at(self) -> float | None:
        """When the next thing happens, or None."""
        return self._heap[0][0] if self._heap else None
