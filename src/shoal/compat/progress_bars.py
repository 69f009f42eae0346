"""`distributed.diagnostics.progressbar`: bars that programs derive theirs from.

A bar is a client for as long as it listens: it wants the tasks of its keys, and hears as each ends.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from time import monotonic
from typing import Any

from shoal.client.asynchronous import AsyncClient
from shoal.client.completing import as_completed
from shoal.client.current import find_client
from shoal.client.errors import NoClient
from shoal.client.future import Future
from shoal.client.progress import bar_of_text
from shoal.compat.looping import LoopRunner
from shoal.units import to_seconds


class ProgressBar:
    """Hears how tasks end; subclasses draw that, in `_draw_bar` and `_draw_stop`.

    Args:
        keys: futures, or keys of tasks that somebody else wants.
        scheduler: its address; None: that of the current client.
        interval: seconds between two drawings, at least.
        complete: count also those that have ended already.

    Raises:
        NoClient: there is no scheduler, and no client (a ValueError).
    """

    def __init__(
        self,
        keys: Iterable[Any],
        scheduler: Any = None,
        interval: float | str = "100ms",
        complete: bool = True,
    ) -> None:
        self.keys = list(dict.fromkeys(getattr(key, "key", key) for key in keys))
        client = find_client()
        if scheduler is None and client is None:
            raise NoClient
        self.scheduler = scheduler if scheduler is not None else client.scheduler.address
        self.interval = to_seconds(interval)
        self.complete = complete
        self.status: str | None = None
        """running, finished or error; None before it listens."""
        self._began_at = monotonic()

    @property
    def elapsed(self) -> float:
        """Seconds since it was made."""
        return monotonic() - self._began_at

    @property
    def comm(self) -> ProgressBar:
        """What it hears by: `comm.closed()` says whether it has stopped."""
        return self

    def closed(self) -> bool:
        """Whether it listens no more."""
        return self.status in ("finished", "error")

    async def listen(self) -> None:
        """Draw until all have ended, or one in an error.

        Raises:
            OSError: the scheduler can't be reached, or goes.
        """
        self.status = "running"
        try:
            await self._listen()
        except BaseException:
            self.status = "error"
            raise

    async def _listen(self) -> None:
        async with AsyncClient(self.scheduler, set_as_default=False) as client:
            keys = self.keys
            if not self.complete:
                states = await client.scheduler.get_task_status(keys=keys)
                keys = [key for key in keys if states[key] != "memory"]
            futures = [Future(key, client) for key in keys]
            nall = nleft = len(futures)
            drawn_at = monotonic()
            self._draw_bar(remaining=nleft, all=nall, status=self.status)
            async for future in as_completed(futures):
                nleft -= 1
                if future.status == "error":
                    await self._end_in_error(nleft, nall, future)
                    return
                if monotonic() - drawn_at >= self.interval and nleft:
                    drawn_at = monotonic()
                    self._draw_bar(remaining=nleft, all=nall, status=self.status)
            self.status = "finished"
            self._draw_bar(remaining=nleft, all=nall, status=self.status)
            self._draw_stop(remaining=nleft, status=self.status)

    async def _end_in_error(self, nleft: int, nall: int, future: Future) -> None:
        self.status = "error"
        self._draw_bar(remaining=nleft, all=nall, status=self.status)
        error = await future.exception()
        self._draw_stop(remaining=nleft, status=self.status, exception=error)

    def _draw_bar(self, remaining: int, all: int, **kwargs: Any) -> None:
        """So many of all are left."""

    def _draw_stop(self, **kwargs: Any) -> None:
        """It listens no more: `remaining` are left, its `status`, and the `exception` if any."""


class TextProgressBar(ProgressBar):
    """A bar of text on stdout.

    Args:
        keys, scheduler, interval, complete: see `ProgressBar`.
        width: of the bar, in characters.
        loop: the loop that it listens on; None: that of this process's clients.
        start: listen now, and return when all have ended.
        kwargs: of no effect.
    """

    def __init__(
        self,
        keys: Iterable[Any],
        scheduler: Any = None,
        interval: float | str = "100ms",
        width: int = 40,
        loop: Any = None,
        complete: bool = True,
        start: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(keys, scheduler, interval, complete)
        self.width = width
        self._loop_runner = LoopRunner(loop=loop)
        if start:
            self._loop_runner.run_sync(self.listen)

    @property
    def loop(self) -> Any:
        """The loop that it listens on, while it does."""
        return self._loop_runner.loop

    def _draw_bar(self, remaining: int, all: int, **kwargs: Any) -> None:
        sys.stdout.write("\r" + bar_of_text(all - remaining, all, self.elapsed, self.width))
        sys.stdout.flush()

    def _draw_stop(self, **kwargs: Any) -> None:
        sys.stdout.write("\r\n")
        sys.stdout.flush()
