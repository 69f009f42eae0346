"""The locks of one client in the simulation: it claims, keeps each for a while, and lets go."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Protocol

from shoal.protocol.answers import Answer
from shoal.protocol.coordination import (
    AcquireJointly,
    AcquireLock,
    ReleaseJointly,
    ReleaseLock,
)
from shoal.protocol.directions import answered
from shoal.protocol.messages import Message
from shoal.sim.plan import Act, HoldLock


class Calls(Protocol):
    """How a client calls its scheduler."""

    def __call__(
        self, act: Act, make: Callable[[int], Message], answered: Callable[[int, Answer], None], /
    ) -> None:
        """See `ClientActor.call`."""


class Locking:
    """What one client claims and holds; each claim has the number of its request."""

    def __init__(
        self,
        call: Calls,
        say: Callable[[Message], None],
        after: Callable[[float, Callable[[], None]], None],
        is_held: Callable[[str], None],
    ) -> None:
        """Nothing is held.

        Args:
            call: how to ask the scheduler.
            say: how to tell it something.
            after: some seconds do something, if the client is there.
            is_held: to be told the name of each lock that is granted.
        """
        self._call = call
        self._say = say
        self._after = after
        self._is_held = is_held
        self._waiting: dict[int, HoldLock] = {}  # neither answered nor given up
        self.holding: dict[str, int] = {}  # the claim by the lock's name

    def hold(self, act: HoldLock) -> None:
        """Claim a lock, unless it is held already: nobody waits for himself."""
        if not any(name in self.holding for name in _names_of(act)):
            self._call(act, lambda request: self._claim(act, request), self._answered)

    def _claim(self, act: HoldLock, number: int) -> Message:
        """Ask for the lock; wait no longer than the act says."""
        self._waiting[number] = act
        if 0 < act.patience_seconds < inf:
            self._after(act.patience_seconds, lambda: self._give_up(act, number))
        waits = act.patience_seconds > 0
        if act.others:
            names = [act.name, *act.others]
            return AcquireJointly(number, names, number, len(names), waits)
        return AcquireLock(number, act.name, number, waits)

    def _answered(self, number: int, answer: Answer) -> None:
        """If it is granted it is held now; but not if its claim was given up meanwhile."""
        granted = answered(AcquireLock, answer)
        act = self._waiting.pop(number, None)
        if act is None or not granted:
            return
        for name in _names_of(act):
            assert name not in self.holding, f"two claims hold the lock {name!r}"
            self.holding[name] = number
            self._is_held(name)
        self._after(act.seconds, lambda: self._let_go(act, number))

    def _give_up(self, act: HoldLock, number: int) -> None:
        if self._waiting.pop(number, None) is not None:
            self._say(_release(act, number))

    def _let_go(self, act: HoldLock, number: int) -> None:
        for name in _names_of(act):
            del self.holding[name]
        self._say(_release(act, number))


def _names_of(act: HoldLock) -> list[str]:
    """What is held; joint locks are others than those that are held alone."""
    return [f"joint {name}" for name in (act.name, *act.others)] if act.others else [act.name]


def _release(act: HoldLock, number: int) -> Message:
    return ReleaseJointly(number) if act.others else ReleaseLock(act.name, number)
