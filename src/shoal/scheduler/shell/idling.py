"""A scheduler that has had nothing to do for long enough closes, if that is set."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from shoal.scheduler.model.entities import NO_WORKER, PROCESSING, QUEUED, WAITING
from shoal.scheduler.model.state import SchedulerState
from shoal.units import format_seconds

logger = logging.getLogger("shoal.scheduler")

_BUSY: Final = (PROCESSING, QUEUED, WAITING, NO_WORKER)


def has_work(state: SchedulerState) -> bool:
    """Whether a task is run, or waits to be.  Cost: 0.2 us."""
    ntasks = state.ntasks
    for name in _BUSY:  # noqa: SIM110  a generator takes three times as long
        if ntasks[name]:
            return True
    return False


class IdleWatch:
    """Looks after each step whether there is work; a timer runs while there is none.

    Work that waits for workers counts: whoever has submitted it still wants it.
    """

    def __init__(
        self, state: SchedulerState, seconds: float, close_soon: Callable[[str], None]
    ) -> None:
        """`close_soon`: closes the service, for a reason."""
        self._state = state
        self._seconds = seconds
        self._close_soon = close_soon
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    def look(self) -> None:
        """A step is over."""
        if has_work(self._state):
            self.stop()
        elif self._timer is None:
            self._timer = self._loop.call_later(self._seconds, self._give_up)

    def stop(self) -> None:
        """Look no more, until the next step."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        reason = f"it had nothing to do for {format_seconds(self._seconds)}"
        logger.info("The scheduler closes: %s", reason)
        self._close_soon(reason)
