"""Which threads of a worker have a slot: as many as it may run tasks at once, and no more.

Those whose tasks wait for others, or have seceded, have none, and a substitute each.  Who wants a
slot back is given the next that is free, before any task that has not begun.
"""

from __future__ import annotations

import threading
from typing import Final


class Slots:
    """Counts threads by what they are at.  All methods are called with `lock` held."""

    def __init__(self, nslots: int) -> None:
        """`nslots`: how many threads may run tasks at once."""
        self.lock: Final = threading.Lock()
        self.nslots = nslots
        self.nalive = 0  # threads
        self.nwaiting = 0  # of them: their tasks wait for others
        self.nsurplus = 0  # that shall end as soon as they are through with a job
        self.some_leave = False
        """Whether a thread that is through with its job may have to end; read without the lock."""
        self._seceded: dict[int, None] = {}  # numbers of threads
        self._rejoining: dict[int, threading.Event] = {}  # of them, who waits the longest first

    def has_seceded(self, number: int) -> bool:
        """Whether a thread goes on without a slot."""
        return number in self._seceded

    @property
    def nseceded(self) -> int:
        """How many go on without a slot."""
        return len(self._seceded)

    def secede(self, number: int) -> None:
        """A thread gives its slot to others, and goes on."""
        self._seceded[number] = None

    def rejoin(self, number: int) -> threading.Event:
        """A thread without a slot wants one; set once it has it."""
        return self._rejoining.setdefault(number, threading.Event())

    def let_in(self, number: int) -> None:
        """It has a slot now, whether one is free or not."""
        del self._seceded[number]
        self._rejoining.pop(number).set()

    def stop_rejoining(self, number: int) -> None:
        """It waits no longer, whether it has a slot now or not."""
        self._rejoining.pop(number, None)

    def let_all_go_on(self) -> None:
        """There will be no slots any more: nobody shall wait for one."""
        for event in self._rejoining.values():
            event.set()
        self._rejoining.clear()

    def leave(self, number: int) -> bool:
        """A thread is through with its job: whether it ends, as it is one too many.

        Others have what it had then.  One that had seceded stays, with a slot, if there was no
        thread to take its place.
        """
        if number in self._seceded:
            del self._seceded[number]
            self._rejoining.pop(number, None)
            self.settle()
        if not self.nsurplus:
            return False
        self.nalive -= 1
        self.settle()
        return True

    def lose(self, number: int) -> None:
        """A thread does not come back, and has no slot, whatever it is at."""
        self._seceded.pop(number, None)
        event = self._rejoining.pop(number, None)
        if event is not None:
            event.set()
        self.nalive -= 1

    def settle(self) -> int:
        """Give slots that are free to those who want one back; how many threads are lacking then.

        Less than none: so many are too many.
        """
        seceded, rejoining = self._seceded, self._rejoining
        nfree = self.nslots - (self.nalive - self.nwaiting - len(seceded))
        while nfree > 0 and rejoining:
            number = next(iter(rejoining))
            del seceded[number]
            rejoining.pop(number).set()
            nfree -= 1
        nlacking = nfree - len(rejoining)
        self.nsurplus = max(0, -nlacking)
        self.some_leave = bool(self.nsurplus or seceded)
        return nlacking
