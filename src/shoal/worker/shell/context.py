"""Which worker, and which run, the code that asks is part of."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, Protocol, cast

from shoal.ids import Key
from shoal.observe.inside import TaskHost, current_task
from shoal.worker.model.entities import Run
from shoal.worker.shell.errors import NoWorkerHere


class Host(TaskHost, Protocol):
    """What code that runs in a task may ask of its worker."""

    is_leaving: bool
    """Whether the scheduler gives it nothing more."""

    @property
    def address(self) -> str:
        """Where peers reach it."""

    @property
    def name(self) -> object:
        """What it is called; unique in its cluster."""

    @property
    def nthreads(self) -> int:
        """How many tasks it runs at once."""

    @property
    def local_directory(self) -> str:
        """Where it may leave files."""

    @property
    def log_forwarding(self) -> Any:
        """What has its log records told under topics."""

    @property
    def recent_logs(self) -> Any:
        """The latest lines of its log."""

    @property
    def data(self) -> Mapping[Any, object]:
        """The results that it holds, by key."""

    @property
    def executors(self) -> Any:
        """What runs tasks, by name."""

    @property
    def blocked_handlers(self) -> Collection[str]:
        """Operations that it refuses, by their historical names."""

    def say_topics(self) -> None:
        """Send what was told under topics and has not been sent; on its loop."""

    def adopt_shards(self, task: Any, kept: Any) -> None:
        """What a transfer of a shuffle has kept elsewhere was copied here."""

    async def send_shards(self, connection: Any, message: Any) -> None:
        """A peer asks for what was kept here for an output partition of a shuffle."""

    def on_actor_call(self, connection: Any, message: Any, buffers: list[Any]) -> None:
        """Somebody calls an actor that it has, or reads from it."""


@dataclass(slots=True)
class RunContext:
    """The run that a thread, or a coroutine, is busy with."""

    worker: Host
    run: Run
    started_at: float = 0.0
    """When the user's function was called, of `perf_counter`."""

    has_seceded: bool = False
    actor: tuple[bytes, str] | None = None
    """Of a run that has made an actor: its proxy, pickled, and the kind of the object itself."""

    @property
    def key(self) -> Key:
        """Of the task."""
        return self.run.key


current_run: Final[ContextVar[RunContext | None]] = cast(Any, current_task)
current_worker: Final[ContextVar[Host | None]] = ContextVar("current_worker", default=None)

live_workers: Final[weakref.WeakSet[Host]] = weakref.WeakSet()
"""Those of this process that were started and not closed."""


def get_worker() -> Host:
    """The worker that runs the calling task; outside of tasks, the only one of this process.

    Raises:
        NoWorkerHere: neither applies (a ValueError).
    """
    run = current_run.get()
    if run is not None:
        return run.worker
    worker = current_worker.get()
    if worker is not None:
        return worker
    workers = list(live_workers)
    if len(workers) == 1:
        return workers[0]
    raise NoWorkerHere(len(workers))
