"""Whose turn it is: an actor is called by one thread at a time, and nobody waits in a circle."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Turns:
    """Turns with any number of objects; each thread may have several, and any one repeatedly.

    A thread that would wait for another which waits for it, directly or by way of others, need not:
    whoever has the turn stands still in a call, and is called meanwhile.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._holder: dict[object, tuple[int, int]] = {}  # object -> thread, how often
        self._waiting: dict[int, object] = {}  # thread -> the object that it waits for

    def has_any(self, thread: int | None) -> bool:
        """Whether this thread has a turn, or waits for one."""
        with self._condition:
            return thread in self._waiting or any(t == thread for t, _ in self._holder.values())

    @contextmanager
    def of(self, thing: object) -> Iterator[None]:
        """Have the turn with `thing`, once it is free."""
        me = threading.get_ident()
        is_guest = False
        with self._condition:
            self._waiting[me] = thing
            try:
                while (found := self._holder.get(thing)) is not None and found[0] != me:
                    if self._waits_for(found[0], me):
                        is_guest = True
                        break
                    self._condition.wait()
            finally:
                del self._waiting[me]
            if not is_guest:
                ntimes = found[1] if found is not None else 0
                self._holder[thing] = me, ntimes + 1
        try:
            yield
        finally:
            if not is_guest:
                self._give_back(thing)

    def _give_back(self, thing: object) -> None:
        with self._condition:
            me, ntimes = self._holder[thing]
            if ntimes > 1:
                self._holder[thing] = me, ntimes - 1
            else:
                del self._holder[thing]
                self._condition.notify_all()

    def _waits_for(self, thread: int, me: int) -> bool:
        """Whether `thread` waits for something that `me` has, however indirectly."""
        seen: dict[int, None] = {}
        while thread in self._waiting and thread not in seen:
            seen[thread] = None
            found = self._holder.get(self._waiting[thread])
            if found is None:
                return False
            thread = found[0]
            if thread == me:
                return True
        return False
