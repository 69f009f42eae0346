"""The executors of a worker: what runs tasks that ask for one by its name, or all of them.

A run has its slot, and its thread waits for the executor, so a worker runs no more tasks at once
than it has threads, whoever runs them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextvars import copy_context
from threading import Lock, Thread
from typing import Any, Final

from shoal.protocol.messages import RunTask
from shoal.protocol.slots import RunTaskIn
from shoal.worker.shell.errors import UnknownExecutor

logger = logging.getLogger("shoal.worker")

DEFAULT: Final = "default"
OFFLOAD: Final = "offload"
ACTOR: Final = "actor"
_MADE_AT_NEED: Final = (ACTOR, DEFAULT, OFFLOAD)


class Executors(MutableMapping[str, Any]):
    """By name.  Those that are not given are made when somebody looks at them."""

    def __init__(
        self, worker: str, nthreads: int, given: Any, threads_of_tasks: Callable[[], set[Thread]]
    ) -> None:
        """`given`: one, some by name, "offload" or None; as `Worker` takes it."""
        self._worker = worker
        self._nthreads = nthreads
        self._threads_of_tasks = threads_of_tasks
        self._by_name: dict[str, Any] = {}
        self._default = DEFAULT
        self._making = Lock()
        self._is_closed = False
        if given == OFFLOAD:
            self._default = OFFLOAD
        elif isinstance(given, Mapping):
            self._by_name.update(given)
        elif given is not None:
            self._by_name[DEFAULT] = given

    def run(
        self,
        message: RunTask,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """What `function` returns, called by the executor that a run asks for.

        In a pool of threads the function is part of the task, as elsewhere; in processes it is not,
        so that actors, which live in this process, are made by the calling thread.

        Raises:
            UnknownExecutor: there is none of that name.
            BaseException: whatever the function raises, or the executor.
        """
        name = message.executor if isinstance(message, RunTaskIn) else ""
        executor = self._of_tasks(name or DEFAULT)
        if isinstance(executor, TaskThreads):
            return function(*args, **kwargs)
        if isinstance(executor, ThreadPoolExecutor):
            return executor.submit(copy_context().run, function, *args, **kwargs).result()
        if _makes_actor(function, args):
            return function(*args, **kwargs)
        return executor.submit(function, *args, **kwargs).result()

    def _of_tasks(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise UnknownExecutor(name, sorted(self)) from None

    def close(self) -> None:
        """Shut all of them down, those that were given too; nobody waits for what they run."""
        with self._making:
            self._is_closed = True
            executors = list(self._by_name.items())
        for name, executor in executors:
            try:
                executor.shutdown(wait=False)
            except Exception:  # it may be anybody's
                logger.exception("The executor %r can't be shut down", name)

    def __getitem__(self, name: str) -> Any:
        if name == DEFAULT:
            name = self._default
        executor = self._by_name.get(name)
        if executor is None and name in _MADE_AT_NEED:
            with self._making:
                if name not in self._by_name:
                    self._by_name[name] = self._made(name)
                executor = self._by_name[name]
        if executor is None:
            raise KeyError(name)
        return executor

    def _made(self, name: str) -> Executor:
        executor: Executor
        prefix = f"shoal-worker-{self._worker}-{name}"
        if name == DEFAULT:
            executor = TaskThreads(self._nthreads, prefix, self._threads_of_tasks)
        else:
            executor = ThreadPoolExecutor(1, prefix)
        if self._is_closed:  # a task that was left behind asks: nobody would end its threads
            executor.shutdown()
        return executor

    def __setitem__(self, name: str, executor: Any) -> None:
        self._by_name[name] = executor

    def __delitem__(self, name: str) -> None:
        del self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*_MADE_AT_NEED, *self._by_name)))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _makes_actor(function: Any, args: Sequence[Any]) -> bool:
    """Whether a task, which may be one of a graph, makes an actor."""
    if getattr(function, "makes_actor", False):
        return True
    return bool(args) and getattr(getattr(args[0], "func", None), "makes_actor", False) is True


class TaskThreads(Executor):
    """The worker's own threads, as an executor.

    What is submitted here is no task: it is called beside those, in as many threads more.
    """

    def __init__(
        self, nthreads: int, prefix: str, threads_of_tasks: Callable[[], set[Thread]]
    ) -> None:
        """`threads_of_tasks`: those that run tasks and have a slot."""
        self._max_workers = nthreads
        self._threads_of_tasks = threads_of_tasks
        self._beside = ThreadPoolExecutor(nthreads, prefix)  # its threads start at need

    @property
    def _threads(self) -> set[Thread]:
        """Under the name that programs know; of those that run tasks."""
        return self._threads_of_tasks()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call a function.

        Raises:
            RuntimeError: the worker has closed.
        """
        return self._beside.submit(fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take on nothing more; tasks are not concerned."""
        self._beside.shutdown(wait=wait, cancel_futures=cancel_futures)
