"""The end of blocking clients that nobody closed: collected, or alive as the process ends."""

from __future__ import annotations

import asyncio
import atexit
import logging
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, Final

from shoal.client import current
from shoal.client.blocking import LoopThread
from shoal.client.session import Session

EXIT_SECONDS_MAX = 3.0
"""How long the end of the process waits for clients that were not closed."""

OPEN: Final[weakref.WeakSet[Any]] = weakref.WeakSet()
"""The blocking clients of this process that are connected."""

_leaving: set[asyncio.Future[None]] = set()

_logger = logging.getLogger("shoal.client")


def abandon(session: Session, thread: LoopThread, owned: list[Any]) -> None:
    """A client was collected without `close`, in whatever thread: nothing here may wait."""
    current.remove_default(None)
    if thread.is_alive:
        thread.call(_leave_soon, session, thread, owned)


def _leave_soon(session: Session, thread: LoopThread, owned: list[Any]) -> None:
    leaving = asyncio.ensure_future(_leave(session, thread, owned))
    _leaving.add(leaving)  # the loop itself refers to its tasks weakly
    leaving.add_done_callback(_leaving.discard)


async def _leave(session: Session, thread: LoopThread, owned: list[Any]) -> None:
    try:
        await session.close()
        while owned:
            await call_aside(owned.pop().close)
    finally:
        thread.release()


async def call_aside(function: Callable[[], object]) -> None:
    """Call a blocking function in a thread of its own; executors are shut as a process ends."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def work() -> None:
        try:
            function()
        except Exception:  # at the end of the process, a cluster is closing itself as well
            _logger.debug("Closing the cluster of a dropped client failed", exc_info=True)
        try:
            loop.call_soon_threadsafe(done.set_result, None)
        except RuntimeError:
            pass  # the loop was closed, so nobody waits

    threading.Thread(target=work, name="shoal-client-closing", daemon=True).start()
    await done


@atexit.register
def _close_all() -> None:
    """The process ends: say good-bye to schedulers, quietly, and not for long.

    No thread may be started any more, so nothing is asked of a loop that has ended.
    """
    deadline = time.monotonic() + EXIT_SECONDS_MAX
    for client in list(OPEN):
        try:
            client.close(max(0.0, deadline - time.monotonic()))
        except Exception:
            pass  # there is nobody left to tell
    if not _leaving:
        return
    try:
        thread = LoopThread.acquire()  # which those who leave keep alive
        try:
            thread.run(_wait_for_leaving(), max(0.0, deadline - time.monotonic()))
        finally:
            thread.release()
    except Exception:
        pass  # as above


async def _wait_for_leaving() -> None:
    if _leaving:
        await asyncio.wait(list(_leaving))
