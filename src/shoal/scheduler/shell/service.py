"""The scheduler as a service: how it starts and ends, and what it shows.

What happens in between is in the parts it is made of: `membership` (who is connected), `stepping`
(the machine and what it says), `operations` (calls that need more than the machine).
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from importlib import import_module
from types import TracebackType
from typing import Any, Final, Self

from shoal.comms import Listener, listen, new_token, publish_token
from shoal.comms.addresses import TCP, parse_address
from shoal.comms.authority import Publication
from shoal.comms.exchange import BUSY_SECONDS, ReplicaExchange
from shoal.comms.scheduler_file import remove_scheduler_file, write_scheduler_file
from shoal.ids import Epoch
from shoal.observe.asked import host_of_interface, refuse_encryption, split_scheme
from shoal.observe.clock import seconds_ahead
from shoal.observe.facts import FactsOfScheduler, facts_of_identity
from shoal.observe.installed import told_versions
from shoal.observe.links import HERE, PAGE
from shoal.observe.reasons import NOT_UNDERSTOOD
from shoal.observe.status import Status
from shoal.observe.views import SchedulerView
from shoal.protocol.codec import Decoder
from shoal.protocol.directions import ClientToScheduler, WorkerToScheduler
from shoal.protocol.freestanding import ON_SOCKETS
from shoal.protocol.handshake import CLIENT, WORKER, Keyring
from shoal.protocol.messages import Shutdown
from shoal.protocol.questions import Identity
from shoal.protocol.streams import STREAM_WORDS
from shoal.scheduler.machine.step import SchedulerMachine
from shoal.scheduler.model.entities import Worker
from shoal.scheduler.shell.breaks import Breaks
from shoal.scheduler.shell.host import Asker
from shoal.scheduler.shell.idling import IdleWatch
from shoal.scheduler.shell.journal import Journaling
from shoal.scheduler.shell.journal_folder import JournalFolder
from shoal.scheduler.shell.looks import Looks
from shoal.scheduler.shell.membership import Membership
from shoal.scheduler.shell.named import Named
from shoal.scheduler.shell.operating import Operating
from shoal.scheduler.shell.operations.answering import Answering
from shoal.scheduler.shell.plugging import PluginHost
from shoal.scheduler.shell.plugins import Plugins
from shoal.scheduler.shell.settings import preloads_of, settings_of
from shoal.scheduler.shell.telling import Telling
from shoal.storage.scratch import Scratch

logger = logging.getLogger("shoal.scheduler")

TEARDOWN_SECONDS_MAX: Final = 30.0
"""What a scheduler gives its plugins and preloads, if nobody who ends it gives them less."""

DECODER_BY_ROLE: Final[Mapping[str, Decoder]] = {
    CLIENT: Decoder(ClientToScheduler | ON_SOCKETS | STREAM_WORDS, Shutdown),
    WORKER: Decoder(
        WorkerToScheduler | STREAM_WORDS, lambda why: Shutdown(f"{NOT_UNDERSTOOD}: {why}")
    ),
}


class Scheduler(PluginHost, Operating, Named, Telling, Looks, SchedulerView):
    """A scheduler in this process; `await Scheduler(...)` or `async with` starts it.

    Everything that upstream's scheduler shows (`tasks`, `workers`, ...) is a read-only view.
    """

    teardown_seconds_max = TEARDOWN_SECONDS_MAX
    """What its plugins and preloads may take together as it closes."""

    address = ""
    status = Status.created
    http_server: Any = None
    """The web page, once it is bound."""

    scaled_by: Callable[[Mapping[str, Any]], Awaitable[str]] | None = None
    """Has the cluster adapt that this scheduler is one of, by options of `Cluster.adapt`."""

    _journaling: Journaling | None = None  # if it keeps a journal
    _starting: asyncio.Task[None] | None = None
    _preparing: asyncio.Task[None] | None = None  # for its end
    _closing: asyncio.Task[None] | None = None
    _keeps_cluster = False  # at its end

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        protocol: str = "tcp",
        interface: str | None = None,
        sock: socket.socket | None = None,
        token: bytes | None = None,
        security: Any = None,
        scheduler_file: str | None = None,
        blocked_handlers: Sequence[str] | None = None,
        allowed_failures: int | None = None,
        worker_ttl: float | str | None = None,
        idle_timeout: float | str | None = None,
        contact_address: str | None = None,
        validate: bool | None = None,
        worker_saturation: float | None = None,
        resume_seconds: float | str | None = None,
        client_resume_seconds: float | str | None = None,
        services: Mapping[str, int] | None = None,
        dashboard_address: str | int | None = None,
        dashboard: bool | None = None,
        preload: str | Sequence[str] | None = None,
        preload_argv: Sequence[Any] = (),
        plugins: Iterable[Any] = (),
        journal: str | None = None,
    ) -> None:
        """Nothing happens before it is started.

        Args:
            host: where to listen; `protocol` "inproc" needs none.  It may have a scheme.
            interface: a network interface that has the address, instead.
            port: 0 = a free one.
            protocol: "tcp", "unix" or "inproc".
            sock: a listening socket to adopt instead.
            token: what clients and workers must hold; made if None.
            security: taken if it asks for no certificates.
            scheduler_file: where to write its address and token (mode 0600) as long as it serves.
            blocked_handlers: operations that it refuses; None: the setting's.
            allowed_failures: workers that may die while running a task, before it is to blame.
            worker_ttl: silence after which a worker is lost.
            idle_timeout: without work for so long, it closes.
            contact_address: what others are told to connect to, where that differs.
            validate: check every invariant after every step; slow, for tests.
            worker_saturation: runs out at once per thread.
            resume_seconds, client_resume_seconds: how long a worker, or a client, may take to come
                back after its connection broke; 0: it is lost at once.
            services: what else this process serves, by port; clients are told.
            dashboard_address: where to serve the web page: ":8787" (our host, and this port or the
                next that is free), "127.0.0.1:0" (any free port), or None for none.
            dashboard: False: nowhere, whatever the address.
            preload, preload_argv: see `observe/preloading.py`; None: the settings'.
            plugins: those that are there from the start.
            journal: a folder where it writes what the next scheduler that is started on it shall
                have: what is published, and what was fired and forgotten.  None: as is set.
        """
        self.preloads = preloads_of(self, preload, preload_argv)
        wanted, self.settings = settings_of(
            allowed_failures=allowed_failures, worker_ttl_seconds=worker_ttl, validate=validate,
            worker_saturation=worker_saturation, contact_address=contact_address,
            idle_timeout_seconds=idle_timeout, journal=journal,
            resume_seconds=resume_seconds, client_resume_seconds=client_resume_seconds,
        )  # fmt: skip
        self.idle_timeout, self.validate = wanted.idle_timeout_seconds, wanted.validate
        self.contact_address, self._journal_path = wanted.contact_address, wanted.journal
        self.services = dict(services or {})
        self.before_shutdown: list[Callable[[], object]] = []  # called as a client asks for that
        epoch = Epoch(secrets.randbits(63) | 1)
        self.machine = SchedulerMachine(self.settings, epoch, self.services)
        super().__init__(self.machine.state, self.machine.story)
        self.id = f"Scheduler-{secrets.token_hex(16)}"
        self.token, self._sock, self._file = token or new_token(), sock, scheduler_file
        refuse_encryption(security)
        self._dashboard_address = None if dashboard is False else dashboard_address
        self._asked = _address(protocol, host, interface, port, self.id)
        refused = wanted.blocked_handlers if blocked_handlers is None else blocked_handlers
        self.blocked_handlers = list(refused)
        self._started_at = time.time()  # for display only
        self.machine.about.id, self.machine.about.started_at = self.id, self._started_at
        self.machine.about.versions = told_versions()
        self.operations = Answering(self)
        self.hooks, self._folder = Plugins(self, self.machine), Scratch(None)
        self._gone, self._first_plugins = self.hooks.gone, list(plugins)
        self.membership = Membership(
            self.machine, self.operations, validate=wanted.validate, close_soon=self.close_soon,
            plugins=self.hooks,
            breaks=Breaks({WORKER: wanted.resume_seconds, CLIENT: wanted.client_resume_seconds}),
        )  # fmt: skip

    def __await__(self) -> Generator[Any, None, Self]:
        return self.start().__await__()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def start(self) -> Self:
        """Listen; returns at once if it does already.

        Raises:
            ListenError: the address is taken, or not ours.
            SettingError: a setting can't be used.
        """
        if self._starting is None:
            self._starting = asyncio.ensure_future(self._start())
        await self._starting
        return self

    async def _start(self) -> None:
        self.status = Status.starting
        self._loop = asyncio.get_running_loop()
        self.thread_id = threading.get_ident()
        self._begin_telling()
        self._finished = asyncio.Event()
        keyring = Keyring.from_token(self.token)
        try:
            self.exchange = ReplicaExchange(keyring, stall_seconds=BUSY_SECONDS)
            await self._begin_journal()
            self._open_page()
            self._listener: Listener = await listen(
                self._asked,
                keyring,
                DECODER_BY_ROLE.__getitem__,
                self.membership.accept,
                sock=self._sock,
            )
        except BaseException:
            self.status = Status.failed
            self.recent_logs.close()
            await self._close_page()
            await self._end_journal()
            raise
        self.address = self.contact_address or self._listener.address
        self._publication: Publication = publish_token(self.address, self.token)
        self.status = Status.running
        self.membership.open(self.exchange)
        if self.idle_timeout is not None:
            watch = IdleWatch(self.machine.state, self.idle_timeout, self.close_soon)
            self.membership.stepping.idle_watch = watch
            watch.look()
        try:
            self._begin_rounds()
            for plugin in self._first_plugins:
                await self.register_scheduler_plugin(plugin)
            if self._file:
                write_scheduler_file(self._file, self.identity(0), self.token)
        except BaseException:
            await self._close("it could not start")
            self.status = Status.failed
            raise
        await self.preloads.start()
        logger.info("scheduler at %s", self.address)

    async def _begin_journal(self) -> None:
        """Go on with what is in the journal, before anybody can come.  Raises as `Journaling`."""
        if self._journal_path is not None:
            folder = JournalFolder(self._journal_path)
            self._journaling = Journaling(folder, self.machine, self.membership.stepping)
            await self._journaling.begin()

    async def _end_journal(self) -> None:
        if self._journaling is not None:
            await self._journaling.close()

    def _open_page(self) -> None:
        """Bind the web page's socket.  The web stands on us, so it is found by its name."""
        if self._dashboard_address is not None:
            page = import_module("shoal.web.page")
            address = parse_address(self._asked)
            host = address.host if address.scheme == TCP else HERE
            self.http_server = page.open_page(self, self._dashboard_address, host)
        if self.http_server is not None:
            self.services[PAGE] = self.http_server.port

    async def _close_page(self) -> None:
        if self.http_server is not None:
            await self.http_server.close()

    def peer_of(self, worker: Worker) -> Asker:
        """The connection of a registered worker.

        Raises:
            ConnectionError: it has just gone.
        """
        return self.membership.peer_of(worker)

    def dismiss(self, worker: Worker, reason: str) -> None:
        """Have a worker close; what it ran is run elsewhere, and nothing is to blame."""
        self.membership.dismiss(worker, reason)

    def validate_state(self) -> None:
        """Check every invariant of the state.  Cost: O(tasks + edges + replicas).

        Raises:
            AssertionError: with a sentence for each that is broken.
        """
        self.membership.stepping.validate()

    def identity(self, n_workers: int = -1) -> FactsOfScheduler:
        """What the scheduler and its workers are, as plain values; see `describe`."""
        return facts_of_identity(self.describe(n_workers))

    def describe(self, nworkers: int = -1) -> Identity:
        """What the scheduler and its workers are.

        Args:
            nworkers: describe so many of the workers; -1: all.
        """
        workers = list(self.machine.state.workers.values())
        shown = workers[: nworkers if nworkers >= 0 else None]
        return Identity(
            self.id,
            self.address,
            self._started_at,
            [worker.identity(seconds_ahead()) for worker in shown],
            self.services,
            len(workers),
            sum(worker.nthreads for worker in workers),
            sum(worker.memory_limit for worker in workers),
        )

    @property
    def local_directory(self) -> str:
        """A folder of its own for files that it is sent, made when somebody looks."""
        return self._folder.path()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop that it lives on, once it was started."""
        return self._loop

    def close_soon(self, reason: str) -> None:
        """Close in a task of its own; for callers that must not wait for themselves."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close(reason))

    async def step_down(self) -> None:
        """End, and leave the cluster to a scheduler that is started in this one's place.

        Workers and clients are told nothing: they look for it as for one that died, as long as they
        are set to, and workers keep what they hold.
        """
        self._keeps_cluster = True
        await self.close("another one may take its place")

    async def prepare_to_close(self) -> None:
        """Have plugins do what they do before it closes, once.

        `close` does it, too; whoever ends the workers before the scheduler has it done before that.
        """
        if self._preparing is None:
            calls = self.hooks.call_and_wait("before_close", self.teardown_seconds_max)
            self._preparing = asyncio.ensure_future(calls)
        await asyncio.shield(self._preparing)

    async def close(self, reason: str = "closed") -> None:
        """Tell every worker and client, and end; returns when nothing is left of it."""
        if self._starting is None or self.status in (Status.created, Status.failed):
            self.status = Status.closed
            return
        self.close_soon(reason)
        assert self._closing is not None
        await asyncio.shield(self._closing)

    async def finished(self) -> None:
        """Wait until it has closed."""
        await self._finished.wait()

    async def _close(self, reason: str) -> None:
        deadline = time.monotonic() + self.teardown_seconds_max
        await self.prepare_to_close()
        await self.preloads.teardown(max(0.0, deadline - time.monotonic()))
        self.status = Status.closing
        self.membership.close()
        await self._end_journal()  # while those who are answered by it are still connected
        self._publication.withdraw()
        if self._file:
            remove_scheduler_file(self._file, self.address)
        self._listener.close()
        await self._close_page()
        await self.operations.close()
        await self._end_named()
        await self.membership.part_with_all(None if self._keeps_cluster else reason)
        await self.exchange.close()
        await self._listener.wait_closed()
        await self.hooks.call_and_wait("close", max(0.0, deadline - time.monotonic()))
        self.hooks.close()
        self._folder.remove()
        self.status = Status.closed
        self.recent_logs.close()
        self._finished.set()
        logger.info("scheduler at %s closed: %s", self.address, reason)


def _address(protocol: str, host: str, interface: str | None, port: int, name: str) -> str:
    """Where to listen."""
    scheme, host = split_scheme(host_of_interface(interface) if interface else host)
    protocol = scheme or protocol.removesuffix("://")
    if protocol == "inproc":
        return f"inproc://{name}"
    if protocol == "unix":
        return f"unix://@shoal-{os.getpid()}-{name[-8:]}"
    bracketed = f"[{host}]" if ":" in host else host
    return f"{protocol}://{bracketed}:{port}"
