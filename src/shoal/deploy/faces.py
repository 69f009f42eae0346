"""The two faces of a cluster: a method waits, or gives something to await, as its caller needs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final

from shoal.client.blocking import LoopThread
from shoal.deploy.errors import ClusterClosed
from shoal.errors import ShoalError
from shoal.observe.status import Status
from shoal.units import to_seconds

_logger = logging.getLogger("shoal.deploy")

CORRECTION: Final = "a correction of the number of workers"
"""Name of tasks that do so in the background."""


class TwoFaces:
    """Something that lives on a loop, and that others call from there or from any thread."""

    name: str
    status: Status

    def __init__(self) -> None:
        self._asynchronous = False
        self._thread: LoopThread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._background: set[asyncio.Task[Any]] = set()  # only to keep them alive

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop that the cluster's tasks run on."""
        return self._loop

    @property
    def asynchronous(self) -> bool:
        """Whether its methods are to be awaited: it was made so, or we are on its own loop."""
        return self._asynchronous or self.called_from_running_loop

    @property
    def called_from_running_loop(self) -> bool:
        """Whether the caller runs on the cluster's own loop."""
        try:
            return asyncio.get_running_loop() is self._loop
        except RuntimeError:
            return False

    def sync(
        self,
        func: Callable[..., Coroutine[Any, Any, Any]],
        *args: Any,
        asynchronous: bool | None = None,
        callback_timeout: float | str | None = None,
        **kwargs: Any,
    ) -> Any:
        """Run a coroutine function on the cluster's loop: wait for it, or, if the cluster is
        asynchronous or the caller is on that loop, return something to await."""
        work = func(*args, **kwargs)
        asynchronous = self.asynchronous if asynchronous is None else asynchronous
        if asynchronous or self.called_from_running_loop:
            return work
        if self._thread is None:
            work.close()
            raise ClusterClosed(self.name, self.status)
        seconds = None if callback_timeout is None else to_seconds(callback_timeout)
        return self._thread.run(work, seconds)

    def _in_background(self, work: Coroutine[Any, Any, Any], name: str = "") -> asyncio.Task[Any]:
        """Run `work` whether or not the caller awaits what is returned; on the loop."""
        task = asyncio.ensure_future(work)
        if name:
            task.set_name(name)
        self._background.add(task)
        task.add_done_callback(self._background_ended)
        return task

    def _background_ended(self, task: asyncio.Task[Any]) -> None:
        self._background.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            known = isinstance(error, (ShoalError, OSError))  # then its text says all
            _logger.error("The cluster %s: %s", self.name, error, exc_info=None if known else error)


def close_from_anywhere(
    loop: asyncio.AbstractEventLoop | None,
    close: Callable[[float], Coroutine[Any, Any, None]],
    deadline: float,
) -> None:
    """Close what lives on `loop`, quietly, as nobody is left to tell: from another thread, wait for
    it; on the loop itself it is closed in the background.  Nothing is left to close if it has
    ended.

    Args:
        close: given how many seconds it may take.
        deadline: on the monotonic clock.
    """
    seconds = max(0.0, deadline - time.monotonic())
    if loop is None or not loop.is_running():
        return
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        closing = asyncio.run_coroutine_threadsafe(close(seconds), loop)
        with contextlib.suppress(Exception):
            closing.result(seconds)
    else:
        loop.create_task(close(seconds), name="the end of a cluster")
