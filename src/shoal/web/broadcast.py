"""One look for all who watch, and none while nobody does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Broadcast:
    """The latest look at something, renewed as long as somebody waits for another.

    A look that is like the one before is kept from the viewers.  Whoever is slow to take one just
    gets the next, so that nothing piles up.
    """

    def __init__(self, look: Callable[[], bytes], period_seconds: float) -> None:
        """`look`: cheap, as it is called on the loop every `period_seconds`."""
        self._look = look
        self._period_seconds = period_seconds
        self._number = 0
        self._latest = b""
        self._waiting: list[asyncio.Future[None]] = []
        self._timer: asyncio.TimerHandle | None = None

    async def after(self, number: int) -> tuple[int, bytes]:
        """Wait for a look that is newer than the one of this number; 0: any will do."""
        if self._timer is None:
            self._renew()
        while self._number == number:
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            try:
                await waiter
            finally:
                if waiter in self._waiting:
                    self._waiting.remove(waiter)
        return self._number, self._latest

    def close(self) -> None:
        """Look no more; whoever waits is left to be cancelled."""
        if self._timer is not None:
            self._timer.cancel()

    def _renew(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._period_seconds, self._on_time)
        found = self._look()
        if found == self._latest:
            return
        self._latest = found
        self._number += 1
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)

    def _on_time(self) -> None:
        self._timer = None
        if self._waiting:
            self._renew()
