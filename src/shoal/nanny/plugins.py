"""Plugins of a nanny, which outlive its worker's process, and what else a scheduler asks of it.

A nanny listens to nobody: what is asked of it comes by its worker, over the channel to that one's
process.  A plugin that wants the worker started anew is set up first, and the scheduler, which is
told so, sends the worker away; whoever takes its place starts in what the plugin has made ready.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from shoal.comms.functions import call_function
from shoal.nanny.logs import on_logs
from shoal.observe.errors import PluginUnknown
from shoal.observe.hooking import PluginTable, name_of
from shoal.observe.hooks import NannyPlugin
from shoal.protocol import payload
from shoal.protocol.exceptions import to_failure
from shoal.protocol.plugins import RESTARTS
from shoal.protocol.running import Outcome

logger = logging.getLogger("shoal.nanny")

TEARDOWN_SECONDS_MAX: Final = 5.0
"""What one plugin's teardown may take as the nanny closes."""


class NannyPlugins:
    """The plugins of one nanny."""

    def __init__(self, nanny: Any) -> None:
        """`nanny`: what they are given."""
        self.table = PluginTable(NannyPlugin, (), logger, "the nanny")
        self._nanny = nanny
        self._payloads: dict[str, bytes] = {}  # of those that the scheduler has sent
        self._turn = asyncio.Lock()

    async def add(self, plugin: Any, name: str | None = None) -> str:
        """Set a plugin up, in place of one of its name; returns what it is called.

        Raises:
            BaseException: what its `setup` raises, which is logged as well.
        """
        name = name_of(plugin, name)
        if name in self.table.by_name:
            await self.remove(name)
        self.table.add(name, plugin)
        if hasattr(plugin, "setup"):
            try:
                outcome = plugin.setup(self._nanny)
                if inspect.isawaitable(outcome):
                    await outcome
            except Exception:
                logger.exception("Nanny plugin %s failed to setup", name)
                raise
        return name

    async def remove(self, name: str) -> None:
        """Tear a plugin down.

        Raises:
            PluginUnknown: there is none of that name (a ValueError).
            BaseException: what its `teardown` raises, which is logged as well.
        """
        plugin = self.table.remove(name)
        self._payloads.pop(name, None)
        if hasattr(plugin, "teardown"):
            try:
                outcome = plugin.teardown(self._nanny)
                if inspect.isawaitable(outcome):
                    await outcome
            except Exception:
                logger.exception("Nanny plugin %s failed to teardown", name)
                raise

    async def add_sent(self, argument: bytes) -> bytes:
        """Set up what the scheduler has sent, unless it is there; RESTARTS if the worker has to
        be started anew."""
        sent: Any = payload.load(argument)
        name, pickled, idempotent = sent
        async with self._turn:
            if self._payloads.get(name) == pickled:
                return b""
            if idempotent and name in self.table.by_name:
                return b""
            plugin: Any = payload.load(pickled)
            await self.add(plugin, name)
            self._payloads[name] = pickled
        return RESTARTS if getattr(plugin, "restart", False) else b""

    async def close(self) -> None:
        """Tear everything down; errors are in the log."""
        for name in list(self.table.by_name):
            try:
                async with asyncio.timeout(TEARDOWN_SECONDS_MAX):
                    await self.remove(name)
            except Exception:
                continue


async def on_plugin_add(nanny: Any, argument: bytes) -> Outcome:
    """Set up what the scheduler has sent."""
    value = await nanny.hooks.add_sent(argument)
    if value == RESTARTS:
        nanny.expect_restart()
    return Outcome(value)


async def on_plugin_remove(nanny: Any, argument: bytes) -> Outcome:
    """Tear a plugin down, if it is there."""
    try:
        await nanny.hooks.remove(argument.decode())
    except PluginUnknown:
        logger.debug("No plugin %r is to be removed", argument)
    return Outcome()


async def on_run(nanny: Any, argument: bytes) -> Outcome:
    """Call a client's function here."""
    return await call_function(argument, {"dask_worker": nanny})


ASKED: Final[dict[str, Callable[[Any, bytes], Awaitable[Outcome]]]] = {
    "plugin-add": on_plugin_add,
    "plugin-remove": on_plugin_remove,
    "run": on_run,
    "logs": on_logs,
}
"""What a nanny can be asked to do -> what does it."""


async def answer(nanny: Any, operation: str, argument: bytes) -> Outcome:
    """Do what was asked; whatever it raises is the outcome."""
    try:
        return await ASKED[operation](nanny, argument)
    except Exception as error:
        return Outcome(failure=to_failure(error, worker=nanny.worker_address))
