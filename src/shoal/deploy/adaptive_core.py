"""How a number of workers follows a target, whatever starts and ends them."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Iterable
from typing import Any, Final

from shoal import config
from shoal.deploy.errors import CannotScale
from shoal.deploy.ripening import Ripening
from shoal.errors import ShoalError
from shoal.units import to_count

logger: Final = logging.getLogger("shoal.deploy.adaptive")

Recommendation = dict[str, Any]
"""`{"status": "same"}`, or `"up"` with `n`, or `"down"` with `workers`."""


class AdaptiveCore:
    """Looks at a target from time to time, and has workers started or let go.

    More workers are asked for at once; one is let go when it could have gone in `wait_count` looks
    in a row, and for as long as a start takes.  Derived classes give `target`, `plan`, `requested`,
    `observed`, `scale_up` and `scale_down`; what these raise is logged, and the next look comes all
    the same.

    Args:
        minimum, maximum: of workers.
        wait_count: looks in a row.

    Raises:
        ValueError: a bound is neither a whole number nor, as the upper one, infinite.
    """

    def __init__(self, minimum: int = 0, maximum: float = math.inf, wait_count: int = 3) -> None:
        self.minimum = _bound("minimum", minimum)
        self.maximum = maximum if maximum == math.inf else _bound("maximum", maximum)
        self.wait_count = wait_count
        self.log: deque[tuple[float, Recommendation]] = deque(
            maxlen=config.read(config.Histories).story_records_max
        )
        """When (s, wall clock) and how the number of workers was changed, the latest last."""
        self.failure: Exception | None = None
        """What the latest look raised; None: it went well."""
        self.nlooks = 0
        """That have ended."""
        self.ripening = Ripening()
        """Which workers could go, since when, and what a start takes."""
        self._adapting = False

    # --- what a derived class gives ------------------------------------------------------------

    @property
    def plan(self) -> set[Any]:
        """Names of the workers that there shall be."""
        return set()

    @property
    def requested(self) -> set[Any]:
        """Names of those that have been asked for."""
        return set()

    @property
    def observed(self) -> set[Any]:
        """Names of those that are there."""
        return set()

    async def target(self) -> int:
        """How many workers there shall be, whatever the bounds are."""
        return self.minimum

    async def workers_to_close(self, target: int) -> list[Any]:
        """Names of workers that could go if `target` are left, the first of them first."""
        return sorted(self.observed, key=_age)[target:]

    async def scale_up(self, n: int) -> None:
        """Have `n` workers, which is more than there are."""
        raise CannotScale(type(self).__name__)

    async def scale_down(self, workers: Iterable[Any]) -> None:
        """Let these go."""
        raise CannotScale(type(self).__name__)

    # --- a look --------------------------------------------------------------------------------

    @property
    def close_counts(self) -> dict[Any, int]:
        """Name of a worker that could go → in how many looks in a row."""
        return self.ripening.nlooks

    async def safe_target(self) -> int:
        """The target, within the bounds; of two that exclude each other the lower one holds."""
        wanted = await self.target()
        return int(max(self.minimum, min(self.maximum, wanted)))

    async def recommendations(self, target: int) -> Recommendation:
        """What is to be done so that there are `target` workers; see `Recommendation`."""
        plan, observed, now = self.plan, self.observed, time.monotonic()
        self.ripening.note(now, plan, observed)
        if target >= len(plan):
            self.ripening.start_anew()
            return {"status": "up", "n": target} if target > len(plan) else {"status": "same"}
        nspare = len(plan) - target
        could_go = self._not_there(plan, nspare)
        if len(could_go) < nspare:
            more = [name for name in await self.workers_to_close(target) if name not in could_go]
            could_go += more[: nspare - len(could_go)]
        ripe = self.ripening.ripe(now, could_go, observed, self.wait_count)
        return {"status": "down", "workers": ripe} if ripe else {"status": "same"}

    def _not_there(self, plan: set[Any], nmax: int) -> list[Any]:
        """Up to so many that have not come yet: those that nobody has asked for first, and of
        others the newest, as far as names tell."""
        requested, observed = self.requested, self.observed
        names = sorted((plan | requested) - observed, key=_age, reverse=True)
        return sorted(names, key=requested.__contains__)[:nmax]

    async def adapt(self) -> None:
        """One look, and what follows; while one is under way, nothing.  Raises what that raises."""
        if self._adapting:
            return
        self._adapting = True
        try:
            await self._look()
        finally:
            self.nlooks += 1
            self._adapting = False

    async def look(self) -> None:
        """As `adapt`, but what it raises is logged: another look will come."""
        try:
            await self.adapt()
        except Exception as error:
            self._tell_of(error)
        else:
            self.failure = None

    async def _look(self) -> None:
        target = await self.safe_target()
        recommendation = dict(await self.recommendations(target))
        await self._follow(target, recommendation)

    async def _follow(self, target: int, recommendation: Recommendation) -> None:
        """Do what was recommended, and remember it."""
        status = recommendation["status"]
        if status == "same":
            return
        self.log.append((time.time(), recommendation))
        arguments = {name: value for name, value in recommendation.items() if name != "status"}
        await (self.scale_up if status == "up" else self.scale_down)(**arguments)

    def _tell_of(self, error: Exception) -> None:
        """Once, as long as it is the same."""
        is_news = repr(error) != repr(self.failure)
        self.failure = error
        if is_news:
            is_known = isinstance(error, (ShoalError, OSError, asyncio.TimeoutError))
            logger.warning(
                "Adaptive scaling encountered an error, and goes on: %s: %s",
                type(error).__name__,
                error,
                exc_info=None if is_known else error,
            )


def _bound(name: str, value: Any) -> int:
    """Raises ValueError: it is no whole number from zero on."""
    if isinstance(value, float) and value.is_integer():  # as settings have it
        value = int(value)
    try:
        return to_count(name, value)
    except TypeError as error:
        raise ValueError(str(error)) from None


def _age(name: Any) -> tuple[int, str]:
    """Orders names that end in numbers as the numbers are."""
    text = str(name)
    return len(text), text
