"""The base classes of plugins: what the services of a cluster tell whoever wants to know.

Every method is empty, and none that is left so costs anything.  A hook is called after the step of
the machine that it tells of, on its service's loop; what it raises is logged once and stops nobody,
but for `start` and `setup`, whose errors are those of whoever registers the plugin.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection
from typing import Any, ClassVar, Final


class SchedulerPlugin:
    """Lives in the scheduler's process.  `scheduler` is the scheduler, to be looked at."""

    name: str
    """What it is registered as; the class and a random number if it is not set."""

    idempotent: bool = False
    """Whether another one of its name changes nothing, instead of taking its place."""

    async def start(self, scheduler: Any) -> None:
        """It was registered, or the scheduler starts; awaited.  May be a plain method."""

    async def before_close(self) -> None:
        """The scheduler is about to close.

        Its workers are still connected if it is the first to close, as where a client shuts the
        cluster down, and in a LocalCluster, unless nobody has closed that before the program ends.
        """

    async def close(self) -> None:
        """The scheduler has closed, or goes on without this plugin."""

    def update_graph(
        self,
        scheduler: Any,
        *,
        client: str,
        keys: set[Any],
        tasks: list[Any],
        annotations: dict[str, dict[Any, Any]],
        priority: dict[Any, tuple[Any, ...]],
        stimulus_id: str,
        **kwargs: Any,
    ) -> None:
        """A client has submitted tasks.

        Args:
            keys: what it wants the results of.
            tasks: all keys, those wanted included.
            annotations: what was said about tasks, by its name and then by key.
            priority: smaller first, by key.
        """

    def restart(self, scheduler: Any) -> None:
        """A client restarts the cluster: all tasks have gone."""

    def transition(
        self, key: Any, start: str, finish: str, *args: Any, stimulus_id: str, **kwargs: Any
    ) -> None:
        """The state of a task has changed.

        Keyword arguments have what is known of the cause: `worker`, `nbytes`, `startstops` and
        `typename` of a result; `exception_text` and `traceback_text` of an error.
        """

    def add_worker(self, scheduler: Any, worker: str) -> Any:
        """A worker has joined; a coroutine is awaited before its first task is sent there."""

    def remove_worker(self, scheduler: Any, worker: str, *, stimulus_id: str, **kwargs: Any) -> Any:
        """A worker has gone.  May be a coroutine, for which nobody waits."""

    def add_client(self, scheduler: Any, client: str) -> None:
        """A client has connected."""

    def remove_client(self, scheduler: Any, client: str) -> None:
        """A client has gone."""

    def valid_workers_downscaling(self, scheduler: Any, workers: list[Any]) -> list[Any]:
        """Those of `workers` that may be closed; all, if it is not overridden."""
        return workers

    def log_event(self, topic: str, msg: Any) -> None:
        """Something was logged under a topic."""


class WorkerPlugin:
    """Lives in each worker's process, those that join later included."""

    name: str
    """What it is registered as; the class and a random number if it is not set."""

    idempotent: bool = False
    """Whether another one of its name changes nothing, instead of taking its place."""

    def setup(self, worker: Any) -> Any:
        """It has come to a worker, and before that one's first task.  May be a coroutine."""

    def teardown(self, worker: Any) -> Any:
        """The worker closes, or the plugin was removed.  May be a coroutine."""

    def transition(self, key: Any, start: str, finish: str, **kwargs: Any) -> None:
        """The state of a task at this worker has changed."""


class NannyPlugin:
    """Lives where a worker's process is started from, and outlives that process."""

    name: str
    """What it is registered as; the class and a random number if it is not set."""

    idempotent: bool = False
    """Whether another one of its name changes nothing, instead of taking its place."""

    restart: bool = False
    """Whether the worker is started anew once the plugin is set up."""

    def setup(self, nanny: Any) -> Any:
        """It has come to a nanny.  May be a coroutine."""

    def teardown(self, nanny: Any) -> Any:
        """The nanny closes, or the plugin was removed.  May be a coroutine."""


SCHEDULER: Final = "scheduler"
WORKER: Final = "worker"
NANNY: Final = "nanny"

BASES: Final[dict[str, type[Any]]] = {
    SCHEDULER: SchedulerPlugin,
    WORKER: WorkerPlugin,
    NANNY: NannyPlugin,
}
"""Where a plugin may live -> the base class of those that do."""


class CallbackPlugin(WorkerPlugin):
    """Calls a function as a worker starts; `client.register_worker_callbacks` makes one."""

    idempotent = True
    parameter: ClassVar[str] = "dask_worker"

    def __init__(self, function: Callable[..., Any]) -> None:
        """`function`: given the worker as `dask_worker` if it takes that."""
        from dask.base import tokenize  # few programs make one

        self.name = f"setup-{tokenize(function)}"
        takes_worker = self.parameter in _parameters_of(function)
        call = _call_with_worker if takes_worker else _call_alone
        self.setup = functools.partial(call, function)  # type: ignore[method-assign]


def _parameters_of(function: Callable[..., Any]) -> Collection[str]:
    """Names of what it takes; none of a builtin one that doesn't tell."""
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return ()


def _call_with_worker(function: Callable[..., Any], worker: Any) -> Any:
    return function(dask_worker=worker)


def _call_alone(function: Callable[..., Any], worker: Any) -> Any:
    return function()
