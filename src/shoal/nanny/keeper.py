"""One worker that is kept alive: its process, the process after that, until nobody wants it.

`NannyMachine` decides; this starts, watches and ends processes, keeps the time, and tells.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from time import monotonic
from typing import Any, Final, assert_never

from shoal import config
from shoal.nanny import telling
from shoal.nanny.errors import StartAbandoned
from shoal.nanny.logs import remember_logs
from shoal.nanny.machine import (
    AskedToClose,
    AskedToStart,
    Effect,
    End,
    Event,
    GiveUp,
    NannyMachine,
    Phase,
    RestartSettings,
    Start,
    WakeAfter,
    Woke,
    WorkerDied,
    WorkerLeft,
    WorkerReady,
    meaning_of,
)
from shoal.nanny.named import Named
from shoal.nanny.plugins import answer, plugins_of
from shoal.nanny.process import ServiceProcess
from shoal.nanny.questions import answer_to, argument_of, told
from shoal.nanny.vouching import Vouching
from shoal.observe.preloading import Preloads, process_preloads
from shoal.observe.reasons import RESTARTED, SCHEDULER_GONE
from shoal.observe.status import Status
from shoal.protocol.handshake import Keyring
from shoal.protocol.payload import dump_function
from shoal.protocol.topics import topic_names

CLOSE_SECONDS: Final = 5.0
"""What a process may take to close before it is ended by signals, if nothing else is said."""

TEARDOWN_SECONDS_MAX: Final = 5.0
"""What plugins and preloads of a nanny may take together as it closes."""

RESTART_SECONDS: Final = 30.0
"""What ending and starting it may take together, if nothing else is said."""

_logger = logging.getLogger("shoal.nanny")


class WorkerKeeper(Named):
    """Keeps one worker alive under one name; belongs to the loop that starts it."""

    held_seconds_max = CLOSE_SECONDS
    """How long a process that the scheduler has sent away may take to end by itself."""

    def __init__(
        self,
        what: str,
        options: Mapping[str, Any],
        make: Callable[[], ServiceProcess],
        find_scheduler: Callable[[], Awaitable[str]],
        is_scheduler_there: Callable[[], Awaitable[bool]],
        *,
        start_seconds: float,
        on_end: Callable[[Any], None] | None = None,
        preloads: Preloads | None = None,
    ) -> None:
        """Nothing is started yet.

        Args:
            what: for people, such as "worker 0".
            options: of the worker; `name`, `nthreads` and `memory_limit` are shown.
            make: a new process of this worker, which was not started.
            find_scheduler: the scheduler's address, as soon as there is one.
            is_scheduler_there: asked when the worker says that it lost its scheduler.
            start_seconds: what a process may take to become a worker.
            on_end: called with this once the worker has left for good, or was given up.
            preloads: executed already; None: the settings'.
        """
        settings = config.read(config.Nanny)
        self.env: dict[str, str] = {}
        """Set in the environment of each process from now on; plugins may change it."""
        self.hooks = plugins_of(self)
        if preloads is None:
            preloads = process_preloads(self, settings.preload, settings.preload_argv)
        self.preloads = preloads
        self._is_set_up = False
        self._starts_anew = False  # the process that starts is about to be sent away
        self._answering: set[asyncio.Task[None]] = set()  # only to keep them alive
        self.what = what
        self.name = options.get("name")
        self._has_heirs = config.read(
            config.Worker, lifetime_restart=options.get("lifetime_restart")
        ).lifetime_restart
        self.nthreads: int = options["nthreads"]
        self.memory_limit: int = options["memory_limit"]
        """In bytes; 0: none."""
        self.status = Status.created
        self.failure: Exception | None = None
        """Why there is no worker, if there should be one."""
        self.process: ServiceProcess | None = None
        self._make = make
        self._find_scheduler, self._is_scheduler_there = find_scheduler, is_scheduler_there
        self._scheduler = ""  # where it was found
        self.keyring: Keyring | None = None  # what proves a worker to it; None: nobody is told
        self._vouching = Vouching(lambda: (self._scheduler, self.keyring))
        self._start_seconds = start_seconds
        self._on_end = on_end
        self._machine = NannyMachine(
            RestartSettings(
                pause_seconds=settings.restart_pause_seconds,
                pause_seconds_max=settings.restart_pause_seconds_max,
                deaths_max=settings.deaths_max,
                steady_seconds=settings.steady_seconds,
                memory_deaths_max=settings.memory_deaths_max,
                memory_steady_seconds=settings.memory_steady_seconds,
            )
        )
        self._sent_away: ServiceProcess | None = None  # by the scheduler, for another to come
        self._last_death: dict[str, Any] = {}  # which its successor tells the scheduler
        self._life: asyncio.Task[None] | None = None  # of the process that is there
        self._timer: asyncio.TimerHandle | None = None
        self._started: asyncio.Future[None] | None = None  # for who asked for it
        self._finished: asyncio.Event | None = None
        remember_logs()

    def __repr__(self) -> str:
        kind = type(self).__name__
        return f"<{kind} of {self.what} at {self.worker_address or 'no address'}, {self.status}>"

    # --- looks -------------------------------------------------------------------------------

    @property
    def worker_address(self) -> str:
        """Where the worker is reached; empty while there is none."""
        return self.process.address if self.process is not None else ""

    @property
    def address(self) -> str:
        """The worker's, too: a nanny listens to nobody."""
        return self.worker_address

    @property
    def scheduler_addr(self) -> str:
        """Where its scheduler was found."""
        return self._scheduler

    @property
    def pid(self) -> int | None:
        """Of the worker's process; None if there was none."""
        return self.process.pid if self.process is not None else None

    @property
    def words(self) -> dict[str, Any]:
        """What the worker said of itself as it was ready."""
        return self.process.words if self.process is not None else {}

    def is_alive(self) -> bool:
        """Whether there is a process."""
        return self.process is not None and self.process.is_alive()

    # --- life --------------------------------------------------------------------------------

    async def instantiate(self) -> Status:
        """Start the worker, unless it is there; returns when it is registered.

        Raises:
            ShoalError, OSError: it could not start, and it is not tried again.
        """
        if self._finished is None:
            self._finished = asyncio.Event()
        self._finished.clear()
        if not self._is_set_up:
            self._is_set_up = True
            await self.preloads.start()
        if self._life is not None and self._machine.phase in (Phase.closed, Phase.given_up):
            await self._end_process(CLOSE_SECONDS)  # what is left of an earlier life
        if self._started is None or self._started.done():
            self._started = asyncio.get_running_loop().create_future()
        self._feed(AskedToStart())
        if self.status is not Status.running:
            await asyncio.shield(self._started)
        return self.status

    async def kill(self, timeout: float = CLOSE_SECONDS, reason: str = "nanny-kill") -> None:
        """End the worker, and start no other until somebody asks for it.

        Args:
            timeout: seconds that it may take to close before it is ended by signals.
            reason: for the log.
        """
        _logger.debug("%s is ended: %s", self.what, reason)
        self._step_aside()
        self.status = Status.stopping
        await self._end_process(timeout)
        self.status = Status.stopped

    def end_what_was_sent_away(self) -> None:
        """The scheduler has sent the process away: it ends and another comes, whatever holds it.

        It has a while to do that by itself.
        """
        process = self._sent_away = self.process
        if process is not None:
            loop = asyncio.get_running_loop()
            loop.call_later(self.held_seconds_max, self._kill_if_held, process)

    def _kill_if_held(self, process: ServiceProcess) -> None:
        if process is self.process and process.farewell is None and process.is_alive():
            _logger.warning("%s was sent away, and something holds it: it is killed", self.what)
            process.kill()

    async def restart(self, timeout: float = RESTART_SECONDS, reason: str = "nanny-restart") -> str:
        """End the worker and start another: "OK", or "timed out" if it was not there in time.

        Raises:
            ShoalError, OSError: the other could not start.
        """
        try:
            async with asyncio.timeout(timeout):
                await self.kill(min(CLOSE_SECONDS, timeout / 2), reason)
                await self.instantiate()
        except TimeoutError:
            return "timed out"
        return "OK"

    async def close(self, timeout: float = CLOSE_SECONDS, reason: str = "nanny-close") -> None:
        """End the worker for good.  Safe to call again."""
        _logger.debug("%s is closed: %s", self.what, reason)
        self.let_go()
        await self._end_process(timeout)
        await self.end_hooks()
        self._is_over(Status.closed)

    async def end_hooks(self) -> None:
        """Tear plugins and preloads down, what has been set up of them."""
        deadline = monotonic() + TEARDOWN_SECONDS_MAX
        await self.hooks.close(TEARDOWN_SECONDS_MAX)
        self._is_set_up = False
        await self.preloads.teardown(max(0.0, deadline - monotonic()))

    def close_gracefully(self, reason: str = "nanny-close-gracefully") -> None:
        """Whatever becomes of the worker from now on, it is not started again."""
        _logger.debug("%s is not started again: %s", self.what, reason)
        self._step_aside()
        if self.status in (Status.starting, Status.running):
            self.status = Status.closing_gracefully
            if self._life is None or self._life.done():  # it has died, and no other comes
                self._has_gone()

    def let_go(self) -> None:
        """Have the worker close, and start no other; does not wait."""
        self._step_aside()
        if self.status is not Status.closed:
            self.status = Status.closing
        if self.process is not None:
            self.process.let_go()

    def close_now(self, deadline: float) -> None:
        """As `close`, where no loop runs any more; until `deadline`, on the monotonic clock."""
        self.let_go()
        process = self.process
        if process is not None:
            process.close_now(deadline)
            process.remove_files()
        self.status = Status.closed

    # --- plugins -----------------------------------------------------------------------------

    @property
    def plugins(self) -> Mapping[str, Any]:
        """By name."""
        return self.hooks.table.by_name

    async def plugin_add(self, plugin: Any, name: str | None = None) -> dict[str, Any]:
        """Set a plugin up, in place of one of its name; what it raises is in `exception`."""
        try:
            await self.hooks.add(plugin, name)
            if getattr(plugin, "restart", False) and self.status is Status.running:
                await self.restart(reason="nanny-plugin")
        except Exception as error:
            return {"status": "error", "exception": error}
        return {"status": "OK"}

    async def plugin_remove(self, name: str) -> dict[str, Any]:
        """Tear a plugin down; what it raises is in `exception`."""
        try:
            await self.hooks.remove(name)
        except Exception as error:
            return {"status": "error", "exception": error}
        return {"status": "OK"}

    def log_event(self, topic: str | Collection[str], msg: Any) -> None:
        """Have the worker tell something under a topic, or several; on the nanny's loop.

        Nothing happens while there is no worker.

        Args:
            topic: names.
            msg: any value that can be pickled; a dict gets the worker's address as `worker`.
        """
        process, names = self.process, topic_names(topic)
        if process is None:
            return
        if type(msg) is dict:
            msg = {**msg, "worker": self.worker_address}
        task = asyncio.ensure_future(process.answer(told(names, dump_function(msg))))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    def expect_restart(self) -> None:
        """The scheduler is about to send the worker away, so that another is started."""
        self._starts_anew = self.status is Status.starting

    def _asked(self, process: ServiceProcess, words: dict[str, Any]) -> None:
        """The worker's process asks something on behalf of the scheduler."""

        async def do() -> None:
            outcome = await answer(self, words["operation"], argument_of(words))
            await process.answer(answer_to(words, outcome))

        task = asyncio.ensure_future(do())
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def finished(self) -> None:
        """Wait until the worker has left, was closed, or was given up: see `failure`."""
        if self._finished is not None:
            await self._finished.wait()

    def _step_aside(self) -> None:
        """From now on nothing is started."""
        self._feed(AskedToClose())
        if self._timer is not None:
            self._timer.cancel()

    async def _end_process(self, timeout_seconds: float) -> None:
        """End the process, and what watches it, wherever in its life it is."""
        self._vouching.end()
        life, process = self._life, self.process
        if process is not None:
            await process.close(timeout_seconds)
        if life is not None:
            life.cancel()  # it still waited for the scheduler, or was about to be over
            await asyncio.wait((life,))
            if process is not None:
                await process.close(timeout_seconds)  # it was only just started, perhaps
                await asyncio.to_thread(process.remove_files)
        self._abandon_start()

    # --- what the machine wants ----------------------------------------------------------------

    def _feed(self, event: Event) -> None:
        self._perform(self._machine.step(event, monotonic()))

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Start():
                    self.status = Status.starting
                    self._life = asyncio.create_task(self._live(), name=f"life of {self.what}")
                case WakeAfter(seconds):
                    self.status = Status.starting
                    loop = asyncio.get_running_loop()
                    self._timer = loop.call_later(seconds, self._feed, Woke())
                case GiveUp(causes, by_memory_limit):
                    self._give_up(causes, by_memory_limit)
                case End(reason):
                    telling.tell_of_end(self.what, reason, self._scheduler)
                    self._is_over(Status.closed)
                    self._tell()
                case _:
                    assert_never(effect)

    async def _live(self) -> None:
        """One process, from its start to its end."""
        process: ServiceProcess | None = None
        try:
            process = self.process = self._make()
            process.on_ask, process.on_beat = self._asked, self._vouching.beat
            await process.start()
            address = self._scheduler = await self._find_scheduler()
            await process.go({"scheduler": address, "predecessor": self._last_death})
            await process.ready(self._start_seconds)
        except Exception as error:  # whatever it is, there is no worker
            if process is not None:
                await process.close(0.0)
            if self._starts_anew and self._machine.phase is not Phase.closed:
                self._starts_anew = False
                self._life = asyncio.create_task(self._live(), name=f"life of {self.what}")
                return
            self.failure = error
            self._died(process, telling.cause_of(error))
            self._has_gone()
            return
        self._starts_anew = False
        self._feed(WorkerReady())
        if self._machine.phase is Phase.running:
            self.status, self.failure = Status.running, None
            if self._started is not None and not self._started.done():
                self._started.set_result(None)
        await process.finished()
        self._vouching.end()
        await self._process_ended(process)

    async def _process_ended(self, process: ServiceProcess) -> None:
        """It has ended; was that anybody's wish?"""
        if process.farewell is None:
            await asyncio.to_thread(process.remove_files)
        if self._machine.phase is not Phase.running:
            self._has_gone()
            return
        if process.farewell is None and process is self._sent_away:
            self._last_death = telling.told_by_heir(process, "it was restarted")
            self._feed(WorkerLeft(RESTARTED, again=True, by_request=True))
            return
        if process.farewell is None:
            assert process.death is not None
            self._died(process, process.death.describe())
            return
        reason: str = process.farewell["left"]
        left = meaning_of(reason, has_heirs=self._has_heirs)
        if reason == SCHEDULER_GONE and await self._is_scheduler_there():
            self._died(process, "it lost its connection to the scheduler")
        elif left is None:
            self._died(process, f"it had to close: {reason}")
        else:
            if left.by_request:
                self._last_death = telling.told_by_heir(process, f"it was {reason}")
            self._feed(left)

    def _died(self, process: ServiceProcess | None, cause: str) -> None:
        """Let the machine decide, and tell what it has decided."""
        self._last_death = telling.told_by_heir(process, cause)
        death = process.death if process is not None else None
        event = WorkerDied(
            cause,
            has_worked=process is not None and process.has_worked,
            by_memory_limit=death is not None and death.by_memory_limit,
        )
        effects = self._machine.step(event, monotonic())
        telling.tell_of_death(self.what, process, cause, self._machine, effects)
        self._perform(effects)

    def _give_up(self, causes: tuple[str, ...], by_memory_limit: bool) -> None:
        """There will be no worker; whoever waits for it is told, or else the log."""
        if self._started is not None and not self._started.done():
            assert self.failure is not None
            self._fail_start(self.failure)
            self._is_over(Status.failed)
        else:
            settings = self._machine.settings
            self.failure = telling.failure_of(
                self.what, self.process, causes, settings, by_memory_limit=by_memory_limit
            )
            _logger.error("%s", self.failure)
            self._is_over(Status.failed)
            self._tell()

    def _has_gone(self) -> None:
        """There is no process, and if it was to close gracefully, there won't be another."""
        if self.status is Status.closing_gracefully:
            self._abandon_start()
            self._is_over(Status.closed)

    def _abandon_start(self) -> None:
        """Nobody need wait for the worker any more."""
        if self._started is not None and not self._started.done():
            self._fail_start(StartAbandoned(self.what))

    def _fail_start(self, error: Exception) -> None:
        assert self._started is not None
        self._started.set_exception(error)
        self._started.exception()  # whoever waits is told; nobody need wait

    def _is_over(self, status: Status) -> None:
        """Nothing more happens by itself."""
        self.status = status
        if self._finished is not None:
            self._finished.set()

    def _tell(self) -> None:
        """It is over, and nobody who would know by himself has made it so."""
        if self._on_end is not None:
            self._on_end(self)
