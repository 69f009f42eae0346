"""What one client puts into a queue in the simulation, and takes out of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shoal.protocol.answers import Answer
from shoal.protocol.coordination import EndPut, EndTake, PutInQueue, TakeFromQueue
from shoal.protocol.directions import answered
from shoal.protocol.messages import Message
from shoal.sim.locking import Calls
from shoal.sim.plan import Trade

SIZE_MAX = 2
"""Of every queue; whoever puts more has to wait."""


class Trades:
    """What became of the values of all queues, in one life of the scheduler."""

    def __init__(self) -> None:
        self.given: dict[str, None] = {}  # those that are known to be in a queue, or were
        self.taken: dict[str, str] = {}  # -> the client that has had it last


class Trading:
    """What one client gives and takes; each claim has the number of its request."""

    def __init__(
        self,
        name: str,
        call: Calls,
        say: Callable[[Message], None],
        after: Callable[[float, Callable[[], None]], None],
        is_given: Callable[[str], None],
        are_taken: Callable[[Sequence[str]], None],
    ) -> None:
        """Nothing is under way.

        Args:
            name: of the client, never used before.
            call: how to ask the scheduler.
            say: how to tell it something.
            after: some seconds do something, if the client is there.
            is_given: to be told each value that is in a queue.
            are_taken: to be told values that have come out of one.
        """
        self._name = name
        self._call = call
        self._say = say
        self._after = after
        self._is_given = is_given
        self._are_taken = are_taken
        self._waiting: dict[int, Trade] = {}  # neither answered nor given up

    def trade(self, act: Trade) -> None:
        """Put a value, or take some; wait no longer than the act says."""
        if act.count:
            self._call(act, lambda request: self._take(act, request), self._got)
        else:
            self._call(act, lambda request: self._put(act, request), self._has_put)

    def _put(self, act: Trade, number: int) -> Message:
        self._wait(act, number)
        value = f"{self._name} {number}".encode()
        return PutInQueue(number, act.name, number, [value], size_max=SIZE_MAX)

    def _take(self, act: Trade, number: int) -> Message:
        self._wait(act, number)
        return TakeFromQueue(number, act.name, number, act.count, SIZE_MAX)

    def _wait(self, act: Trade, number: int) -> None:
        self._waiting[number] = act
        self._after(act.patience_seconds, lambda: self._give_up(act, number))

    def _give_up(self, act: Trade, number: int) -> None:
        if self._waiting.pop(number, None) is None:
            return
        if act.count:
            self._say(EndTake(act.name, number, False))
        else:
            self._say(EndPut(act.name, number))

    def _has_put(self, number: int, answer: Answer) -> None:
        """It is in the queue, even if its putter has meanwhile given up."""
        self._waiting.pop(number, None)
        if answered(PutInQueue, answer):
            self._is_given(f"{self._name} {number}")

    def _got(self, number: int, answer: Answer) -> None:
        """They are this client's, unless it has given up: then they are in the queue again."""
        act = self._waiting.pop(number, None)
        values = answered(TakeFromQueue, answer)
        if act is not None and values:
            self._are_taken([shared.value[0].decode() for shared in values])
            self._say(EndTake(act.name, number, True))
