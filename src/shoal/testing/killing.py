"""A plugin that ends workers at random times, to see whether a program bears that."""

from __future__ import annotations

import asyncio
import ctypes
import math
import os
import random
from collections.abc import Callable
from typing import Any, Final

from shoal.errors import ShoalError
from shoal.observe.hooks import WorkerPlugin
from shoal.observe.reasons import RESTARTED
from shoal.units import to_seconds


class UnknownEnding(ShoalError, ValueError):
    """Workers were to be ended in a way that there is not."""

    def __init__(self, mode: str) -> None:
        super().__init__(mode)
        self.mode = mode

    def __str__(self) -> str:
        return (
            f"{self.mode!r} is not supported as mode=: it says how a worker ends, and is one of "
            f"{', '.join(map(repr, ENDINGS))}."
        )


class NoSuchDelay(ShoalError, ValueError):
    """Workers were to live for a time that there is not."""

    def __init__(self, delay: object) -> None:
        super().__init__(delay)
        self.delay = delay

    def __str__(self) -> str:
        return (
            f"{self.delay!r} is not supported as delay=: it says how long workers live on average, "
            "and is a finite number of seconds from 0 on, or a text such as '100 s'."
        )


class KillWorker(WorkerPlugin):
    """Ends each worker that has it, once, after a random time; a nanny starts another.

    A worker that lives in the process of its program takes that along.

    Args:
        delay: how long a worker lives on average, exponentially distributed; seconds, or a text
            such as "100 s".
        mode: "sys.exit": the process ends at once; "graceful": the worker closes, and gives up what
            it has; "segfault": the process is killed by the system.

    Raises:
        ValueError: there is no such mode, or no such time.
    """

    def __init__(self, delay: float | str = "100 s", mode: str = "sys.exit") -> None:
        if mode not in ENDINGS:
            raise UnknownEnding(mode)
        self.delay, self.mode = to_seconds(delay), mode
        if not 0 <= self.delay < math.inf:
            raise NoSuchDelay(delay)
        self._timer: asyncio.TimerHandle | None = None

    async def setup(self, worker: Any) -> None:
        """Begin to wait for its end."""
        seconds = random.expovariate(1 / self.delay) if self.delay else 0.0
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(seconds, ENDINGS[self.mode], worker)

    def teardown(self, worker: Any) -> None:
        """It ends by itself, or is to live on."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _exit(worker: Any) -> None:
    os._exit(0)


def _close(worker: Any) -> None:
    worker.end_soon(f"{RESTARTED} by a plugin")  # which is what a nanny starts another for


def _crash(worker: Any) -> None:
    ctypes.string_at(0)


ENDINGS: Final[dict[str, Callable[[Any], object]]] = {
    "sys.exit": _exit,
    "graceful": _close,
    "segfault": _crash,
}
"""How a worker ends."""
