"""Plugins of the scheduler, and those that it has its workers and their nannies set up.

A worker that comes is registered once its own plugins, and those of its nanny, are set up.  Then it
is held, which is to say that nothing is sent to it, until the hooks that are told of it are done.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Final, Protocol

from shoal.ids import Key
from shoal.observe.errors import PluginUnknown
from shoal.observe.hooking import PluginTable, end_hook, is_overridden
from shoal.observe.hooks import NANNY, WORKER, SchedulerPlugin
from shoal.observe.reasons import RESTARTED
from shoal.protocol import payload
from shoal.protocol.exceptions import to_failure
from shoal.protocol.framing import ProtocolError
from shoal.protocol.messages import Failure, RegisterWorker, Shutdown
from shoal.protocol.plugins import (
    RESTARTS,
    AddPlugins,
    Plugin,
    PluginsComing,
    RemovePlugin,
)
from shoal.protocol.running import Outcome
from shoal.scheduler.machine.step import SchedulerMachine
from shoal.scheduler.model.entities import Client, Task, Worker
from shoal.scheduler.model.restarts import Replaced
from shoal.scheduler.shell.host import Asker
from shoal.scheduler.shell.reaching import ask, ask_nanny, say
from shoal.scheduler.shell.watching import Watcher

logger = logging.getLogger("shoal.scheduler")

WATCHED: Final = (
    "update_graph",
    "transition",
    "restart",
    "log_event",
    "valid_workers_downscaling",
)
"""Hooks for whose sake every step is looked at."""

HOOKS: Final = (
    *WATCHED,
    "before_close",
    "close",
    "add_worker",
    "remove_worker",
    "add_client",
    "remove_client",
)

CLOSE_SECONDS_MAX: Final = 30.0
"""What one plugin may take to close while the scheduler goes on."""

LARGE_NBYTES: Final = 1_000_000
NLARGE_MAX: Final = 4
"""So many workers at a time are sent a plugin that is larger than that."""

RESTART_SECONDS_MAX: Final = 60.0
"""How long whoever registers a plugin waits for the workers that are started anew for it."""


class Held(Asker, Protocol):
    """The connection of a worker, which may have to wait."""

    def admit(self, message: RegisterWorker) -> None:
        """A worker that had to wait is registered now."""

    @property
    def is_held(self) -> bool:
        """Whether what is to be sent is kept."""

    def hold(self) -> None:
        """From now on, keep what is to be sent."""

    def release(self) -> None:
        """Send what was kept, and whatever comes from now on."""


class Plugins:
    """All plugins that a scheduler knows of, and whom they are told of."""

    def __init__(self, scheduler: Any, machine: SchedulerMachine) -> None:
        """No plugins yet.  `scheduler`: what theirs are given."""
        self.table = PluginTable(SchedulerPlugin, HOOKS, logger, "the scheduler")
        self.for_workers: dict[str, Plugin] = {}
        self.for_nannies: dict[str, Plugin] = {}
        self.gone: dict[Key, Task] = {}
        """Tasks that were forgotten in the step that plugins are being told of."""
        self._scheduler = scheduler
        self._machine = machine
        self._watcher: Watcher | None = None
        self._running: set[asyncio.Task[None]] = set()  # only to keep them alive
        self._awaited: list[tuple[Replaced, asyncio.Future[None]]] = []  # sent away, to come again
        self._large = asyncio.Semaphore(NLARGE_MAX)
        self._on_preparations: Callable[[bool], None] | None = None

    # --- the scheduler's own -----------------------------------------------------------------

    def add(self, name: str, plugin: Any) -> None:
        """Have a plugin told of everything from now on; it takes the place of one of its name."""
        before = self.table.remove(name) if name in self.table.by_name else None
        self.table.add(name, plugin)
        self._watch()
        if before is not None and before is not plugin:
            self._end(name, before)

    def remove(self, name: str) -> None:
        """Tell a plugin no more, and close it.  Raises PluginUnknown."""
        plugin = self.table.remove(name)
        self._watch()
        self._end(name, plugin)

    def tell_of_preparations(self, changed: Callable[[bool], None]) -> None:
        """Have `changed` told whether plugins have something to do before the scheduler closes."""
        self._on_preparations = changed
        if self._prepares:
            changed(True)

    @property
    def _prepares(self) -> bool:
        return bool(self.table.having("before_close"))

    def _end(self, name: str, plugin: Any) -> None:
        """Close a plugin that was told everything, as the scheduler goes on without it."""

        async def end() -> None:
            try:
                async with asyncio.timeout(CLOSE_SECONDS_MAX):
                    await end_hook(name, "close", plugin.close)
            except Exception:
                logger.exception("The plugin %s, which is here no more, did not close", name)

        if is_overridden(plugin, SchedulerPlugin, "close"):
            self._scheduler.membership.stepping.call_soon(lambda: self._in_background(end()))

    def _watch(self) -> None:
        """Look at every step while a plugin wants to know of it; others have changed as well."""
        if self._on_preparations is not None:
            self._on_preparations(self._prepares)
        is_wanted = any(self.table.having(hook) for hook in WATCHED)
        if self._watcher is not None and is_wanted:
            self._watcher.look_again()  # what it has heard the beginning of has yet to end
        elif self._watcher is not None:
            self._watcher.end()
            self._watcher = None
        elif is_wanted:
            self._watcher = Watcher(self._scheduler, self._machine, self.table, self.gone)
        self._scheduler.membership.stepping.watcher = self._watcher

    async def call_and_wait(self, hook: str, seconds: float) -> None:
        """Call a hook of everybody; returns when what it started has ended, or takes too long.

        Args:
            seconds: what all of them may take together; the log names those that take longer.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        for name, awaited in self.table.call(hook):
            work = asyncio.ensure_future(self.table.finish(hook, name, awaited))
            _, late = await asyncio.wait((work,), timeout=max(0.0, deadline - loop.time()))
            if late:
                work.cancel()
                logger.error(
                    "The hook %s of the plugin %s is cut short: all together may take %.3g s",
                    hook,
                    name,
                    seconds,
                )

    def call(self, hook: str, *args: Any, **kwargs: Any) -> None:
        """Call a hook of everybody who has it; for coroutines nobody waits."""
        if self.table.having(hook):
            for name, awaited in self.table.call(hook, *args, **kwargs):
                self._in_background(self.table.finish(hook, name, awaited))

    def close(self) -> None:
        """Give up what was still waited for."""
        for task in list(self._running):
            task.cancel()

    # --- who comes and goes ------------------------------------------------------------------

    @property
    def holds_newcomers(self) -> bool:
        """Whether hooks are told of a worker that joins, before anything is sent to it."""
        return bool(self.table.having("add_worker"))

    def worker_must_wait(self, peer: Held, message: RegisterWorker) -> bool:
        """Whether a worker, or its nanny, has plugins to set up before it is registered."""
        if self.for_workers or (self.for_nannies and message.has_nanny):
            self._in_background(self._prepare(peer, message))
            return True
        return False

    async def _prepare(self, peer: Held, message: RegisterWorker) -> None:
        """Have them set up; the worker is registered then, or sent away for another to come.

        All of it ends with its connection.
        """
        restarts = False
        try:
            say(peer, PluginsComing())
            restarts = await self._prepare_all(peer, message)
        except OSError:
            return  # it has gone
        except Exception:  # it shall not wait for ever for what is an error of ours
            logger.exception("The plugins of the worker at %s are not set up", message.address)
        if restarts:
            say(peer, Shutdown(RESTARTED))
            peer.connection.close()
            return
        try:
            peer.admit(message)
        except (OSError, ProtocolError) as error:  # we close, or it contradicts itself
            logger.warning("The worker at %s is turned away: %s", message.address, error)
            peer.connection.abort()

    async def _prepare_all(self, peer: Held, message: RegisterWorker) -> bool:
        """Have a worker and its nanny set up all that there is in the end, and nothing that has
        been removed; whether the worker has to be started anew.

        Plugins may come and go with every answer; nothing comes between the last look and the end.
        """
        address, restarts = message.address, False
        beside: dict[str, Plugin] = {}  # what its nanny has been sent
        inside: dict[str, Plugin] = {}  # and what it has been sent itself
        while True:
            for_nanny = self.for_nannies if message.has_nanny else {}
            if plugin := _missing(for_nanny, beside):
                beside[plugin.name] = plugin
                outcome = await self._add_to_nanny(peer, plugin, _packed(plugin))
                restarts = restarts or outcome.value == RESTARTS
                _warn(plugin.name, f"the nanny of the worker at {address}", outcome)
            elif name := _superfluous(for_nanny, beside):
                del beside[name]
                await ask_nanny(peer, "plugin-remove", name.encode())
            elif restarts:
                return True
            elif plugin := _missing(self.for_workers, inside):
                inside[plugin.name] = plugin
                outcome = await self._add_to_worker(peer, plugin)
                _warn(plugin.name, f"the worker at {address}", outcome)
            elif name := _superfluous(self.for_workers, inside):
                del inside[name]
                await ask(peer, partial(RemovePlugin, name=name))
            else:
                return False

    async def _add_to_worker(self, peer: Asker, plugin: Plugin) -> Outcome:
        """Have a worker set a plugin up.  Raises OSError: it has gone."""
        told: dict[str, Failure] | Outcome = await ask(
            peer, partial(AddPlugins, plugins=[plugin]), turn=self._turn_of(plugin)
        )
        return told if isinstance(told, Outcome) else Outcome(failure=told.get(plugin.name))

    async def _add_to_nanny(self, peer: Asker, plugin: Plugin, packed: bytes) -> Outcome:
        """Have a worker's nanny set a plugin up.  Raises OSError: the worker has gone."""
        return await ask_nanny(peer, "plugin-add", packed, turn=self._turn_of(plugin))

    def _turn_of(self, plugin: Plugin) -> asyncio.Semaphore | None:
        """What large ones wait for, lest there be a copy for every worker at the same time."""
        return self._large if len(plugin.payload) > LARGE_NBYTES else None

    def worker_came(self, peer: Held, worker: Worker) -> None:
        """A worker has registered; it is held if `holds_newcomers` was true as it did."""
        if peer.is_held:
            hooks = self.table.call("add_worker", scheduler=self._scheduler, worker=worker.address)
            self._in_background(self._finish_hooks(peer, worker, hooks))
        else:
            self._has_come_again(worker)

    def _has_come_again(self, worker: Worker) -> None:
        """Somebody may have waited for it."""
        for replaced, waiting in self._awaited:
            if replaced.is_followed_by(worker) and not waiting.done():
                waiting.set_result(None)

    def worker_gone(self, worker: Worker, reason: str) -> None:
        """A worker is no longer registered."""
        if self.table.having("remove_worker"):
            self.call(
                "remove_worker",
                scheduler=self._scheduler,
                worker=worker.address,
                stimulus_id=f"worker-lost-{self._machine.nsteps}",
                reason=reason,
            )

    def client_came(self, client: Client) -> None:
        """A client has registered."""
        self.call("add_client", scheduler=self._scheduler, client=client.name)

    def client_gone(self, client: Client) -> None:
        """A client's connection has ended."""
        if self._watcher is not None:
            self._watcher.forget(client)
        self.call("remove_client", scheduler=self._scheduler, client=client.name)

    async def _finish_hooks(
        self, peer: Held, worker: Worker, hooks: Sequence[tuple[str, Awaitable[Any]]]
    ) -> None:
        """Wait for what hooks have begun, then let the worker have what was kept for it."""
        try:
            if hooks:
                say(peer, PluginsComing())
                finishing = (self.table.finish("add_worker", name, hook) for name, hook in hooks)
                await asyncio.gather(*finishing)
        finally:
            peer.release()
        self._has_come_again(worker)

    # --- workers' and nannies' ---------------------------------------------------------------

    async def register_elsewhere(self, kind: str, plugin: Plugin) -> dict[str, Outcome]:
        """Have all workers, or their nannies, set a plugin up, and those to come."""
        known = self.for_workers if kind == WORKER else self.for_nannies
        if plugin.name in known and plugin.idempotent:
            return {}
        known[plugin.name] = plugin
        packed = _packed(plugin) if kind == NANNY else b""
        return await self._each(kind, lambda worker: self._set_up(worker, kind, plugin, packed))

    async def unregister_elsewhere(self, kind: str, name: str) -> dict[str, Outcome]:
        """Have all workers, or their nannies, tear a plugin down.  Raises PluginUnknown."""
        known = self.for_workers if kind == WORKER else self.for_nannies
        if name not in known:
            raise PluginUnknown(name, "the cluster")
        del known[name]
        return await self._each(kind, lambda worker: self._tear_down(worker, kind, name))

    async def _each(
        self, kind: str, ask: Callable[[Worker], Coroutine[Any, Any, Outcome]]
    ) -> dict[str, Outcome]:
        """What comes of it at each worker; those that go meanwhile are left out."""
        workers = [w for w in self._machine.state.workers.values() if kind == WORKER or w.has_nanny]
        outcomes = await asyncio.gather(*map(ask, workers), return_exceptions=True)
        found: dict[str, Outcome] = {}
        for worker, outcome in zip(workers, outcomes, strict=True):
            if isinstance(outcome, Outcome):
                found[worker.address] = outcome
            elif not isinstance(outcome, OSError):
                assert isinstance(outcome, Exception), outcome
                found[worker.address] = Outcome(failure=to_failure(outcome, worker=worker.address))
        return found

    async def _set_up(self, worker: Worker, kind: str, plugin: Plugin, packed: bytes) -> Outcome:
        peer = self._scheduler.peer_of(worker)
        if kind == WORKER:
            return await self._add_to_worker(peer, plugin)
        outcome = await self._add_to_nanny(peer, plugin, packed)
        if outcome.value == RESTARTS:
            await self._replace(worker)
        return outcome

    async def _replace(self, worker: Worker) -> None:
        """Send a worker away, and wait until another has taken its place."""
        if self._machine.state.workers.get(worker.address) is not worker:
            return  # another plugin has sent it away, or it went by itself
        replaced = Replaced(worker.address, worker.name, worker.host, worker.pid, worker.has_nanny)
        waiting = replaced, asyncio.get_running_loop().create_future()
        self._awaited.append(waiting)
        try:
            self._scheduler.dismiss(worker, RESTARTED)
            _, late = await asyncio.wait((waiting[1],), timeout=RESTART_SECONDS_MAX)
            if late:
                logger.warning(
                    "No worker has taken the place of %s within %.3g s", worker, RESTART_SECONDS_MAX
                )
        finally:
            self._awaited.remove(waiting)

    async def _tear_down(self, worker: Worker, kind: str, name: str) -> Outcome:
        peer = self._scheduler.peer_of(worker)
        if kind == WORKER:
            told: Failure | Outcome | None = await ask(peer, lambda n: RemovePlugin(n, name))
            return told if isinstance(told, Outcome) else Outcome(failure=told)
        return await ask_nanny(peer, "plugin-remove", name.encode())

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)


def _missing(wanted: dict[str, Plugin], sent: dict[str, Plugin]) -> Plugin | None:
    """The first that was not sent, in the order in which they were registered."""
    return next((p for name, p in wanted.items() if sent.get(name) is not p), None)


def _superfluous(wanted: dict[str, Plugin], sent: dict[str, Plugin]) -> str | None:
    """The name of one that was sent, and is gone since."""
    return next((name for name in sent if name not in wanted), None)


def _warn(name: str, where: str, outcome: Outcome) -> None:
    """Nobody waits for what comes of a plugin where a worker comes late, so the log has it."""
    if outcome.failure is not None:
        logger.warning("The plugin %s is not set up at %s: %s", name, where, outcome.failure.text)


def _packed(plugin: Plugin) -> bytes:
    """A plugin for a nanny; see `nanny/plugins.py`."""
    return payload.dump_function((plugin.name, plugin.payload, plugin.idempotent))
