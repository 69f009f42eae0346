"""A coroutine function of an object, called at intervals for as long as the object lives."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Coroutine
from typing import Any


class Periodic:
    """Calls it at once, and again whenever the interval has passed since it ended."""

    def __init__(
        self,
        interval_seconds: float,
        method: Callable[[], Coroutine[Any, Any, None]],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """Nothing is called yet.

        Args:
            method: of an object that is not kept alive by this; it must not raise.
            loop: where it is called.
        """
        self.interval_seconds = interval_seconds
        self._method = weakref.WeakMethod(method)
        self._loop = loop
        self._is_running = False
        self._timer: asyncio.Handle | None = None
        self._task: asyncio.Task[None] | None = None  # only to keep it alive

    def is_running(self) -> bool:
        """Whether it is called from time to time."""
        return self._is_running

    def start(self) -> None:
        """Begin; on the loop."""
        if not self._is_running:
            self._is_running = True
            self._timer = self._loop.call_soon(self._call)

    def stop(self) -> None:
        """Call it no more; from any thread.  A call that is under way goes on."""
        self._is_running = False
        timer, self._timer = self._timer, None
        if timer is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(timer.cancel)

    def _call(self) -> None:
        if not self._is_running:
            return
        method = self._method()
        if method is None:
            self.stop()
            return
        self._task = self._loop.create_task(method())
        self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if self._is_running:
            self._timer = self._loop.call_later(self.interval_seconds, self._call)
