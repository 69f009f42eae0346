"""Plugins that live where they were sent: set up, replaced, torn down, one of a name at a time."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Sequence
from typing import Any

from shoal.observe.hooking import PluginTable, end_hook, name_of
from shoal.protocol import payload


class HostedPlugins:
    """The plugins of one worker or nanny; belongs to its loop."""

    def __init__(
        self,
        kind: str,
        host: Any,
        *,
        base: type[Any],
        hooks: Sequence[str],
        logger: logging.Logger,
    ) -> None:
        """No plugins yet.

        Args:
            kind: for the log, "worker" or "nanny".
            host: what they are given.
            base, hooks: as `PluginTable` has them.
            logger: hears of what becomes of them.
        """
        self.table = PluginTable(base, hooks, logger, f"the {kind}")
        self._host = host
        self._logger = logger
        self._title = f"{kind.capitalize()} plugin"
        self._payloads: dict[str, bytes] = {}  # of those that the scheduler has sent
        self._failed: dict[str, None] = {}  # they could not be set up
        self._turns: dict[str, _Turn] = {}
        self._coming: dict[str, asyncio.Task[Any] | None] = {}  # who is setting them up

    async def add(self, plugin: Any, name: str | None = None) -> str:
        """Set a plugin up, in place of one of its name; returns what it is called.

        Raises:
            Exception: what its `setup` raises, which is logged as well.
        """
        name = name_of(plugin, name)
        async with self._in_turn(name):
            await self._put(plugin, name)
        return name

    async def add_sent(self, name: str, pickled: bytes, *, idempotent: bool) -> Any:
        """Set up what the scheduler has sent, and return it; None: it is there.

        Raises:
            Exception: it can't be opened, or what its `setup` raises; it is logged as well.
        """
        async with self._in_turn(name):
            is_there = name in self.table.by_name and name not in self._failed
            if is_there and (idempotent or self._payloads.get(name) == pickled):
                return None
            try:
                plugin: Any = payload.load(pickled)
            except Exception:
                self._logger.exception("%s %s can't be opened", self._title, name)
                raise
            await self._put(plugin, name)
            self._payloads[name] = pickled
        return plugin

    async def remove(self, name: str) -> None:
        """Tear a plugin down.

        Raises:
            PluginUnknown: there is none of that name (a ValueError).
            Exception: what its `teardown` raises, which is logged as well.
        """
        async with self._in_turn(name):
            await self._take_out(name)

    async def close(self, seconds: float) -> None:
        """Tear everything down, in so many seconds; the log has what goes wrong or is cut short."""
        deadline = asyncio.get_running_loop().time() + seconds
        for task in self._coming.values():
            if task is not None and task is not asyncio.current_task():
                task.cancel()  # what is still being set up is wanted no more
        for name in list(self.table.by_name):
            try:
                async with asyncio.timeout_at(deadline) as patience:
                    await self.remove(name)
            except Exception:  # else it is logged already
                if patience.expired():
                    self._logger.error(
                        "%s %s is cut short: all teardowns together may take %.3g s",
                        self._title,
                        name,
                        seconds,
                    )

    def _changed(self) -> None:
        """Others are there than before."""

    async def _put(self, plugin: Any, name: str) -> None:
        if name in self.table.by_name:
            with contextlib.suppress(Exception):  # logged; it must not keep the new one out
                await self._take_out(name)
        self._logger.info("%s %s is set up", self._title, name)
        self.table.add(name, plugin)
        if hasattr(plugin, "setup"):
            try:
                self._coming[name] = asyncio.current_task()
                self._failed[name] = None
                await end_hook(name, "setup", plugin.setup, self._host)
                self._failed.pop(name, None)
            except Exception:
                self._logger.exception("%s %s failed to setup", self._title, name)
                raise
            finally:
                self._coming.pop(name, None)
        self._changed()

    async def _take_out(self, name: str) -> None:
        plugin = self.table.remove(name)
        self._payloads.pop(name, None)
        self._failed.pop(name, None)
        self._changed()
        self._logger.info("%s %s is torn down", self._title, name)
        if hasattr(plugin, "teardown"):
            try:
                await end_hook(name, "teardown", plugin.teardown, self._host)
            except Exception:
                self._logger.exception("%s %s failed to teardown", self._title, name)
                raise

    @contextlib.asynccontextmanager
    async def _in_turn(self, name: str) -> AsyncIterator[None]:
        """Alone with what has this name; whoever is so already, as its own setup, goes on."""
        task = asyncio.current_task()
        turn = self._turns.setdefault(name, _Turn())
        if turn.holder is task:
            yield
            return
        turn.nwanted += 1
        try:
            async with turn.lock:
                turn.holder = task
                try:
                    yield
                finally:
                    turn.holder = None
        finally:
            turn.nwanted -= 1
            if not turn.nwanted:
                del self._turns[name]


class _Turn:
    """Who may touch what has one name, and how many want to."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.holder: asyncio.Task[Any] | None = None
        self.nwanted = 0
