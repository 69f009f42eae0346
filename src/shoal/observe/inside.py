"""Which task, on which worker, the calling code is part of: set by workers, asked by clients.

A task that waits for the results of other tasks holds a thread that those may need.  So whoever is
about to wait says so, and the worker puts a substitute in its place for as long as it waits.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import Any, Final, Protocol


class TaskHost(Protocol):
    """What a client asks of the worker whose task it serves."""

    @property
    def scheduler_address(self) -> str:
        """The scheduler that it works for."""

    @property
    def client_keyring(self) -> Any:
        """What proves a client of its tasks; None: it has to be looked up by the address."""

    @property
    def before_close(self) -> list[Callable[[], object]]:
        """Functions that are called, on its loop, as it begins to close."""

    def on_waiting(self, change: int) -> None:
        """So many tasks more, or less, wait for other tasks.  From any thread."""


class RunningTask(Protocol):
    """A run that a thread, or a coroutine, is busy with."""

    @property
    def worker(self) -> TaskHost:
        """Where it runs."""

    @property
    def key(self) -> str:
        """Of the task."""


current_task: Final[ContextVar[RunningTask | None]] = ContextVar("current_task", default=None)
"""The one that the calling code is part of; None outside of tasks."""


class _Waiting:
    """That a task of `host` waits for others."""

    __slots__ = ("_host",)

    def __init__(self, host: TaskHost) -> None:
        self._host = host

    def __enter__(self) -> None:
        self._host.on_waiting(1)

    def __exit__(self, *exception: object) -> None:
        self._host.on_waiting(-1)


_OUTSIDE: Final = nullcontext()


def waiting_for_tasks() -> AbstractContextManager[None]:
    """While this context lasts, the calling task waits for others.

    Cost outside of tasks: 0.2 us.
    """
    task = current_task.get()
    return _OUTSIDE if task is None else _Waiting(task.worker)
