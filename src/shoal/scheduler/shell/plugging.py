"""What a scheduler can do about plugins, by upstream's names."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from shoal.observe.hooking import end_hook, name_of
from shoal.observe.hooks import NANNY, SCHEDULER, WORKER
from shoal.protocol import payload
from shoal.protocol.exceptions import from_failure
from shoal.protocol.plugins import Plugin
from shoal.protocol.running import Outcome
from shoal.scheduler.shell.plugins import Plugins

Statuses = dict[str, dict[str, str]]
"""Worker -> {"status": "OK"}."""


class PluginHost:
    """What a scheduler can do about plugins, by upstream's names."""

    hooks: Plugins

    @property
    def plugins(self) -> dict[str, Any]:
        """The scheduler's own, by name."""
        return self.hooks.table.by_name

    @property
    def plugin_seconds(self) -> dict[str, float]:
        """Time that the hooks of each have taken, coroutines aside."""
        return self.hooks.table.seconds

    @property
    def worker_plugins(self) -> dict[str, Plugin]:
        """Those of all workers, still pickled, by name."""
        return self.hooks.for_workers

    @property
    def nanny_plugins(self) -> dict[str, Plugin]:
        """Those of all nannies, still pickled, by name."""
        return self.hooks.for_nannies

    def add_plugin(
        self, plugin: Any, *, idempotent: bool = False, name: str | None = None, **kwargs: Any
    ) -> None:
        """Have a plugin told of everything from now on; its `start` is not called.

        Args:
            idempotent: nothing happens if one of that name is there; else it is replaced.
            kwargs: for a class, which is called with the scheduler and these.
        """
        if isinstance(plugin, type):
            plugin = plugin(self, **kwargs)
        name = name_of(plugin, name)
        if name in self.plugins:
            if idempotent:
                return
            if not getattr(plugin, "replaces", False):
                warnings.warn(
                    f"Scheduler already contains a plugin with name {name}; overwriting.",
                    UserWarning,
                    stacklevel=2,
                )
        self.hooks.add(name, plugin)

    def remove_plugin(self, name: str | None = None) -> None:
        """Tell a plugin no more, and have it close.

        Raises:
            PluginUnknown: none has that name (a ValueError).
        """
        self.hooks.remove(str(name))

    async def register_scheduler_plugin(
        self, plugin: Any, name: str | None = None, *, idempotent: bool | None = None
    ) -> None:
        """Start a plugin, and have it told of everything.

        Args:
            plugin: it, or its pickle.
            idempotent: nothing happens if one of that name is there; None: as it says itself.

        Raises:
            BaseException: what its `start` raises; it is not registered then.
        """
        if isinstance(plugin, bytes):
            plugin = payload.load(plugin)
        if idempotent is None:
            idempotent = bool(getattr(plugin, "idempotent", False))
        name = name_of(plugin, name)
        if name in self.plugins and idempotent:
            return
        if hasattr(plugin, "start"):
            await end_hook(name, "start", plugin.start, self)
        if self.plugins.get(name) is not plugin:  # else it has added itself
            self.add_plugin(plugin, name=name, idempotent=idempotent)

    async def unregister_scheduler_plugin(self, name: str) -> None:
        """Tell a plugin no more, and have it close.  Raises PluginUnknown, a ValueError."""
        self.remove_plugin(name)

    async def register_worker_plugin(
        self, comm: Any, plugin: Any, name: str, *, idempotent: bool = False
    ) -> Statuses:
        """Have all workers set a plugin up, those to come included; `plugin`: it, or its pickle."""
        part = Plugin(name, _pickled(plugin), idempotent)
        return _shown(await self.hooks.register_elsewhere(WORKER, part))

    async def unregister_worker_plugin(self, comm: Any, name: str) -> Statuses:
        """Have all workers tear a plugin down.  Raises PluginUnknown, a ValueError."""
        return _shown(await self.hooks.unregister_elsewhere(WORKER, name))

    async def register_nanny_plugin(
        self, comm: Any, plugin: Any, name: str, idempotent: bool = False
    ) -> Statuses:
        """Have all nannies set a plugin up, those to come included; `plugin`: it, or its pickle."""
        part = Plugin(name, _pickled(plugin), idempotent)
        return _shown(await self.hooks.register_elsewhere(NANNY, part))

    async def unregister_nanny_plugin(self, comm: Any, name: str) -> Statuses:
        """Have all nannies tear a plugin down.  Raises PluginUnknown, a ValueError."""
        return _shown(await self.hooks.unregister_elsewhere(NANNY, name))

    async def register_plugin_of(self, kind: str, plugin: Plugin) -> dict[str, Outcome]:
        """As a client asks for it."""
        if kind != SCHEDULER:
            return await self.hooks.register_elsewhere(kind, plugin)
        await self.register_scheduler_plugin(
            plugin.payload, plugin.name, idempotent=plugin.idempotent
        )
        return {}

    async def unregister_plugin_of(self, kind: str, name: str) -> dict[str, Outcome]:
        """As a client asks for it."""
        if kind != SCHEDULER:
            return await self.hooks.unregister_elsewhere(kind, name)
        self.remove_plugin(name)
        return {}

    def valid_workers_downscaling(self, workers: Iterable[Any]) -> list[Any]:
        """Those of `workers` (views) that no plugin keeps from being closed."""
        valid = list(workers)
        for name, method in self.hooks.table.having("valid_workers_downscaling"):
            try:
                valid = list(method(self, valid))
            except Exception as error:
                self.hooks.table.tell(name, "valid_workers_downscaling", error)
        return valid


def _shown(outcomes: dict[str, Outcome]) -> Statuses:
    """Worker -> that it went well; raises what the first has raised where it did not."""
    for outcome in outcomes.values():
        if outcome.failure is not None:
            raise from_failure(outcome.failure)
    return {worker: {"status": "OK"} for worker in outcomes}


def _pickled(plugin: Any) -> bytes:
    return plugin if isinstance(plugin, bytes) else payload.dump_function(plugin)
