"""What a worker answers to by name, and the methods that upstream's has for it.

`worker.handlers` is a dict, made when somebody first looks at it: what is documented, and what
programs add.  `scheduler.broadcast` and `rpc(worker.address)` call these.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import Any, Final

from shoal.comms.addresses import parse_address
from shoal.comms.functions import call_function
from shoal.ids import Key
from shoal.observe.handling import report_of
from shoal.observe.inside import current_task
from shoal.observe.named import CONVERSATION, LATER, CalledByName
from shoal.protocol.handshake import CLIENT
from shoal.protocol.keys import from_canonical, to_canonical
from shoal.protocol.messages import Message
from shoal.protocol.named import CallNamed
from shoal.protocol.running import Outcome

BY_NAME: Final[Mapping[str, str]] = {
    "benchmark_disk": "benchmark_disk",
    "benchmark_memory": "benchmark_memory",
    "benchmark_network": "benchmark_network",
    "call_stack": "get_call_stack",
    "echo": "echo",
    "get_data": "get_data",
    "get_logs": "get_logs",
    "get_story": "get_story",
    "identity": "identity",
    "keys": "held_keys",
    "ping": "ping",
    "plugin-add": "plugin_add",
    "plugin-remove": "plugin_remove",
    "run": "run",
    "run_coroutine": "run_coroutine",
    "terminate": "end_soon",
    "upload_file": "upload_file",
    "versions": "versions",
}
"""Operation -> the method that answers to it."""

REFUSED: Final[Mapping[str, str]] = {
    "actor_attribute": CONVERSATION,
    "actor_execute": CONVERSATION,
    "free_keys": "The scheduler has results dropped that nobody wants.",
    "gather": "client.replicate makes copies.",
    "get_monitor_info": LATER,
    "profile": LATER,
    "profile_metadata": LATER,
    "update_data": "client.scatter gives values to workers.",
}
"""Operations that upstream's has and this one has not -> why, or what to do instead."""


class Named(CalledByName):
    """The part of a worker that is called by name, and what it tells when it is asked so."""

    by_name = BY_NAME
    reasons = REFUSED

    @cached_property
    def extensions(self) -> dict[str, Any]:
        """What programs keep beside the worker, by name."""
        return {}

    @property
    def blocked_handlers(self) -> Collection[str]:
        """Operations that it refuses, by their historical names."""
        return ()

    @property
    def _called(self) -> str:
        return f"the worker at {self.worker_address}"

    # --- what it is --------------------------------------------------------------------------

    @property
    def worker_address(self) -> str:
        """Where peers reach it."""
        return str(self._service.address)

    @property
    def host(self) -> str:
        """The host of its address; empty if it is reached within this machine only."""
        return parse_address(self.worker_address).host

    ip = host

    @property
    def port(self) -> int:
        """The port of its address; 0 if it is reached within this machine only."""
        return parse_address(self.worker_address).port

    @property
    def services(self) -> dict[str, int]:
        """What else its process serves; nothing."""
        return {}

    @property
    def logs(self) -> Any:
        """As `get_logs()`."""
        return self._service.get_logs()

    def identity(self) -> dict[str, Any]:
        """What it is, in plain types."""
        worker = self._service
        return {
            "type": type(worker).__name__,
            "id": str(worker.name),
            "scheduler": worker.scheduler_address,
            "address": worker.address,
            "name": worker.name,
            "nthreads": worker.nthreads,
            "memory_limit": worker.memory_limit,
            "status": worker.status.value,
        }

    # --- what it tells -----------------------------------------------------------------------

    def ping(self) -> bytes:
        """That it is there."""
        return b"pong"

    def versions(self, packages: Iterable[str] | None = None) -> dict[str, Any]:
        """What is installed here: `host` and `packages`."""
        from shoal.observe.versions import get_versions

        return get_versions(packages)

    def held_keys(self) -> list[Any]:
        """Keys of the results that it holds."""
        return list(self._service.data)

    async def get_data(
        self, comm: Any, keys: Collection[Any], who: str | None = None, serializers: Any = None
    ) -> dict[str, Any]:
        """Results that it holds, for programs: `{"status": "OK", "data": {key: value}}`.

        Workers and clients fetch results in another way, which copies nothing.

        Args:
            who, serializers: not used.
        """
        held = self._service.data
        return {"status": "OK", "data": {key: held[key] for key in keys if key in held}}

    def get_call_stack(self, keys: Collection[Any] | None = None) -> dict[Any, tuple[str, ...]]:
        """Key of each task that runs here -> its frames; of `keys`, or of all."""
        wanted = None if keys is None else frozenset(map(to_canonical, keys))
        stacks = self._service.feed.threads.stacks()
        return {
            from_canonical(key): tuple(frames)
            for key, frames in stacks.items()
            if wanted is None or key in wanted
        }

    async def get_story(self, keys_or_stimuli: Iterable[Any]) -> list[Any]:
        """What was recorded of keys or stimuli, oldest first."""
        return list(self._service.state.story(*keys_or_stimuli))

    def get_current_task(self) -> Any:
        """The key of the task that calls this.

        Raises:
            ValueError: no task does.
        """
        task = current_task.get()
        if task is None:
            raise ValueError("no task runs where get_current_task() is called")
        return from_canonical(Key(task.key))

    async def benchmark_disk(self) -> dict[str, float]:
        """Size -> bytes per second, in its folder; takes a second."""
        from shoal.worker.shell import speeds

        return await asyncio.to_thread(speeds.of_disk, self._service.local_directory)

    async def benchmark_memory(self) -> dict[str, float]:
        """Size -> bytes per second; takes a second."""
        from shoal.worker.shell import speeds

        return await asyncio.to_thread(speeds.of_memory)

    async def benchmark_network(self, address: str) -> dict[str, float]:
        """Size -> bytes per second from the worker at `address`; takes a second."""
        from shoal.worker.shell import speeds

        return await speeds.of_network(self._service.feed.exchange, address)

    # --- what it does ------------------------------------------------------------------------

    async def run(
        self,
        comm: Any,
        function: Any,
        args: Any = (),
        wait: bool = True,
        kwargs: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Call a function here: `{"status": "OK", "result": ...}`, or `error` and the exception.

        Args:
            function: it, or its pickle; `dask_worker=` is given if it takes that.
            args: a tuple, or its pickle; so with `kwargs`.
        """
        offered = {"dask_worker": self}
        return await report_of(call_function, function, args, kwargs, offered, wait=wait)

    async def run_coroutine(
        self,
        comm: Any,
        function: Any,
        args: Any = (),
        kwargs: Mapping[str, Any] | None = None,
        wait: bool = True,
    ) -> dict[str, Any]:
        """As `run`, which takes coroutine functions too."""
        return await self.run(comm, function, args, wait, kwargs)

    def end_soon(self, reason: str = "it was asked for by name", **kwargs: Any) -> str:
        """Close, once this is answered."""
        self._service._close_soon(reason)
        return "OK"

    async def wait_until_closed(self) -> None:
        """As `finished`."""
        await self._service.finished()

    async def close_gracefully(
        self, restart: bool | None = None, reason: str = "worker-close-gracefully"
    ) -> None:
        """Leave the cluster: others take what only it holds, then it closes.

        If nobody can take that, or the scheduler is out of reach, it closes all the same.

        Args:
            restart: not used; whoever keeps it starts another if that is wanted.
        """
        worker = self._service
        if worker.keyring.key(CLIENT) is not None:  # else it can't ask for that
            with contextlib.suppress(OSError):  # the answer may come too late for us
                await self.rpc(worker.scheduler_address).retire_workers(workers=[worker.address])
        await worker.close(reason=reason)


async def on_call_named(worker: Named, call: CallNamed) -> Outcome:
    """Call what the worker has under a name."""
    return await worker.answer_by_name(call.name, call.arguments)


OPERATIONS: Final[dict[type[Message], Any]] = {CallNamed: on_call_named}
