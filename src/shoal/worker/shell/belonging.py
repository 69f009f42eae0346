"""How a worker goes on belonging to its cluster: signs of life, and the way back to it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from time import process_time
from typing import Final

from shoal import config
from shoal.comms import ProtocolError
from shoal.observe.reasons import NOT_UNDERSTOOD, SCHEDULER_GONE
from shoal.worker.shell.descriptors import reopen_standard
from shoal.worker.shell.errors import NotUnderstood, WorkerRefused
from shoal.worker.shell.feed import Feed
from shoal.worker.shell.memory import MemoryWatch

logger = logging.getLogger("shoal.worker")

RECONNECT_PAUSE_SECONDS: Final = 0.1
RECONNECT_PAUSE_SECONDS_MAX: Final = 2.0


class Belonging:
    """Keeps one worker, which has registered, in its cluster."""

    def __init__(
        self,
        feed: Feed,
        *,
        reconnect_seconds: float,
        is_watched: bool,
        close_soon: Callable[[str], None],
    ) -> None:
        """`reconnect_seconds`: how long to look for a lost scheduler; 0: close at once.

        `is_watched`: whether another process tells why the worker ends, and it is all of its own.
        `close_soon`: called when there is no scheduler any more.
        """
        self._feed = feed
        self._reconnect_seconds = reconnect_seconds
        self._is_watched = is_watched
        self._close_soon = close_soon
        self._loop = asyncio.get_running_loop()
        settings = feed.machine.state.settings
        self._memory = MemoryWatch(
            feed,
            settings.address,
            settings.memory_limit,
            config.read(config.Memory),
            is_watched=is_watched,
            beat=self.tell,
        )
        self._beaten_at, self._busy_seconds = self._loop.time(), process_time()
        self._heartbeat: asyncio.TimerHandle | None = None
        self._reconnecting: asyncio.Task[None] | None = None
        self.at_return: Callable[[], object] | None = None
        """Called when it has found its scheduler again, and was let in."""
        self.at_beat: Callable[[float], object] | None = None
        """Called with each regular sign of life, and in how many seconds there will be another; in
        0: no run can hold this loop up before the scheduler sends something."""

    def begin(self) -> None:
        """Say that the worker lives, now and again and again."""
        if self._heartbeat is not None:
            self._heartbeat.cancel()
        self._memory.begin()
        self._beat()

    def _beat(self) -> None:
        """One sign of life, and in a while another, whatever comes of what is done beside it."""
        self._heartbeat = self._loop.call_later(self._feed.heartbeat_seconds, self._beat)
        reopen_standard()
        process_bytes = self.tell(self._memory.look_beside())
        if self._is_watched:  # else the process is not ours alone
            self._memory.trim_if_due(process_bytes)
        if self.at_beat is not None:
            self._say_beat(self.at_beat)

    def _say_beat(self, say: Callable[[float], object]) -> None:
        """To whoever vouches for us.  An idle worker has said that it rests, and says nothing."""
        feed = self._feed
        if feed.link.at_stir is not None:
            return
        if feed.threads.nexecuting or feed.operations.nrunning or feed.machine.state.runs:
            say(feed.heartbeat_seconds)
        else:
            say(0)
            feed.link.at_stir = lambda: say(feed.heartbeat_seconds)

    def tell(self, process_bytes: int | None = None) -> int:
        """Say once how the worker fares; the memory that its process has, in bytes.

        `process_bytes`: that memory, if it was looked at just now.
        """
        memory = self._memory.tell(process_bytes)
        at, busy = self._loop.time(), process_time()
        elapsed, self._beaten_at = at - self._beaten_at, at
        worked, self._busy_seconds = busy - self._busy_seconds, busy
        self._feed.heartbeat(100 * worked / elapsed if elapsed > 0 else 0.0, memory)
        self._feed.link.keep_alive()
        return memory["memory_bytes"]

    def on_lost(self, reason: Exception | None) -> None:
        """The connection to the scheduler ended, and not by our wish."""
        address = self._feed.link.address
        if isinstance(reason, ProtocolError):  # another connection would go the same way
            logger.warning("%s", NotUnderstood(address, str(reason)))
            self._close_soon(NOT_UNDERSTOOD)
            return
        if self._reconnect_seconds > 0:
            self._reconnecting = self._loop.create_task(self._reconnect())
            return
        if self._is_watched:  # whoever watches us tells of it
            logger.info("This worker lost its scheduler (%s); it closes", reason or "it closed")
        else:
            logger.warning("The scheduler at %s is gone; this worker ends.", address)
        self._close_soon(SCHEDULER_GONE)

    def close(self) -> None:
        """No further sign of life, and no way back."""
        self._memory.close()
        if self._heartbeat is not None:
            self._heartbeat.cancel()
        if self._reconnecting is not None:
            self._reconnecting.cancel()

    async def _reconnect(self) -> None:
        """Look for the scheduler until it is there again, or the time is over."""
        deadline = self._loop.time() + self._reconnect_seconds
        pause_seconds = RECONNECT_PAUSE_SECONDS
        while (remaining := deadline - self._loop.time()) > 0:
            try:
                await self._feed.link.open(
                    self._feed.registration, timeout_seconds=remaining, keep_trying=True
                )
                if self.at_return is not None:
                    self.at_return()
                return
            except (WorkerRefused, NotUnderstood) as error:
                logger.warning("%s", error)
                break
            except OSError:
                await asyncio.sleep(min(pause_seconds, remaining))
                pause_seconds = min(2 * pause_seconds, RECONNECT_PAUSE_SECONDS_MAX)
        self._close_soon(SCHEDULER_GONE)
