"""The locks of one client in the simulation: it claims, keeps each for a while, and lets go."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from shoal.protocol.calls import AcquireLock
from shoal.protocol.messages import Message, ReleaseLock
from shoal.sim.plan import HoldLock


class Locking:
    """What one client claims and holds; each claim has the number of its request."""

    def __init__(
        self, say: Callable[[Message], None], after: Callable[[float, Callable[[], None]], None]
    ) -> None:
        """`say` to the scheduler; `after` some seconds do something, if the client is there."""
        self._say = say
        self._after = after
        self._waiting: dict[int, HoldLock] = {}  # neither answered nor given up
        self.holding: dict[str, int] = {}  # the claim by the lock's name

    def claim(self, act: HoldLock, number: int) -> None:
        """Ask for the lock; wait no longer than the act says."""
        self._waiting[number] = act
        self._say(AcquireLock(number, act.name, number, waits=act.patience_seconds > 0))
        if 0 < act.patience_seconds < inf:
            self._after(act.patience_seconds, lambda: self._give_up(act, number))

    def answered(self, act: HoldLock, number: int, *, granted: bool) -> bool:
        """Whether the lock is held now; a grant that comes after its claim was given up is not."""
        if self._waiting.pop(number, None) is None or not granted:
            return False
        assert act.name not in self.holding, f"two claims hold the lock {act.name!r}"
        self.holding[act.name] = number
        self._after(act.seconds, lambda: self._let_go(act.name, number))
        return True

    def _give_up(self, act: HoldLock, number: int) -> None:
        if self._waiting.pop(number, None) is not None:
            self._say(ReleaseLock(act.name, number))

    def _let_go(self, name: str, number: int) -> None:
        del self.holding[name]
        self._say(ReleaseLock(name, number))
