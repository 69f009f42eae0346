"""Functions that tests submit: quick ones, slow ones, and some that fail as often as asked."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

DELAY_SECONDS: Final = 0.02


def inc(x: Any) -> Any:
    """One more."""
    return x + 1


def dec(x: Any) -> Any:
    """One less."""
    return x - 1


def mul(x: Any, y: Any) -> Any:
    """The product."""
    return x * y


def div(x: Any, y: Any) -> Any:
    """The quotient; raises ZeroDivisionError for y=0."""
    return x / y


def double(x: Any) -> Any:
    """Twice."""
    return 2 * x


def identity(x: Any) -> Any:
    """The same."""
    return x


def throws(x: Any) -> None:
    """Raises RuntimeError, whatever it is given."""
    raise RuntimeError("hello!")


def slowinc(x: Any, delay: float = DELAY_SECONDS) -> Any:
    """One more, after `delay` seconds."""
    time.sleep(delay)
    return x + 1


def slowdec(x: Any, delay: float = DELAY_SECONDS) -> Any:
    """One less, after `delay` seconds."""
    time.sleep(delay)
    return x - 1


def slowdouble(x: Any, delay: float = DELAY_SECONDS) -> Any:
    """Twice, after `delay` seconds."""
    time.sleep(delay)
    return 2 * x


def slowadd(x: Any, y: Any, delay: float = DELAY_SECONDS) -> Any:
    """The sum of two, after `delay` seconds."""
    time.sleep(delay)
    return x + y


def slowsum(seq: Iterable[Any], delay: float = DELAY_SECONDS) -> Any:
    """The sum of many, after `delay` seconds."""
    time.sleep(delay)
    return sum(seq)


def slowidentity(*args: Any, **kwargs: Any) -> Any:
    """What it is given, after `delay=` seconds: itself if it is one, else a tuple."""
    time.sleep(kwargs.get("delay", DELAY_SECONDS))
    return args[0] if len(args) == 1 else args


def randominc(x: Any, scale: float = 1) -> Any:
    """One more, after a random time of at most `scale` seconds."""
    time.sleep(random.random() * scale)
    return x + 1


async def asyncinc(x: Any, delay: float = DELAY_SECONDS) -> Any:
    """One more, after `delay` seconds in which the loop does other things."""
    await asyncio.sleep(delay)
    return x + 1


def run_for(duration: float, timer: Callable[[], float] = time.perf_counter) -> None:
    """Keep a core busy for `duration` seconds."""
    deadline = timer() + duration
    while timer() < deadline:
        continue


def block_on_event(event: Any) -> None:
    """Wait until an event is set."""
    event.wait()


class _Varying:
    """See `varying`.  Counts its calls; the count does not travel back from another process."""

    def __init__(self, items: Sequence[Any]) -> None:
        self._items = list(items)
        self._token = f"varying-{random.getrandbits(64):x}"

    def __call__(self) -> Any:
        ncalls = _ncalls.get(self._token, 0)
        _ncalls[self._token] = ncalls + 1
        if ncalls >= len(self._items):
            raise IndexError(f"called more often than the {len(self._items)} times it is good for")
        item = self._items[ncalls]
        if isinstance(item, Exception):
            raise item
        return item


_ncalls: Final[dict[str, int]] = {}


def varying(items: Sequence[Any]) -> Callable[[], Any]:
    """A function whose first call returns (or raises, if it is an exception) the first item, and
    so on; as long as all calls are made in one process."""
    return _Varying(items)


def map_varying(itemslists: Sequence[Sequence[Any]]) -> tuple[Callable[[Any], Any], list[Any]]:
    """A function and the arguments to map it over, so that each behaves as `varying` does."""
    return _call, [varying(items) for items in itemslists]


def _call(function: Callable[[], Any]) -> Any:
    return function()
