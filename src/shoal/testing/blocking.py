"""Workers and nannies that stop where a test wants to look, until it lets them go on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from shoal.nanny.service import Nanny
from shoal.observe.hooks import WorkerPlugin
from shoal.observe.status import Status
from shoal.worker.shell.service import Worker


class _Gate:
    """Where something stops: it says that it is there, and waits until it may go on."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.opened = asyncio.Event()

    async def passed(self) -> None:
        """Say so, and wait.  Ends with the test, which has a limit."""
        self.reached.set()
        await self.opened.wait()


class BlockedGatherDep(Worker):
    """Fetches inputs only once `block_gather_dep` is set; `in_gather_dep` says that it would."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        gate = self._gate = _Gate()
        self.in_gather_dep, self.block_gather_dep = gate.reached, gate.opened

    async def _set_up(self) -> Any:
        feed = await super()._set_up()
        _stop_before(feed._transfers, "fetch", self._gate)
        return feed


class BlockedGetData(Worker):
    """Gives results to nobody before `block_get_data` is set; `in_get_data` says that it would."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        gate = self._gate = _Gate()
        self.in_get_data, self.block_get_data = gate.reached, gate.opened

    async def _set_up(self) -> Any:
        feed = await super()._set_up()
        _begin_behind(feed.server, "on_get_replicas", self._gate, feed.spawn)
        return feed


class BlockedExecute(Worker):
    """Begins runs only once `block_execute` is set, and says that they ended once
    `block_execute_exit` is; `in_execute` and `in_execute_exit` say that it would."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._entry, self._exit = _Gate(), _Gate()
        self.in_execute, self.block_execute = self._entry.reached, self._entry.opened
        self.in_execute_exit, self.block_execute_exit = self._exit.reached, self._exit.opened

    async def _set_up(self) -> Any:
        feed = await super()._set_up()
        _begin_behind(feed.threads, "start", self._entry, feed.spawn)
        _begin_behind(feed.threads, "_on_ended", self._exit, feed.spawn)
        return feed


class BlockedInstantiateNanny(Nanny):
    """Starts its worker once `wait_instantiate` is set; `in_instantiate` says that it would."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        gate = self._gate = _Gate()
        self.in_instantiate, self.wait_instantiate = gate.reached, gate.opened

    async def instantiate(self) -> Status:
        """See `Nanny.instantiate`."""
        await self._gate.passed()
        return await super().instantiate()


class BlockedKillNanny(Nanny):
    """Ends its worker once `wait_kill` is set; `in_kill` says that it would."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        gate = self._gate = _Gate()
        self.in_kill, self.wait_kill = gate.reached, gate.opened

    async def kill(self, *args: Any, **kwargs: Any) -> None:
        """See `Nanny.kill`."""
        await self._gate.passed()
        await super().kill(*args, **kwargs)


class TaskStateMetadataPlugin(WorkerPlugin):
    """Notes at each worker when the runs of its tasks began and ended, as `metadata`."""

    name = "task-state-metadata"

    def setup(self, worker: Any) -> None:
        """See `WorkerPlugin`."""
        self.metadata: dict[Any, dict[str, float]] = {}

    def transition(self, key: Any, start: str, finish: str, **kwargs: Any) -> None:
        """See `WorkerPlugin`."""
        now = asyncio.get_running_loop().time()
        if finish == "executing":
            self.metadata[key] = {"start_time": now}
        elif start == "executing":
            self.metadata.setdefault(key, {})["stop_time"] = now


class UnhashableCallable:
    """One more, as an object that has no hash."""

    def __hash__(self) -> NoReturn:
        raise TypeError("unhashable type")

    def __call__(self, x: Any) -> Any:
        return x + 1


def _stop_before(owner: Any, name: str, gate: _Gate) -> None:
    """Have a coroutine function of one object wait for `gate` first."""
    function = getattr(owner, name)

    async def gated(*args: Any, **kwargs: Any) -> Any:
        await gate.passed()
        return await function(*args, **kwargs)

    setattr(owner, name, gated)


def _begin_behind(owner: Any, name: str, gate: _Gate, spawn: Callable[[Any], object]) -> None:
    """Have a function of one object called once `gate` is open, or at once if it is."""
    function = getattr(owner, name)

    async def call_later(args: Sequence[Any]) -> None:
        await gate.passed()
        function(*args)

    def gated(*args: Any) -> None:
        if gate.opened.is_set():
            function(*args)
        else:
            spawn(call_later(args))

    setattr(owner, name, gated)
