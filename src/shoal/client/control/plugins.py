"""Plugins that the user brings to the scheduler, to workers and to their nannies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from shoal.client.errors import PluginIsAClass, PluginOfNoKind
from shoal.client.lifecycle import ClientBase
from shoal.observe.hooking import name_of
from shoal.observe.hooks import BASES, NANNY, SCHEDULER, WORKER, CallbackPlugin
from shoal.protocol.exceptions import from_failure
from shoal.protocol.payload import dump_function
from shoal.protocol.plugins import Plugin, RegisterPlugin, UnregisterPlugin
from shoal.protocol.running import Outcome


class Plugins(ClientBase):
    """`register_plugin` and its kin."""

    async def register_plugin(
        self, plugin: Any, name: str | None = None, idempotent: bool | None = None
    ) -> Any:
        """Have a plugin live where its class says: in the scheduler, all workers, or all nannies.

        Workers and nannies that come later have it as well, and before their first task.

        Args:
            plugin: a SchedulerPlugin, WorkerPlugin or NannyPlugin, which can be pickled.
            name: what it is registered as; None: its `name`, or its class and a random number.
            idempotent: whether nothing happens if one of that name is there; None: as it says.

        Returns:
            None for the scheduler's; else worker -> {"status": "OK"}.

        Raises:
            TypeError: it is a class, or of no kind of plugin.
            BaseException: what its `start` or `setup` raised; of the first worker where it did.
        """
        return await self._register(_kind_of(plugin), plugin, name, idempotent)

    async def register_worker_plugin(
        self, plugin: Any = None, name: str | None = None, nanny: bool | None = None
    ) -> Any:
        """As `register_plugin`, for the workers; also what only looks like a WorkerPlugin.

        Args:
            nanny: it is for the nannies instead; None: as its class says.
        """
        _refuse_class(plugin)
        if nanny is None:
            nanny = isinstance(plugin, BASES[NANNY])
        return await self._register(NANNY if nanny else WORKER, plugin, name, None)

    async def register_scheduler_plugin(
        self, plugin: Any, name: str | None = None, idempotent: bool | None = None
    ) -> None:
        """As `register_plugin`, for the scheduler; also what only looks like a SchedulerPlugin."""
        _refuse_class(plugin)
        await self._register(SCHEDULER, plugin, name, idempotent)

    async def register_nanny_plugin(
        self, plugin: Any, name: str | None = None, idempotent: bool | None = None
    ) -> Any:
        """As `register_plugin`, for the nannies; also what only looks like a NannyPlugin."""
        _refuse_class(plugin)
        return await self._register(NANNY, plugin, name, idempotent)

    async def register_worker_callbacks(self, setup: Callable[..., Any] | None = None) -> Any:
        """Have a function called in every worker, those that come later included.

        Args:
            setup: given the worker as `dask_worker` if it takes that.
        """
        if setup is None:
            return {}
        return await self._register(WORKER, CallbackPlugin(setup), None, None)

    async def unregister_worker_plugin(self, name: str, nanny: bool | None = None) -> Any:
        """Tear a plugin of the workers down, or of the nannies.

        Args:
            nanny: it is one of the nannies.

        Returns:
            Worker -> {"status": "OK"}.

        Raises:
            ValueError: there is none of that name.
            BaseException: what its `teardown` raised; of the first worker where it did.
        """
        return await self._unregister(NANNY if nanny else WORKER, name)

    async def unregister_scheduler_plugin(self, name: str) -> None:
        """Tell a plugin of the scheduler no more.

        Raises:
            ValueError: there is none of that name.
        """
        await self._unregister(SCHEDULER, name)

    async def _register(
        self, kind: str, plugin: Any, name: str | None, idempotent: bool | None
    ) -> Any:
        if idempotent is None:
            idempotent = bool(getattr(plugin, "idempotent", False))
        part = Plugin(name_of(plugin, name), dump_function(plugin), idempotent)
        outcomes = await self.session.call(lambda n: RegisterPlugin(n, kind, part))
        return None if kind == SCHEDULER else _shown(outcomes)

    async def _unregister(self, kind: str, name: str) -> Any:
        outcomes = await self.session.call(lambda n: UnregisterPlugin(n, kind, name))
        return None if kind == SCHEDULER else _shown(outcomes)


def _shown(outcomes: Mapping[str, Outcome]) -> dict[str, dict[str, str]]:
    """Worker -> that it went well; raises if it did not."""
    for outcome in outcomes.values():
        if outcome.failure is not None:
            raise from_failure(outcome.failure)
    return {worker: {"status": "OK"} for worker in outcomes}


def _kind_of(plugin: Any) -> str:
    """Where a plugin may live.  Raises TypeError."""
    _refuse_class(plugin)
    for kind, base in BASES.items():
        if isinstance(plugin, base):
            return kind
    raise PluginOfNoKind(type(plugin).__name__)


def _refuse_class(plugin: Any) -> None:
    if isinstance(plugin, type):
        raise PluginIsAClass(plugin.__name__)
