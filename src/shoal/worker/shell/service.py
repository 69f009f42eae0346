"""A worker: how it is started, found, looked at and closed; what it does is in `feed`."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Self

from shoal import config
from shoal.comms import Connection, Listener, ListenError, listen, require_token
from shoal.observe.asked import find_scheduler, host_of_interface
from shoal.observe.limits import memory_limit_bytes, thread_count
from shoal.observe.preloading import Preloads, process_preloads
from shoal.observe.reasons import NOT_UNDERSTOOD, RESTARTED
from shoal.observe.status import Status
from shoal.protocol.codec import Decoder
from shoal.protocol.directions import ToWorkerFromPeer
from shoal.protocol.freestanding import ON_SOCKETS
from shoal.protocol.handshake import CLIENT, WORKER, Keyring
from shoal.protocol.keys import to_canonical
from shoal.protocol.ways import named_families
from shoal.storage.scratch import Scratch
from shoal.worker.machine.step import WorkerMachine
from shoal.worker.shell.belonging import Belonging
from shoal.worker.shell.context import live_workers
from shoal.worker.shell.errors import WorkerRefused
from shoal.worker.shell.feed import Feed
from shoal.worker.shell.hosting import Hosting
from shoal.worker.shell.inside import InsideTasks
from shoal.worker.shell.introduction import (
    machine_settings,
    results_of,
    spill_maker,
    target_bytes,
)
from shoal.worker.shell.lifetime import Lifetime, lifetime_of
from shoal.worker.shell.link import SchedulerLink
from shoal.worker.shell.listening import (
    listen_address,
    ports_asked,
    refuse_unusable,
)
from shoal.worker.shell.named import Named
from shoal.worker.shell.pausing import Pausing
from shoal.worker.shell.plugins import PluginHost
from shoal.worker.shell.telling import Telling
from shoal.worker.shell.views import StateView

if TYPE_CHECKING:
    from shoal.storage.disk import Disk

logger = logging.getLogger("shoal.worker")

TEARDOWN_SECONDS_MAX: Final = 10.0
"""What a worker gives its plugins and preloads, if nobody who ends it gives them less."""

CLOSE_SECONDS: Final = 2.0
"""How long `close` waits for tasks that are being executed."""

DECODER_BY_ROLE: Final[Mapping[str, Decoder]] = {
    CLIENT: Decoder(ON_SOCKETS),
    WORKER: Decoder(ToWorkerFromPeer),
}


class Worker(Pausing, InsideTasks, PluginHost, Hosting, Named, Telling):
    """Runs tasks of one scheduler, in threads of this process.

    `await Worker(...)` starts it; `async with Worker(...)` closes it as well.  It belongs to the
    loop that it was started on; from elsewhere, tasks may look at what `context.Host` names.
    """

    is_watched = False
    """Whether another process tells why it ends."""

    predecessor: Mapping[str, Any] = {}
    """Of the worker whose place it takes, as whoever saw that tells: settings of the machine."""

    at_welcome: Callable[[], object] | None = None
    """Called once on its loop, when the scheduler has let it in, and before its first task."""

    at_plugins_coming: Callable[[], object] | None = None
    """Called on its loop when the scheduler lets it in later, once plugins have done their part."""

    at_beat: Callable[[float], object] | None = None
    """Called on its loop with each sign of life, and in how many seconds there will be another."""

    at_first_end: Callable[[], object] | None = None
    """Called once on its loop, when it has finished its first task."""

    teardown_seconds_max = TEARDOWN_SECONDS_MAX
    """What its plugins and preloads may take together as it closes."""

    close_reason = ""
    """Why it closes, or has closed."""

    disk_type: type[Disk] | None = None
    """What writes results to disk; None: the usual."""

    address = ""
    """Where peers reach it, once it listens."""

    keyring: Keyring  # made by `start`, as these are:
    _loop: asyncio.AbstractEventLoop
    _feed: Feed | None = None
    _life: Lifetime | None = None
    _belonging: Belonging | None = None
    _listener: Listener | None = None
    _finished: asyncio.Event | None = None
    _closing: asyncio.Task[None] | None = None

    def __init__(
        self,
        scheduler_ip: str | None = None,
        scheduler_port: int | None = None,
        *,
        scheduler_file: str | None = None,
        nthreads: int | None = None,
        name: object = None,
        memory_limit: str | float | None = None,
        host: str | None = None,
        port: int | str | Sequence[int] | None = None,
        interface: str | None = None,
        protocol: str | None = None,
        listen_address: str | None = None,
        contact_address: str | None = None,
        sock: socket.socket | None = None,
        local_directory: str | None = None,
        resources: Mapping[str, float] | None = None,
        token: bytes | None = None,
        keyring: Keyring | None = None,
        security: Any = None,
        reconnect_seconds: float = 0.0,
        death_timeout: float | None = None,
        validate: bool | None = None,
        preload: str | Sequence[str] | None = None,
        preload_argv: Sequence[Any] | None = None,
        plugins: Iterable[Any] = (),
        serializers: Sequence[str] | None = None,
        executor: Any = None,
        lifetime: float | str | None = None,
        lifetime_stagger: float | str | None = None,
        lifetime_restart: bool | None = None,
        data: Any = None,
        **options: Any,
    ) -> None:
        """Nothing happens until it is started.

        Args:
            scheduler_ip: e.g. `tcp://10.0.0.1:8786`, or its host, with `scheduler_port`; None: as
                `scheduler_file`, a preload or the settings say.
            nthreads: tasks run at once; None: one for each CPU.
            name: unique in the cluster; None: its address.
            memory_limit: see `limits.memory_limit_bytes`; None: the setting's, which is "auto".
            host, port: where to listen; None: what the scheduler's address suggests, and any port.
                Of several ports, or of a range such as "9000:9009", the first that is free.
            interface: a network interface that has the address, instead of `host`.
            protocol: how the scheduler is reached, where its address does not say it.
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
            executor: what runs tasks, or executors by the names that tasks may ask for; "offload":
                one thread; None: threads of its own.
            lifetime: seconds after which it hands over what only it holds, and closes.
            lifetime_stagger: spread of that, either way.
            lifetime_restart: for its nanny, which then starts another.
            data: a mapping to keep results in, or what makes one; see `storage/given.py`.
            options: those of upstream's that say nothing here; see `listening.HARMLESS_OPTIONS`.

        Raises:
            SettingError, TypeError, ValueError: a setting or an argument can't be used.
        """
        refuse_unusable(options, security)
        super().__init__()
        self._executor_given, self.first_plugins = executor, list(plugins)
        self._settings = config.read(
            config.Worker, memory_limit=memory_limit, validate=validate, lifetime_seconds=lifetime,
            lifetime_stagger_seconds=lifetime_stagger, lifetime_restart=lifetime_restart,
            resources=None if resources is None else dict(resources),
        )  # fmt: skip
        self.lifetime = lifetime_of(self._settings)
        self._folder = Scratch(local_directory)
        self.preloads = self._make_preloads(preload, preload_argv)
        self._comm_settings, self._death_timeout = config.read(config.Comm), death_timeout
        where = scheduler_ip, scheduler_port, scheduler_file, protocol
        self.scheduler_address, of_file = find_scheduler("Worker", *where)
        self.nthreads, ports = thread_count(nthreads), ports_asked(port)
        limit = self._settings.memory_limit if memory_limit is None else memory_limit
        self.memory_limit = memory_limit_bytes(limit, self.nthreads)
        self.name, self.reconnect_seconds, self._sock = name, reconnect_seconds, sock
        self.results, self.data = results_of(data, self._folder)
        self.before_close: list[Callable[[], object]] = []  # for clients of its tasks
        self._host, self._ports = host_of_interface(interface) if interface else host, ports
        self._listen_address, self._contact_address = listen_address, contact_address
        token = token or (of_file if keyring is None else None)
        self._keyring = keyring if token is None else Keyring.from_token(token)
        self._families = None if serializers is None else named_families(serializers)

    def __repr__(self) -> str:
        return (
            f"<Worker {self.address or self.name!r}, {self.status.value}, "
            f"{self.nthreads} threads, {len(self.results)} results>"
        )

    @property
    def validate(self) -> bool:
        """Whether all of the machine's state is checked after each step."""
        return self._settings.validate

    @property
    def blocked_handlers(self) -> Collection[str]:
        """Operations that it refuses, by their historical names."""
        return self._settings.blocked_handlers

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
        self.thread_id = threading.get_ident()
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
            if self.lifetime is not None:
                self._life = Lifetime(self.lifetime, feed.link, self.results, self._close_soon)
                self._belonging.at_return = self._life.tell
        return self

    async def _set_up(self) -> Feed:
        keyring = self._keyring
        if keyring is None:
            keyring = Keyring.from_token(require_token(self.scheduler_address, "worker"))
        self.keyring = keyring
        self._listener = await self._listen(keyring)
        self.address = self._contact_address or self._listener.address
        if self.name is None:
            self.name = self.address
        memory = config.read(config.Memory)
        machine = WorkerMachine(
            machine_settings(self, self._settings, memory, local_directory=self._folder.where)
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
            make_spill=spill_maker(self._folder, memory, self.disk_type),
            target_bytes=target_bytes(self.results, self.memory_limit, memory),
        )
        self._feed.at_welcome, self._feed.at_first_end = self.at_welcome, self.at_first_end
        self.hooks.attach(self._feed)
        self._belonging = Belonging(
            self._feed,
            reconnect_seconds=self.reconnect_seconds,
            is_watched=self.is_watched,
            close_soon=self._close_soon,
        )
        self._belonging.at_beat = self.at_beat
        self._feed.on_waiting_changed = self._belonging.tell
        if self._has_default_executor:
            self._feed.threads.leave_to_executors()
        return self._feed

    async def _listen(self, keyring: Keyring) -> Listener:
        """Listen on the first of the ports that is free.

        Raises:
            ListenError: none is, or the address is not ours.
        """
        *others, last = self._ports
        for port in others:
            with contextlib.suppress(ListenError):
                return await self._listen_at(port, keyring)
        return await self._listen_at(last, keyring)

    async def _listen_at(self, port: int, keyring: Keyring) -> Listener:
        return await listen(
            self._listen_address or listen_address(self.scheduler_address, self._host, port),
            keyring,
            DECODER_BY_ROLE.__getitem__,
            self._on_peer,
            sock=self._sock,
        )

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
        elif connection.role == CLIENT:  # those who fetch results prove themselves workers
            self.guests.welcome(connection)
        else:
            self._feed.server.on_connection(connection)

    @property
    def is_closing(self) -> bool:
        """Whether it has begun to close, or has closed."""
        return self.status in (Status.closing, Status.closed, Status.failed)

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
        if self._closing is None and self._stage in (Status.starting, Status.running):
            seconds = 0.0 if reason.startswith(RESTARTED) else CLOSE_SECONDS  # none is wanted
            if reason.startswith(f"{NOT_UNDERSTOOD}: "):
                logger.warning("%s", WorkerRefused(self.scheduler_address, reason))
            self._closing = self._loop.create_task(self._close(seconds, reason))

    async def _close(self, timeout_seconds: float, reason: str) -> None:
        self.status, self.close_reason = Status.closing, reason
        if self._life is not None:
            self._life.stop()
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
        await self._end_named()
        if self._feed is not None:
            await self._feed.close(timeout_seconds, reason)
        if self._listener is not None:
            await self._listener.wait_closed()
        self._end_executors()
        await self._end_shuffles()
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

    # --- looks -------------------------------------------------------------------------------

    @property
    def state(self) -> StateView:
        """What it runs, holds and fetches at this moment."""
        feed = self._started()
        executing = feed.threads.executing()
        machine, validate = feed.machine.state, self.validate
        return StateView(machine, executing, self.actors, feed.nended, validate=validate)

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
