"""Plugins of a worker: set up before its first task, and torn down as it closes."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from shoal.observe.errors import PluginUnknown
from shoal.observe.hooking import PluginTable, name_of
from shoal.observe.hooks import WorkerPlugin
from shoal.protocol import payload
from shoal.protocol.exceptions import to_failure
from shoal.protocol.messages import Failure
from shoal.protocol.plugins import Plugin
from shoal.storage.uploads import keep_file
from shoal.worker.shell.feed import Feed
from shoal.worker.shell.watching import RunWatcher

logger = logging.getLogger("shoal.worker")

TEARDOWN_SECONDS_MAX: Final = 10.0
"""What one plugin's teardown may take as the worker closes."""


class WorkerPlugins:
    """The plugins of one worker; belongs to its loop."""

    def __init__(self, worker: Any) -> None:
        """`worker`: what they are given."""
        self.table = PluginTable(WorkerPlugin, ("transition",), logger, "the worker")
        self._worker = worker
        self._payloads: dict[str, bytes] = {}  # of those that the scheduler has sent
        self._underway: dict[str, asyncio.Future[Failure | None]] = {}
        self._feed: Feed | None = None
        self._watcher: RunWatcher | None = None

    def attach(self, feed: Feed) -> None:
        """From now on there are tasks to be watched."""
        self._feed = feed
        self._watch()

    async def add(self, plugin: Any, name: str | None = None) -> str:
        """Set a plugin up, in place of one of its name; returns what it is called.

        Raises:
            BaseException: what its `setup` raises, which is logged as well.
        """
        name = name_of(plugin, name)
        if name in self.table.by_name:
            await self.remove(name)
        logger.info("Worker plugin %s is set up", name)
        self.table.add(name, plugin)
        if hasattr(plugin, "setup"):
            try:
                outcome = plugin.setup(self._worker)
                if inspect.isawaitable(outcome):
                    await outcome
            except Exception:
                logger.exception("Worker plugin %s failed to setup", name)
                raise
        self._watch()
        return name

    async def remove(self, name: str) -> None:
        """Tear a plugin down.

        Raises:
            PluginUnknown: there is none of that name (a ValueError).
            BaseException: what its `teardown` raises, which is logged as well.
        """
        plugin = self.table.remove(name)
        self._payloads.pop(name, None)
        self._watch()
        logger.info("Worker plugin %s is torn down", name)
        if hasattr(plugin, "teardown"):
            try:
                outcome = plugin.teardown(self._worker)
                if inspect.isawaitable(outcome):
                    await outcome
            except Exception:
                logger.exception("Worker plugin %s failed to teardown", name)
                raise

    async def add_sent(self, part: Plugin) -> Failure | None:
        """Set up what the scheduler has sent, unless it is there; what it raised."""
        underway = self._underway.get(part.name)
        if underway is not None:
            await asyncio.shield(underway)
        if self._payloads.get(part.name) == part.payload:
            return None
        if part.idempotent and part.name in self.table.by_name:
            return None
        done = self._underway[part.name] = asyncio.get_running_loop().create_future()
        failure = None
        try:
            await self.add(payload.load(part.payload), part.name)
            self._payloads[part.name] = part.payload
        except Exception as error:
            failure = to_failure(error, worker=self._worker.address)
        finally:
            del self._underway[part.name]
            done.set_result(failure)
        return failure

    def keep_file(self, name: str, content: bytes, *, load: bool) -> None:
        """Keep a file in the worker's folder; see `storage.uploads.keep_file`."""
        keep_file(self._worker.local_directory, name, content, load=load)
        self.reload_codes()

    def reload_codes(self) -> None:
        """Modules were imported anew."""
        if self._feed is not None:
            self._feed.reload_codes()

    async def close(self) -> None:
        """Tear everything down; errors are in the log."""
        for name in list(self.table.by_name):
            try:
                async with asyncio.timeout(TEARDOWN_SECONDS_MAX):
                    await self.remove(name)
            except Exception:
                continue

    def _watch(self) -> None:
        """Look at every step while a plugin wants to know of it."""
        feed, wanted = self._feed, bool(self.table.having("transition"))
        if feed is None or wanted == (self._watcher is not None):
            return
        if wanted:
            self._watcher = RunWatcher(feed.machine.state, self.table)
            feed.watch(self._watcher)
        else:
            assert self._watcher is not None
            feed.watch(None)
            self._watcher.end()
            self._watcher = None


class PluginHost:
    """What a worker can do about plugins, by upstream's names."""

    def __init__(self) -> None:
        super().__init__()
        self.hooks = WorkerPlugins(self)
        self.first_plugins: list[Any] = []  # set up before it registers
        self.ask_nanny: Callable[[str, bytes], Any] | None = None
        """Has the nanny do something, if there is one; see `deploy/child.py`."""

    @property
    def plugins(self) -> Mapping[str, Any]:
        """By name."""
        return self.hooks.table.by_name

    async def plugin_add(
        self, plugin: Any, name: str | None = None, catch_errors: bool = True
    ) -> dict[str, Any]:
        """Set a plugin up, in place of one of its name.

        Args:
            plugin: it, or its pickle.
            catch_errors: give what its `setup` raises back as `exception`, instead of raising it.
        """
        try:
            if isinstance(plugin, bytes):
                plugin = payload.load(plugin)
            await self.hooks.add(plugin, name)
        except Exception as error:
            if not catch_errors:
                raise
            return {"status": "error", "exception": error}
        return {"status": "OK"}

    async def plugin_remove(self, name: str) -> dict[str, Any]:
        """Tear a plugin down; nothing happens if there is none of that name."""
        try:
            await self.hooks.remove(name)
        except PluginUnknown:
            logger.debug("No plugin %r is to be removed", name)
        except Exception as error:
            return {"status": "error", "exception": error}
        return {"status": "OK"}

    async def upload_file(
        self, filename: str, data: bytes | str, load: bool = True
    ) -> dict[str, Any]:
        """Keep a file in this worker's folder, and import it if it is a module or has some.

        Args:
            filename: without a path.

        Raises:
            NotAFileName: it has a path.
            BaseException: what its modules raise when they are imported; the file stays.
        """
        content = data.encode() if isinstance(data, str) else data
        self.hooks.keep_file(filename, content, load=load)
        return {"status": "OK", "nbytes": len(content)}

    def reload_codes(self) -> None:
        """Modules were imported anew: tasks look up again what is in them."""
        self.hooks.reload_codes()

    async def _set_up_first(self, plugins: Iterable[Any]) -> None:
        """Set up those that it was made with; what they raise is in the log, and ends the start."""
        for plugin in plugins:
            await self.hooks.add(plugin)
