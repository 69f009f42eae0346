"""Plugins of a worker: set up before its first task, and torn down as it closes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from shoal.observe.errors import PluginUnknown
from shoal.observe.hooks import WorkerPlugin
from shoal.observe.hosted import HostedPlugins
from shoal.protocol import payload
from shoal.worker.shell.feed import Feed

if TYPE_CHECKING:
    from shoal.worker.shell.watching import RunWatcher

logger = logging.getLogger("shoal.worker")


class WorkerPlugins(HostedPlugins):
    """The plugins of one worker; belongs to its loop."""

    def __init__(self, worker: Any) -> None:
        """`worker`: what they are given."""
        super().__init__("worker", worker, base=WorkerPlugin, hooks=("transition",), logger=logger)
        self._feed: Feed | None = None
        self._watcher: RunWatcher | None = None

    def attach(self, feed: Feed) -> None:
        """From now on there are tasks to be watched."""
        self._feed = feed
        self._changed()

    def keep_file(self, name: str, content: bytes, *, load: bool) -> None:
        """Keep a file in the worker's folder; see `storage.uploads.keep_file`."""
        from shoal.storage.uploads import keep_file  # only here, as it is rare

        keep_file(self._host.local_directory, name, content, load=load)
        self.reload_codes()

    def reload_codes(self) -> None:
        """Modules were imported anew."""
        if self._feed is not None:
            self._feed.reload_codes()

    def _changed(self) -> None:
        """Look at every step while a plugin wants to know of it."""
        feed, wanted = self._feed, bool(self.table.having("transition"))
        if feed is None or wanted == (self._watcher is not None):
            return
        if wanted:
            from shoal.worker.shell.watching import RunWatcher  # only here, as it is rare

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
