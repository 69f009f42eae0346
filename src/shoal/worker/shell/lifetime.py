"""A worker that has lived long enough asks its scheduler to let it go."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Final

from shoal.comms.exchange import SLOWEST_BYTES_PER_SECOND
from shoal.config import Worker as WorkerSettings
from shoal.observe.reasons import LIFETIME
from shoal.protocol.membership import TimeIsOver
from shoal.storage.results import Results
from shoal.worker.shell.link import SchedulerLink

PATIENCE_SECONDS: Final = 30.0
"""Without any progress in taking what only it holds, until it goes all the same."""

UNHEARD_SECONDS: Final = 5.0
"""How much longer it waits for the scheduler's word."""


def lifetime_of(settings: WorkerSettings) -> float | None:
    """How long this one shall live (s), somewhere within the spread; None: as long as it can."""
    if settings.lifetime_seconds is None:
        return None
    spread = settings.lifetime_stagger_seconds
    return max(0.0, settings.lifetime_seconds + random.uniform(-spread, spread))


def patience_with(held_nbytes: int) -> float:
    """How long a worker whose time is over waits to be sent away (s), with so much to hand over.

    The scheduler loses patience sooner, unless others go on taking what the worker has.
    """
    return PATIENCE_SECONDS + UNHEARD_SECONDS + held_nbytes / SLOWEST_BYTES_PER_SECOND


class Lifetime:
    """The time that a worker has, which begins when it is registered."""

    def __init__(
        self,
        seconds: float,
        link: SchedulerLink,
        results: Results,
        close_soon: Callable[[str], None],
    ) -> None:
        """`results`: what it has to hand over; `close_soon`: closes the worker, for a reason."""
        self._link = link
        self._results = results
        self._close_soon = close_soon
        self._is_over = False
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(seconds, self._end)

    def stop(self) -> None:
        """It closes for another reason."""
        self._timer.cancel()

    def tell(self) -> None:
        """If the time is over, say so.

        Anew on each connection: a scheduler that has lost a worker knows nothing of the one that
        comes back.
        """
        if self._is_over:
            self._link.send([TimeIsOver(LIFETIME, PATIENCE_SECONDS)])

    def _end(self) -> None:
        """Others take what only it holds, while it goes on; then the scheduler sends it away.

        A scheduler that isn't there, or doesn't do that in time, does not keep it.
        """
        self._is_over = True
        self.tell()
        self._timer = self._loop.call_later(
            patience_with(self._results.nbytes + self._results.spilled_nbytes),
            self._close_soon,
            LIFETIME,
        )
