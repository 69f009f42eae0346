"""The scheduler as a service: a listener, the machine, and a timer.

One path for everything that happens: step the machine, send what it left for each peer as one
frame, arm the timer.  A step that raises is a bug: the service logs its story and closes.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from importlib import import_module
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from shoal.comms import Listener, ProtocolError, listen, new_token, publish_token
from shoal.comms.addresses import TCP, parse_address
from shoal.comms.authority import Publication
from shoal.comms.exchange import ReplicaExchange
from shoal.errors import NameTaken
from shoal.ids import Epoch
from shoal.observe.facts import FactsOfScheduler, facts_of_identity
from shoal.observe.links import HERE, PAGE
from shoal.observe.status import Status
from shoal.observe.views import SchedulerView
from shoal.protocol.calls import (
    ClientToScheduler,
    Identity,
    WorkerIdentity,
    WorkerToScheduler,
)
from shoal.protocol.codec import Decoder
from shoal.protocol.handshake import CLIENT, WORKER, Keyring
from shoal.protocol.messages import Message, RegisterClient, RegisterWorker, Shutdown
from shoal.scheduler.machine.invariants import check
from shoal.scheduler.machine.step import SchedulerMachine
from shoal.scheduler.model.entities import NO_WORKER, QUEUED, WAITING, Client, Worker
from shoal.scheduler.shell.frames import ClientFrames
from shoal.scheduler.shell.operations import Operations
from shoal.scheduler.shell.peers import Peer
from shoal.scheduler.shell.settings import read_settings

logger = logging.getLogger("shoal.scheduler")

E = TypeVar("E", Worker, Client)

DECODER_BY_ROLE: Final[Mapping[str, Decoder]] = {
    CLIENT: Decoder(ClientToScheduler),
    WORKER: Decoder(WorkerToScheduler),
}


class Scheduler(SchedulerView):
    """A scheduler in this process; `await Scheduler(...)` or `async with` starts it.

    Everything that upstream's scheduler shows (`tasks`, `workers`, ...) is a read-only view.
    """

    stranded_after_seconds = 2.0
    """Without a worker after the last one died, until a word about the tasks that wait: a nanny
    that starts another needs less."""

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        protocol: str = "tcp",
        sock: socket.socket | None = None,
        token: bytes | None = None,
        allowed_failures: int | None = None,
        worker_ttl: float | str | None = None,
        validate: bool = False,
        worker_saturation: float | None = None,
        services: Mapping[str, int] | None = None,
        dashboard_address: str | int | None = None,
    ) -> None:
        """Nothing happens before it is started.

        Args:
            host: where to listen; `protocol` "inproc" needs none.
            port: 0 = a free one.
            protocol: "tcp", "unix" or "inproc".
            sock: a listening socket to adopt instead.
            token: what clients and workers must hold; made if None.
            allowed_failures: workers that may die while running a task, before it is to blame.
            worker_ttl: silence after which a worker is lost.
            validate: check every invariant after every step; slow, for tests.
            worker_saturation: runs out at once per thread.
            services: what else this process serves, by port; clients are told.
            dashboard_address: where to serve the web page: ":8787" (our host, and this port or the
                next that is free), "127.0.0.1:0" (any free port), or None for none.
        """
        self.settings = read_settings(
            allowed_failures=allowed_failures,
            worker_ttl_seconds=worker_ttl,
            worker_saturation=worker_saturation,
        )
        self.services = dict(services or {})
        self.before_shutdown: list[Callable[[], object]] = []  # called as a client asks for that
        epoch = Epoch(secrets.randbits(63) | 1)
        self.machine = SchedulerMachine(self.settings, epoch, self.services)
        super().__init__(self.machine.state, self.machine.story)
        self.id = f"Scheduler-{secrets.token_hex(16)}"
        self.token = token or new_token()
        self.address = ""
        self.http_server: Any = None  # the web page, once it is bound
        self._dashboard_address = dashboard_address
        self.status = Status.created
        self.operations = Operations(self)
        self._asked = _address(protocol, host, port, self.id)
        self._sock = sock
        self._validate = validate
        self._started_at = time.time()  # for display only
        self._frames = ClientFrames(
            self.machine, self._receive_from_client, self._lose_client, self._refuse
        )
        self._peers: dict[Worker | Client, Peer] = {}
        self._strangers: dict[Peer, None] = {}  # connected, but not registered yet
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._stranding: asyncio.TimerHandle | None = None
        self._starting: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

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
        """
        if self._starting is None:
            self._starting = asyncio.ensure_future(self._start())
        await self._starting
        return self

    async def _start(self) -> None:
        self.status = Status.starting
        self._loop = asyncio.get_running_loop()
        self._finished = asyncio.Event()
        keyring = Keyring.from_token(self.token)
        self.exchange = ReplicaExchange(keyring)
        try:
            self._open_page()
            self._listener: Listener = await listen(
                self._asked,
                keyring,
                DECODER_BY_ROLE.__getitem__,
                self._accept,
                sock=self._sock,
            )
        except BaseException:
            self.status = Status.failed
            await self._close_page()
            raise
        self.address = self._listener.address
        self._publication: Publication = publish_token(self.address, self.token)
        self.status = Status.running
        logger.info("scheduler at %s", self.address)

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

    def receive_from_worker(self, worker: Worker, messages: Sequence[Message]) -> None:
        """A worker has spoken."""
        self._step(self.machine.receive_from_worker, worker, messages, self._loop.time())

    def receive_from_client(self, client: Client, messages: Sequence[Message]) -> None:
        """A client has spoken."""
        self._frames.take(client, messages)

    def _receive_from_client(self, client: Client, messages: Sequence[Message]) -> None:
        self._step(self.machine.receive_from_client, client, messages, self._loop.time())

    def _lose_client(self, client: Client) -> None:
        self._step(self.machine.client_lost, client, self._loop.time())

    def _refuse(self, client: Client, error: ProtocolError) -> None:
        """A client contradicted itself in what had to wait; its connection ends."""
        peer = self._peers.get(client)
        if peer is not None:
            logger.warning("%s is disconnected: %s", client, error)
            peer.connection.abort()

    def worker_joined(self, peer: Peer, message: RegisterWorker) -> Worker:
        """A worker has said who it is.

        Raises:
            NameTaken: another has its name.
            ConnectionError: this scheduler is closing.
        """

        def join() -> None:
            before = self.machine.state.workers.get(message.address)
            worker = self.machine.worker_joined(message, self._loop.time())
            if before is not None:
                self._peers.pop(before).connection.close()
            self._welcome(peer, worker)
            joined.append(worker)

        joined: list[Worker] = []
        self._step(join)
        worker = self._joined(joined)
        logger.info("Worker %s (%s) has joined", worker.name, worker.address)
        return worker

    def client_joined(self, peer: Peer, message: RegisterClient) -> Client:
        """A client has said who it is.  Raises ConnectionError: this scheduler is closing."""

        def join() -> None:
            client = self.machine.client_joined(message, self._loop.time())
            self._welcome(peer, client)
            joined.append(client)

        joined: list[Client] = []
        self._step(join)
        return self._joined(joined)

    def _joined(self, joined: list[E]) -> E:
        """Who joined in the step before."""
        if not joined:
            raise ConnectionError("this scheduler is closing")
        return joined[0]

    def peer_lost(self, peer: Peer, reason: Exception | None) -> None:
        """A connection has ended."""
        self._strangers.pop(peer, None)
        entity = peer.entity
        if entity is None or self._peers.get(entity) is not peer:
            return
        del self._peers[entity]
        if isinstance(entity, Worker):
            why = str(reason) if reason is not None else "its process ended or closed"
            self.exchange.forget(entity.address)
            self._step(self.machine.worker_lost, entity, self._loop.time(), why)
            how = "has left" if entity.is_leaving else "was lost"
            logger.info("Worker %s (%s) %s: %s", entity.name, entity.address, how, why)
            if not entity.is_leaving:
                self._worker_died()
        else:
            self._frames.leave(entity)

    def _worker_died(self) -> None:
        """If it was the last one, see a little later whether another has taken its place."""
        if not self.machine.state.workers and self._stranding is None:
            delay_seconds = self.stranded_after_seconds
            self._stranding = self._loop.call_later(delay_seconds, self._tell_of_stranded_tasks)

    def _tell_of_stranded_tasks(self) -> None:
        """Whoever looks at this log can start a worker."""
        self._stranding = None
        state = self.machine.state
        nwaiting = state.ntasks[NO_WORKER] + state.ntasks[QUEUED] + state.ntasks[WAITING]
        if self.status == Status.running and nwaiting and not state.workers:
            tasks = "1 task waits" if nwaiting == 1 else f"{nwaiting} tasks wait"
            logger.warning("%s: no worker is left", tasks)

    def peer_of(self, worker: Worker) -> Peer:
        """The connection of a registered worker.

        Raises:
            ConnectionError: it has just gone.
        """
        try:
            return self._peers[worker]
        except KeyError:
            raise ConnectionError(f"the worker at {worker.address} has just gone") from None

    def dismiss(self, worker: Worker, reason: str) -> None:
        """Have a worker close; what it ran is run elsewhere, and nothing is to blame."""
        peer = self._peers.pop(worker, None)
        if peer is not None:
            peer.send([Shutdown(reason)])
            peer.connection.close()
            self._step(self.machine.worker_lost, worker, self._loop.time(), reason, True)
            logger.info("Worker %s (%s) is sent away: %s", worker.name, worker.address, reason)

    def validate_state(self) -> None:
        """Check every invariant of the state.  Cost: O(tasks + edges + replicas).

        Raises:
            AssertionError: with a sentence for each that is broken.
        """
        broken = list(check(self.machine.state))
        assert not broken, "\n".join(broken)

    def identity(self) -> FactsOfScheduler:
        """What the scheduler and its workers are, as plain values."""
        return facts_of_identity(self.describe())

    def describe(self) -> Identity:
        """What the scheduler and its workers are."""
        workers = [_describe(worker) for worker in self.machine.state.workers.values()]
        return Identity(self.id, self.address, self._started_at, workers, self.services)

    def close_soon(self, reason: str) -> None:
        """Close in a task of its own; for callers that must not wait for themselves."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close(reason))

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
        self.status = Status.closing
        self._publication.withdraw()
        self._listener.close()
        await self._close_page()
        for timer in (self._timer, self._stranding):
            if timer is not None:
                timer.cancel()
        await self.operations.close()
        peers = [*self._peers.values(), *self._strangers]
        for peer in peers:
            peer.send([Shutdown(reason)])
            peer.connection.close()
        await asyncio.gather(*(peer.connection.wait_closed() for peer in peers))
        await self.exchange.close()
        await self._listener.wait_closed()
        self.status = Status.closed
        self._finished.set()
        logger.info("scheduler at %s closed: %s", self.address, reason)

    def _accept(self, connection: Any) -> None:
        if self.status == Status.running:
            self._strangers[Peer(self, connection)] = None
        else:
            connection.abort()

    def _welcome(self, peer: Peer, entity: Worker | Client) -> None:
        self._strangers.pop(peer, None)
        self._peers[entity] = peer

    def _step(self, event: Any, *args: Any) -> None:
        """Step the machine and do what it says.  Nothing is said any more once we close."""
        if self.status != Status.running:
            return
        try:
            event(*args)
            if self._validate:
                self.validate_state()
        except (ProtocolError, NameTaken):
            raise  # the peer's fault: its connection ends, and nobody else's
        except Exception:
            logger.critical(
                "bug in the scheduler's machine; it closes. The last transitions:\n%s",
                "\n".join(str(record) for record in list(self.machine.story)[-50:]),
                exc_info=True,
            )
            self.close_soon("a bug in the scheduler, see its log")
            return
        self._after_step()

    def _after_step(self) -> None:
        """Send what is to be said, one frame for each peer, and arm the timer."""
        peers = self._peers
        for entity, messages in self.machine.take_outgoing():
            peer = peers.get(entity)
            if peer is not None:
                peer.send(messages)
        wake_at = self.machine.wake_at
        if wake_at is not None and (self._timer is None or wake_at < self._timer_at):
            if self._timer is not None:
                self._timer.cancel()
            self._timer_at = wake_at
            self._timer = self._loop.call_at(wake_at, self._wake)
        if self._frames.is_one_due:
            self._loop.call_soon(self._frames.go_on)

    def _wake(self) -> None:
        self._timer = None
        silent: list[Worker] = []
        self._step(lambda: silent.extend(self.machine.wake(self._loop.time())))
        for worker in silent:
            logger.warning(
                "Worker %s (%s, process id %s) is given up, as it was silent for %.1f s; what it "
                "ran and held is computed elsewhere. It was stopped, or a task never lets go of "
                "its interpreter, or the network is broken",
                worker.name,
                worker.address,
                worker.pid,
                self._loop.time() - worker.heard_at,
            )
            peer = self._peers.pop(worker, None)
            if peer is not None:
                peer.connection.close()
        if silent:
            self._worker_died()


def _describe(worker: Worker) -> WorkerIdentity:
    """A worker as `scheduler_info()` shows it."""
    return WorkerIdentity(
        worker.address,
        worker.id,
        worker.name,
        worker.host,
        worker.nthreads,
        worker.memory_limit,
        worker.pid,
        worker.resources,
        status="closing_gracefully" if worker.is_leaving else "running",
        nprocessing=len(worker.processing),
        nbytes=worker.nbytes,
    )


def _address(protocol: str, host: str, port: int, name: str) -> str:
    """Where to listen."""
    if protocol == "inproc":
        return f"inproc://{name}"
    if protocol == "unix":
        return f"unix://@shoal-{os.getpid()}-{name[-8:]}"
    bracketed = f"[{host}]" if ":" in host else host
    return f"{protocol}://{bracketed}:{port}"
