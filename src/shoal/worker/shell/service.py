"""A worker: how it is started, found, looked at and closed; what it does is in `feed`."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, Final, Self

from shoal import config
from shoal.comms import Connection, Listener, listen, require_token
from shoal.observe.inside import RunningTask
from shoal.observe.installed import told_versions
from shoal.observe.limits import memory_limit_bytes, thread_count
from shoal.observe.preloading import Preloads, process_preloads
from shoal.observe.reasons import RESTARTED
from shoal.observe.status import Status
from shoal.protocol.codec import Decoder
from shoal.protocol.directions import ToWorkerFromPeer
from shoal.protocol.handshake import CLIENT, Keyring
from shoal.protocol.keys import to_canonical
from shoal.protocol.ways import named_families
from shoal.storage.results import Results, ResultsView
from shoal.storage.scratch import Scratch
from shoal.worker.machine.step import WorkerMachine
from shoal.worker.model.entities import MachineSettings, Run
from shoal.worker.shell.belonging import Belonging
from shoal.worker.shell.context import RunContext, live_workers
from shoal.worker.shell.feed import Feed
from shoal.worker.shell.link import SchedulerLink
from shoal.worker.shell.listening import address_of_scheduler, listen_address
from shoal.worker.shell.plugins import PluginHost
from shoal.worker.shell.telling import Telling
from shoal.worker.shell.views import StateView

logger = logging.getLogger("shoal.worker")

TEARDOWN_SECONDS_MAX: Final = 10.0
"""What a worker gives its plugins and preloads, if nobody who ends it gives them less."""

CLOSE_SECONDS: Final = 2.0
"""How long `close` waits for tasks that are being executed."""

_peer_decoder: Final = Decoder(ToWorkerFromPeer)


class Worker(PluginHost, Telling):
    """Runs tasks of one scheduler, in threads of this process.

    `await Worker(...)` starts it; `async with Worker(...)` closes it as well.  It belongs to the
    loop that it was started on; from elsewhere, tasks may look at what `context.Host` names.
    """

    is_watched = False
    """Whether another process tells why it ends."""

    predecessor = (0, "")
    """Process id and death of the worker whose place it takes, as whoever saw that tells it."""

    at_welcome: Callable[[], object] | None = None
    """Called once on its loop, when the scheduler has let it in, and before its first task."""

    at_plugins_coming: Callable[[], object] | None = None
    """Called on its loop when the scheduler lets it in later, once plugins have done their part."""

    at_first_end: Callable[[], object] | None = None
    """Called once on its loop, when it has finished its first task."""

    teardown_seconds_max = TEARDOWN_SECONDS_MAX
    """What its plugins and preloads may take together as it closes."""

    close_reason = ""
    """Why it closes, or has closed."""

    def __init__(
        self,
        scheduler_address: str | None = None,
        *,
        nthreads: int | None = None,
        name: object = None,
        memory_limit: str | float | None = None,
        host: str | None = None,
        port: int = 0,
        listen_address: str | None = None,
        contact_address: str | None = None,
        sock: socket.socket | None = None,
        local_directory: str | None = None,
        resources: Mapping[str, float] | None = None,
        token: bytes | None = None,
        keyring: Keyring | None = None,
        reconnect_seconds: float = 0.0,
        death_timeout: float | None = None,
        validate: bool | None = None,
        preload: str | Sequence[str] | None = None,
        preload_argv: Sequence[Any] | None = None,
        plugins: Iterable[Any] = (),
        serializers: Sequence[str] | None = None,
    ) -> None:
        """Nothing happens until it is started.

        Args:
            scheduler_address: e.g. `tcp://10.0.0.1:8786`; None: as a preload or the settings say.
            nthreads: tasks run at once; None: one for each CPU.
            name: unique in the cluster; None: its address.
            memory_limit: see `limits.memory_limit_bytes`; None: the setting's, which is "auto".
            host, port: where to listen; None: what the scheduler's address suggests.
            listen_address: instead of `host` and `port`, with a scheme.
            contact_address: what peers are told to connect to, where that differs.
            sock: a listening socket to adopt, instead of all these.
            local_directory: where tasks may leave files; None: a temporary one.
            resources: abstract amounts, such as GPU: 2, of which tasks have what they ask for.
            token, keyring: what proves that it belongs to the cluster; neither: looked for.
            reconnect_seconds: how long to look for a lost scheduler; 0: close at once.
            death_timeout: seconds to find the scheduler at the start; None: the setting's.
            validate: check all of the machine's state after each step; slow.
            preload, preload_argv: see `observe/preloading.py`; None: the settings'.
            plugins: those that it has from the start.
            serializers: names of families by which results are sent; None: the usual ones.

        Raises:
            SettingError, ValueError: a setting or an argument can't be used.
        """
        super().__init__()
        self._settings = config.read(
            config.Worker,
            memory_limit=memory_limit,
            resources=dict(resources) if resources is not None else None,
            validate=validate,
        )
        self._folder = Scratch(local_directory)
        self.preloads = self._make_preloads(preload, preload_argv)
        self.first_plugins = list(plugins)
        self._comm_settings = config.read(config.Comm)
        self.scheduler_address = address_of_scheduler(scheduler_address)
        self.nthreads = thread_count(nthreads)
        self.memory_limit = memory_limit_bytes(
            self._settings.memory_limit if memory_limit is None else memory_limit, self.nthreads
        )
        self.name = name
        self.address = ""
        self.status = Status.created
        self.reconnect_seconds = reconnect_seconds
        self.results = Results()
        self.data = ResultsView(self.results)
        self.before_close: list[Callable[[], object]] = []  # for clients of its tasks
        self._host, self._port = host, port
        self._listen_address, self._contact_address = listen_address, contact_address
        self._sock = sock
        self._keyring = keyring if token is None else Keyring.from_token(token)
        self._death_timeout = death_timeout
        self._families = None if serializers is None else named_families(serializers)
        self._closing: asyncio.Task[None] | None = None
        self._finished: asyncio.Event | None = None
        # Made by `start`:
        self._loop: asyncio.AbstractEventLoop
        self._feed: Feed | None = None
        self._belonging: Belonging | None = None
        self._listener: Listener | None = None

    def __repr__(self) -> str:
        return (
            f"<Worker {self.address or self.name!r}, {self.status.value}, "
            f"{self.nthreads} threads, {len(self.results)} results>"
        )

    # --- life --------------------------------------------------------------------------------

    def __await__(self) -> Generator[Any, None, Self]:
        return self.start().__await__()

    async def __aenter__(self) -> Self:
        return await self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def start(self) -> Self:
        """Listen, start the threads, and register with the scheduler.

        Raises:
            OSError: the address can't be listened on, or the scheduler not be reached.
            AuthenticationError: the two don't hold the same token.
            WorkerRefused: the scheduler doesn't want this worker.
            SchedulerSilent: it doesn't answer.
        """
        if self.status is not Status.created:
            return self
        self.status = Status.starting
        self._loop = asyncio.get_running_loop()
        self._finished = asyncio.Event()
        self._begin_telling()
        try:
            feed = await self._set_up()
            self._link = feed.link
            await self.preloads.start()
            await self._set_up_first(self.first_plugins)
            await feed.link.open(
                feed.registration,
                timeout_seconds=self._death_timeout or self._comm_settings.connect_seconds,
                keep_trying=self._death_timeout is not None,
            )
        except BaseException as error:
            if self._closing is None:
                await self._end_hooks()
                await self._tear_down(CLOSE_SECONDS, f"it could not start: {error!r}")
                self.status = Status.failed
                self._finished.set()
            raise
        if self._closing is None:
            self.status = Status.running
            live_workers.add(self)
            assert self._belonging is not None
            self._belonging.begin()
        return self

    async def _set_up(self) -> Feed:
        keyring = self._keyring
        if keyring is None:
            keyring = Keyring.from_token(require_token(self.scheduler_address, "worker"))
        self._listener = await listen(
            self._listen_address or listen_address(self.scheduler_address, self._host, self._port),
            keyring.only("worker"),
            lambda role: _peer_decoder,
            self._on_peer,
            sock=self._sock,
        )
        self.address = self._contact_address or self._listener.address
        if self.name is None:
            self.name = self.address
        machine = WorkerMachine(
            MachineSettings(
                address=self.address,
                name=str(self.name),
                nthreads=self.nthreads,
                memory_limit=self.memory_limit,
                pid=os.getpid(),
                host=socket.gethostname(),
                resources=dict(self._settings.resources),
                has_nanny=self.is_watched,
                versions=told_versions(),
                local_directory=self._folder.where,
                predecessor=self.predecessor[0],
                predecessor_death=self.predecessor[1],
                transfers_max=self._settings.transfers_out_max,
                transfer_bytes_max=self._settings.transfer_bytes_max,
            )
        )
        self._feed = Feed(
            self,
            machine,
            self.results,
            keyring,
            self._settings,
            connect_seconds=self._comm_settings.connect_seconds,
            on_close=self._close_soon,
            on_lost=self._on_lost,
            families=self._families,
        )
        self._feed.at_welcome, self._feed.at_first_end = self.at_welcome, self.at_first_end
        self.hooks.attach(self._feed)
        self._belonging = Belonging(
            self._feed,
            reconnect_seconds=self.reconnect_seconds,
            is_watched=self.is_watched,
            close_soon=self._close_soon,
        )
        return self._feed

    def _make_preloads(
        self, preload: str | Sequence[str] | None, argv: Sequence[Any] | None
    ) -> Preloads:
        """Execute what is to run in this process before anything else; None: as is set."""
        settings = self._settings
        chosen = settings.preload if preload is None else preload
        if not chosen:
            return Preloads([])
        folder = self._folder.path()
        return process_preloads(self, chosen, argv or settings.preload_argv, file_dir=folder)

    def _on_peer(self, connection: Connection) -> None:
        """A peer or a client was let in."""
        if self._feed is None or self._closing is not None:
            connection.abort()
        else:
            self._feed.server.on_connection(connection)

    async def finished(self) -> None:
        """Wait until the worker has closed."""
        if self._finished is not None:
            await self._finished.wait()

    async def close(
        self, timeout_seconds: float = CLOSE_SECONDS, reason: str = "worker-close"
    ) -> None:
        """Leave the cluster and end everything that was started.  Safe to call again.

        Args:
            timeout_seconds: how long tasks that are being executed may take to end.
            reason: for the scheduler, and the log.
        """
        if self.status is Status.created:
            self.status = Status.closed
        if self.status in (Status.closed, Status.failed):
            return
        if self._closing is None:
            self._closing = self._loop.create_task(self._close(timeout_seconds, reason))
        await asyncio.shield(self._closing)

    def _close_soon(self, reason: str) -> None:
        if self._closing is None and self.status in (Status.starting, Status.running):
            seconds = 0.0 if reason.startswith(RESTARTED) else CLOSE_SECONDS  # none is wanted
            self._closing = self._loop.create_task(self._close(seconds, reason))

    async def _close(self, timeout_seconds: float, reason: str) -> None:
        self.status, self.close_reason = Status.closing, reason
        live_workers.discard(self)
        logger.debug("Worker %s closes: %s", self.address, reason)
        try:
            for function in self.before_close:
                try:
                    function()
                except Exception:
                    logger.exception("Worker %s closes, in spite of an error", self.address)
            try:
                if self._feed is not None:
                    self._feed.say_leaving(reason)  # no task shall come to where no plugin is left
            finally:
                spent_seconds = await self._end_hooks()
                await self._tear_down(max(0.0, timeout_seconds - spent_seconds), reason)
        finally:
            self.status = Status.closed
            assert self._finished is not None
            self._finished.set()

    async def _end_hooks(self) -> float:
        """Have plugins and preloads torn down; the time that took (s), which tasks have had too."""
        started_at, seconds = self._loop.time(), self.teardown_seconds_max
        await self.hooks.close(seconds)
        await self.preloads.teardown(seconds - (self._loop.time() - started_at))
        return self._loop.time() - started_at

    async def _tear_down(self, timeout_seconds: float, reason: str) -> None:
        if self._belonging is not None:
            self._belonging.close()
        if self._listener is not None:
            self._listener.close()
        if self._feed is not None:
            await self._feed.close(timeout_seconds, reason)
        if self._listener is not None:
            await self._listener.wait_closed()
        self._folder.remove()
        self._end_telling()

    def wait_for_plugins(self) -> None:
        """The scheduler has heard of us, and takes the time that plugins need.

        Whoever waits for us may wait on; and from now on there are signs of life.
        """
        assert self._belonging is not None
        self.feed.link.wait_longer()
        self._belonging.begin()
        if self.at_plugins_coming is not None:
            self.at_plugins_coming()

    def _on_lost(self, reason: Exception | None) -> None:
        if self._closing is None and self._belonging is not None:
            self._belonging.on_lost(reason)

    async def set_resources(self, **resources: float) -> None:
        """From now on tasks may use these amounts, beside those that are not named."""
        self._started().on_offer({name: float(amount) for name, amount in resources.items()})

    # --- tasks that wait for tasks -----------------------------------------------------------

    @property
    def client_keyring(self) -> Keyring | None:
        """What proves a client of its tasks; None: it has to be looked up by the address."""
        keyring = self._keyring
        return keyring if keyring is not None and keyring.key(CLIENT) is not None else None

    def on_waiting(self, task: RunningTask, change: int) -> None:
        """`task` waits for so many results of others more, or less.  From any thread."""
        assert isinstance(task, RunContext)
        try:
            self._loop.call_soon_threadsafe(self._count_waiting, task.run, change)
        except RuntimeError:
            pass  # the loop was closed under a task that was left behind

    def _count_waiting(self, run: Run, change: int) -> None:
        feed, belonging = self._feed, self._belonging
        if feed is None or belonging is None or self._closing is not None:
            return
        if feed.count_waiting(run, change):
            belonging.tell()

    # --- looks -------------------------------------------------------------------------------

    @property
    def state(self) -> StateView:
        """What it runs, holds and fetches at this moment."""
        feed = self._started()
        return StateView(feed.machine.state, feed.threads.executing())

    @property
    def feed(self) -> Feed:
        """What does its work."""
        return self._started()

    @property
    def scheduler(self) -> SchedulerLink:
        """The connection to the scheduler."""
        return self._started().link

    def _started(self) -> Feed:
        if self._feed is None:
            raise RuntimeError(f"{self!r} was not started: await it first")
        return self._feed

    @property
    def local_directory(self) -> str:
        """Where tasks may leave files; made at the first look, and removed at the end."""
        return self._folder.path()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop that it lives on."""
        return self._loop

    def story(self, key: str) -> list[tuple[float, str, int]]:
        """What happened to a key here: (loop's time, what, run or 0), oldest first."""
        return self._started().machine.story(to_canonical(key))
