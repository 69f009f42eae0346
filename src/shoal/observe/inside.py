"""Which task, on which worker, the calling code is part of: set by workers, asked by clients.

A task that waits for the results of other tasks holds a thread that those may need.  So whoever is
about to wait says so, and the worker puts a substitute in its place for as long as it waits.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import Any, Final, Protocol
from uuid import uuid4

from shoal.observe.errors import NotInTask

_PROCESS: Final = uuid4().hex


def this_process() -> str:
    """A name of this process that no other has, on whatever host; those of forks differ too."""
    return f"{_PROCESS}-{os.getpid()}"


class TaskHost(Protocol):
    """What a client asks of the worker whose task it serves."""

    @property
    def address(self) -> str:
        """Where peers reach it."""

    @property
    def loop(self) -> Any:
        """The event loop that it lives on."""

    @property
    def scheduler_address(self) -> str:
        """The scheduler that it works for."""

    @property
    def client_keyring(self) -> Any:
        """What proves a client of its tasks; None: it has to be looked up by the address."""

    @property
    def before_close(self) -> list[Callable[[], object]]:
        """Functions that are called, on its loop, as it begins to close."""

    @property
    def is_closing(self) -> bool:
        """Whether it has begun to close, or has closed."""

    def log_event(self, topic: Any, msg: Any) -> None:
        """Tell something under a topic, or several.  From any thread."""

    def on_waiting(self, task: RunningTask, change: int) -> None:
        """`task` waits for so many results of others more, or less.  From any thread."""

    def keep(self, values: Sequence[tuple[int, str, Any, int]], epoch: int) -> Future[None]:
        """Hold these from now on: (number, key, value, bytes).  From any thread.

        It fails as a peer that is out of reach would, if the numbers are of another epoch.
        """

    def on_secede(self, task: RunningTask) -> None:
        """`task` goes on, and others have its slot.  From any thread."""

    def on_rejoin(self, task: RunningTask, *, waits: bool) -> None:
        """`task` has a slot again; it `waits` until one is free.  From any thread."""


class RunningTask(Protocol):
    """A run that a thread, or a coroutine, is busy with."""

    @property
    def worker(self) -> TaskHost:
        """Where it runs."""

    @property
    def key(self) -> str:
        """Of the task."""

    @property
    def has_seceded(self) -> bool:
        """Whether it goes on without a slot."""


current_task: Final[ContextVar[RunningTask | None]] = ContextVar("current_task", default=None)
"""The one that the calling code is part of; None outside of tasks."""


class _Waiting:
    """That a task waits for others."""

    __slots__ = ("_task",)

    def __init__(self, task: RunningTask) -> None:
        self._task = task

    def __enter__(self) -> None:
        self._task.worker.on_waiting(self._task, 1)

    def __exit__(self, *exception: object) -> None:
        self._task.worker.on_waiting(self._task, -1)


_OUTSIDE: Final = nullcontext()


def waiting_for_tasks(task: RunningTask | None = None) -> AbstractContextManager[None]:
    """While this context lasts, the calling task waits for others.

    Args:
        task: in place of the calling one, for code that does not run where that does.

    Cost outside of tasks: 0.2 us.
    """
    if task is None:
        task = current_task.get()
    return _OUTSIDE if task is None else _Waiting(task)


def secede() -> None:
    """Give the slot of the calling task to others, and go on.

    Another thread takes its place in the worker, the task is long-running until it ends or rejoins,
    and how long it takes is no longer counted.  A task that waits for the results of others need
    not do this: it has a substitute by itself while it waits.  Nothing happens if it has seceded
    before.

    Raises:
        NotInTask: the caller is part of no task (a ValueError).
    """
    task = _calling_task("secede")
    task.worker.on_secede(task)


def rejoin() -> None:
    """Wait for a free slot, before all tasks that have not begun, and take it.

    A task that is a coroutine does not wait: it takes one more, until another task ends.  Nothing
    happens if the task has not seceded, and nobody waits beyond the end of the worker.

    Raises:
        NotInTask: the caller is part of no task (a ValueError).
    """
    task = _calling_task("rejoin")
    task.worker.on_rejoin(task, waits=not _is_on_loop())


def _calling_task(name: str) -> RunningTask:
    task = current_task.get()
    if task is None:
        raise NotInTask(name)
    return task


def _is_on_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
