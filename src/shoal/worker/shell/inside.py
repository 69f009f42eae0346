"""What tasks ask of their worker, and tell it: that they wait, that they secede, who runs them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import cached_property
from importlib import import_module
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from shoal.ids import Epoch, Key, TaskId
from shoal.observe.inside import RunningTask
from shoal.protocol.handshake import CLIENT, Keyring
from shoal.protocol.keys import from_canonical
from shoal.worker.model.entities import Run
from shoal.worker.shell.context import RunContext
from shoal.worker.shell.errors import WrongEpoch
from shoal.worker.shell.replicas import Held

if TYPE_CHECKING:
    from shoal.worker.shell.belonging import Belonging
    from shoal.worker.shell.executors import Executors
    from shoal.worker.shell.feed import Feed
    from shoal.worker.shell.shuffling import Shuffles


_making: Final = threading.Lock()
"""One for all workers: what several threads may ask for at once is made once."""


class InsideTasks:
    """The part of a worker that serves the code of its tasks."""

    name: Any
    address: str
    nthreads: int
    _loop: asyncio.AbstractEventLoop
    _feed: Feed | None
    _keyring: Keyring | None
    _closing: asyncio.Task[None] | None
    _executor_given: Any
    _contact_address: str | None
    _belonging: Belonging | None

    def __init__(self) -> None:
        super().__init__()
        self._executors: Executors | None = None
        self._shuffles: Shuffles | None = None

    # --- what they look at ---------------------------------------------------------------------

    @cached_property
    def id(self) -> str:
        """Of this worker and no other, whatever its name and address."""
        return f"Worker-{uuid4()}"

    @property
    def contact_address(self) -> str | None:
        """What peers are told to connect to, where it was said that this is not its own."""
        return self._contact_address

    @property
    def active_threads(self) -> dict[int, Any]:
        """Number of a thread, as `threading` has it -> the key of the task that runs there."""
        running = {} if self._feed is None else self._feed.threads.active()
        return {ident: from_canonical(key) for ident, key in running.items()}

    async def heartbeat(self) -> None:
        """Say now how it fares, beside the times when it does so by itself."""
        if self._belonging is not None:
            self._belonging.tell()

    # --- tasks that wait for tasks -----------------------------------------------------------

    @property
    def client_keyring(self) -> Keyring | None:
        """What proves a client of its tasks; None: it has to be looked up by the address."""
        keyring = self._keyring
        return keyring if keyring is not None and keyring.key(CLIENT) is not None else None

    def on_waiting(self, task: RunningTask, change: int) -> None:
        """`task` waits for so many results of others more, or less.  From any thread."""
        assert isinstance(task, RunContext)
        self._tell_loop(self._count_waiting, task.run, change)

    def on_secede(self, task: RunningTask) -> None:
        """`task` goes on, and others have its slot.  From any thread."""
        assert isinstance(task, RunContext)
        feed = self._feed
        if feed is not None and feed.threads.secede(task.run):
            task.has_seceded = True
            seconds = perf_counter() - task.started_at
            self._tell_loop(self._note_seceded, task.run, seconds)

    def on_rejoin(self, task: RunningTask, *, waits: bool) -> None:
        """`task` has a slot again; it `waits` until one is free.  From any thread."""
        assert isinstance(task, RunContext)
        feed = self._feed
        if feed is not None and feed.threads.rejoin(task.run, waits=waits):
            task.has_seceded = False
            self._tell_loop(self._note_rejoined, task.run)

    def keep(self, values: Sequence[tuple[int, str, Any, int]], epoch: int) -> Future[None]:
        """Hold these from now on: (number, key, value, bytes).  From any thread.

        Raises, here or in the future:
            WrongEpoch: the numbers are of another epoch, or the worker has closed.
        """
        held = [Held(TaskId(task), Key(key), *rest) for task, key, *rest in values]
        keeping = self._keep(held, Epoch(epoch))
        try:
            return asyncio.run_coroutine_threadsafe(keeping, self._loop)
        except RuntimeError:  # the loop was closed under a task that was left behind
            keeping.close()
            raise WrongEpoch(self.address) from None

    async def _keep(self, values: Sequence[Held], epoch: Epoch) -> None:
        if self._feed is None or self._closing is not None or not self._feed.is_in(epoch):
            raise WrongEpoch(self.address)
        self._feed.on_put(values)

    def _tell_loop(self, tell: Callable[..., None], *args: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(tell, *args)
        except RuntimeError:
            pass  # the loop was closed under a task that was left behind

    def _count_waiting(self, run: Run, change: int) -> None:
        if self._feed is not None and self._closing is None:
            self._feed.count_waiting(run, change)

    def _note_seceded(self, run: Run, seconds: float) -> None:
        if self._feed is not None and self._closing is None:
            self._feed.on_seceded(run, seconds)

    def _note_rejoined(self, run: Run) -> None:
        if self._feed is not None and self._closing is None:
            self._feed.on_rejoined(run)

    # --- who runs them -----------------------------------------------------------------------

    @property
    def client(self) -> Any:
        """The client of its tasks; made when it is first asked for, if the process has none."""
        return import_module("shoal.client.current").client_of(self)  # clients know us, not we them

    @property
    def executor(self) -> Any:
        """What runs tasks that name no executor."""
        return self.executors["default"]

    @property
    def executors(self) -> Executors:
        """What runs tasks, by name: "default", "offload", "actor", and those that it was given.

        Tasks ask for one with `dask.annotate(executor="name")`.  More can be put in.
        """
        with _making:
            if self._executors is None:
                from shoal.worker.shell.executors import Executors

                self._executors = Executors(
                    str(self.name), self.nthreads, self._executor_given, self._threads_of_tasks
                )
            return self._executors

    @property
    def _has_default_executor(self) -> bool:
        """Whether one was given that has all tasks which name none."""
        given = self._executor_given
        return given is not None and not (isinstance(given, Mapping) and "default" not in given)

    @property
    def shuffles(self) -> Shuffles:
        """What it does for tasks that take part in shuffles; made when the first does."""
        with _making:
            if self._shuffles is None:
                self._shuffles = import_module("shoal.worker.shell.shuffling").Shuffles(self)
            return self._shuffles

    def adopt_shards(self, task: Any, kept: Any) -> None:
        """What a transfer of a shuffle has kept elsewhere was copied here."""
        self.shuffles.held.adopt(task, kept)

    async def send_shards(self, connection: Any, message: Any) -> None:
        """A peer asks for what was kept here for an output partition of a shuffle."""
        await self.shuffles.serve(connection, message)

    async def _end_shuffles(self) -> None:
        """Nothing is kept or sent any more."""
        if self._shuffles is not None:
            await self._shuffles.close()

    def _threads_of_tasks(self) -> set[Any]:
        return set() if self._feed is None else self._feed.threads.with_slots()

    def _end_executors(self) -> None:
        if self._executors is not None or self._executor_given is not None:
            self.executors.close()
