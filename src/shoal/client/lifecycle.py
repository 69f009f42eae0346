"""A client's birth, life and end, and what futures ask of it."""

from __future__ import annotations

import asyncio
import weakref
from collections import Counter
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextlib import AbstractContextManager
from html import escape
from types import TracebackType
from typing import Any, ClassVar, Self, TypeVar
from uuid import uuid4

import dask
import dask.config

from shoal import config
from shoal.client import current
from shoal.client.absent import Absent
from shoal.client.blocking import CALLBACKS
from shoal.client.errors import ClientClosed, ForeignFuture
from shoal.client.future import Future, exception_of
from shoal.client.gathering import Gathering, outcome_error
from shoal.client.machine import CANCELLED, Record
from shoal.client.options import Target, connect_seconds, find_target, keyring_of
from shoal.client.prospects import prospects_of
from shoal.client.session import Session
from shoal.client.submission import Functions
from shoal.comms import Connection, find_token
from shoal.comms.addresses import TCP, is_on_this_host, parse_address
from shoal.comms.exchange import ReplicaExchange
from shoal.observe.links import dashboard_link
from shoal.protocol.calls import TerminateCluster
from shoal.protocol.exceptions import to_failure
from shoal.protocol.handshake import Keyring
from shoal.protocol.keys import from_canonical, to_text
from shoal.units import to_seconds
from shoal.version import VERSION

F = TypeVar("F", bound=Callable[..., Any])
MISSING: Any = object()
_dask: Any = dask  # it ships annotations for half of its functions


def finishes(method: F) -> F:
    """Marks a method that returns a coroutine of its result; `tools/make_blocking.py` reads it.

    Its own part runs in the caller's thread, also in the blocking client.
    """
    return method


class ClientBase(Absent):
    """What the asynchronous client is, beside what it can do.  See `Client` for the arguments."""

    is_blocking: ClassVar[bool] = False

    def __init__(
        self,
        address: Any = None,
        loop: Any = None,
        timeout: Any = MISSING,
        set_as_default: bool = True,
        scheduler_file: str | None = None,
        security: Any = None,
        asynchronous: bool = True,
        name: str | None = None,
        heartbeat_interval: Any = None,
        serializers: Any = None,
        deserializers: Any = None,
        extensions: Any = None,
        direct_to_workers: bool | None = None,
        connection_limit: int = 512,
        **kwargs: Any,
    ) -> None:
        if timeout is None:
            raise ValueError("timeout=None is no timeout: give seconds, or leave it out")
        self._timeout_seconds = connect_seconds(None if timeout is MISSING else timeout)
        name = name or dask.config.get("client-name", None)
        self.id = f"Client-{name}-{uuid4().hex}" if name else f"Client-{uuid4().hex}"
        self.session = Session(self.id)
        self.cluster: Any = None
        self.security = security
        self.scheduler_file = scheduler_file
        self.direct_to_workers = config.read(
            config.Client, direct_to_workers=direct_to_workers
        ).direct_to_workers
        self._address = address
        self._set_as_default = set_as_default
        self._heartbeat_seconds = _heartbeat_seconds(heartbeat_interval)
        self._cluster_options = kwargs
        self._owns_cluster = False
        self._functions = Functions()
        self._exchange: ReplicaExchange | None = None  # with workers, once we know the keys
        self.owner: weakref.ref[Any] | None = None  # the blocking client around this one
        self._context_token: Any = None
        self._starting: asyncio.Task[None] | None = None
        self._finalizer = weakref.finalize(self, _abandon, self.session)

    # --- start and end -----------------------------------------------------------------------

    def __await__(self) -> Generator[Any, Any, Self]:
        return self._started().__await__()

    async def __aenter__(self) -> Self:
        await self._started()
        self._context_token = current.enter(self.face)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        current.leave(self._context_token)
        await self.close()

    async def _started(self) -> Self:
        """Connect, once however many wait for it."""
        if self._starting is None:
            self._starting = asyncio.ensure_future(self.start())
        await asyncio.shield(self._starting)
        return self

    async def start(self) -> None:
        """Connect to the scheduler; start a cluster first if none is named.

        Raises:
            OSError: nobody answers there, not in time, or it refuses us.
        """
        where = self._address, self.scheduler_file, self._timeout_seconds
        if self.scheduler_file is None:
            target = find_target(*where)
        else:
            target = await asyncio.to_thread(find_target, *where)
        if target is None:
            target = await self._start_cluster()
        elif self._cluster_options:
            raise ValueError(f"Unexpected keyword arguments: {sorted(self._cluster_options)}")
        self.cluster = target.cluster
        keyring = self._keyring(target)
        try:
            await self.session.open(
                target.address,
                keyring,
                timeout_seconds=self._timeout_seconds,
                heartbeat_seconds=self._heartbeat_seconds,
                versions={"shoal": VERSION, "dask": _dask.__version__},
            )
        except BaseException:
            if self._owns_cluster:
                self._owns_cluster = False
                await target.cluster.close()
            raise
        self._exchange = ReplicaExchange(keyring)
        self.session.closers.append(self._exchange.close)
        if self._set_as_default:
            current.add_default(self.face)
        prospects = prospects_of(self.cluster)
        if prospects is not None:
            prospects.tell(self)

    def lose_hope(self, reason: Exception) -> None:
        """The cluster has no worker, and none will come: what is waited for fails with `reason`,
        and so does what is waited for from now on, until there is hope again.

        From any thread.  Cost: O(results that are wanted).
        """
        session, failure = self.session, to_failure(reason)
        with session.lock:
            session.machine.hopeless = failure
            for record in list(session.machine.by_number.values()):
                session.machine.fail(record, failure)
        session.wake()

    def regain_hope(self) -> None:
        """Workers are wanted again, so that results may be waited for.  From any thread."""
        with self.session.lock:
            self.session.machine.hopeless = None

    async def _start_cluster(self) -> Target:
        from importlib import import_module  # clusters are built on clients, not beneath them

        local = import_module("shoal.deploy.local")
        options = dict(self._cluster_options)
        if self.security is not None:
            options["security"] = self.security
        cluster = await local.LocalCluster(asynchronous=True, **options)
        self._owns_cluster = True
        return Target(cluster.scheduler_address, cluster.token, cluster)

    def _keyring(self, target: Target) -> Keyring:
        given = keyring_of(self.security, target.token)
        if given is not None:
            return given
        token = find_token(target.address)
        return Keyring({}) if token is None else Keyring.from_token(token)

    async def close(self, timeout: Any = None) -> None:
        """Release all futures and disconnect; close the cluster if this client started it.

        Args:
            timeout: seconds; twice the one for connecting by default.
        """
        current.remove_default(self.face)
        seconds = 2 * self._timeout_seconds if timeout is None else to_seconds(timeout)
        try:
            async with asyncio.timeout(seconds):
                await self.session.close()
        finally:
            self._finalizer.detach()
            if self._owns_cluster:
                self._owns_cluster = False
                await self.cluster.close()

    def close_soon(self) -> None:
        """As `close`, from any thread: does not wait for the end of it."""
        current.remove_default(self.face)
        self.session.end_from_elsewhere("client-closed")

    async def shutdown(self) -> None:
        """End the cluster, then this client."""
        if self.cluster is not None:
            closing = self.cluster.close()
            if asyncio.iscoroutine(closing) or isinstance(closing, asyncio.Future):
                await closing
            self._owns_cluster = False
        elif self.session.status == "running":
            try:
                await self.session.call(TerminateCluster, timeout_seconds=self._timeout_seconds)
            except OSError:
                pass  # it has gone, which is what was asked for
        await self.close()

    # --- what it is --------------------------------------------------------------------------

    @property
    def face(self) -> Any:
        """The client that the user holds: the blocking one around this one, or this one."""
        owner = self.owner() if self.owner is not None else None
        return owner if owner is not None else self

    @property
    def asynchronous(self) -> bool:
        """Whether methods that wait return coroutines."""
        return True

    @property
    def status(self) -> str:
        """`newly-created`, `connecting`, `running`, `closing` or `closed`."""
        return self.session.status

    @property
    def loop(self) -> Any:
        """The event loop that serves this client."""
        return self.session.loop

    @property
    def is_on_loop(self) -> bool:
        """Whether the caller runs on that loop."""
        return self.session.is_on_loop

    @property
    def scheduler_address(self) -> str:
        """Where the scheduler is; empty before the client was started."""
        return self.session.address

    @property
    def futures(self) -> Mapping[Any, Record]:
        """Key -> what is known of it, of everything that futures of this client hold now."""
        with self.session.lock:
            self.session.take_dropped()
            return {from_canonical(key): r for key, r in self.session.machine.records.items()}

    @property
    def refcount(self) -> Mapping[Any, int]:
        """How many futures there are of each key; 0 of one that is not known.  Cost: O(keys)."""
        return Counter({key: record.nfutures for key, record in self.futures.items()})

    @property
    def dashboard_link(self) -> str:
        """Address of the web page; empty if there is none, or none that this host can see, or it
        isn't known yet."""
        link = getattr(self.cluster, "dashboard_link", None)
        if isinstance(link, str):
            return link
        session = self.session
        return dashboard_link(
            session.address,
            session.machine.services,
            is_beside=session.connection is not None and _stays_on_this_host(session.connection),
        )

    def as_current(self) -> AbstractContextManager[None]:
        """Make this the client that is meant when none is named, in this context."""
        return current.as_current(self.face)

    @classmethod
    def current(cls, allow_global: bool = True) -> Any:
        """The client of this context, or else the default one.

        Raises:
            ValueError: there is none.
        """
        return current.current_client(allow_global)

    def __repr__(self) -> str:
        session = self.session
        nfutures = len(session.machine.records)
        return f"<Client: {session.address or 'not connected'!r} {session.status}, {nfutures} keys>"

    def _repr_html_(self) -> str:
        link = self.dashboard_link
        page = f', <a href="{escape(link)}">dashboard</a>' if link else ""
        return f"<b>Client</b> {escape(self.status)} at {escape(self.scheduler_address)}{page}"

    # --- what futures ask --------------------------------------------------------------------

    def finish(self, work: Any) -> Any:
        """The result of a coroutine, or here: the coroutine itself."""
        return work

    def future_result(self, future: Future, timeout: Any = None) -> Any:
        """See `Future.result`."""
        return self.await_future(future, timeout)

    def future_exception(self, future: Future, timeout: Any = None) -> Any:
        """See `Future.exception`."""
        return self.await_exception(future, timeout)

    def future_traceback(self, future: Future, timeout: Any = None) -> Any:
        """See `Future.traceback`."""
        return self.await_traceback(future, timeout)

    async def await_future(self, future: Future, timeout: Any = None) -> Any:
        """The result of one future."""
        record = future.record
        seconds = None if timeout is None else to_seconds(timeout)
        try:
            async with asyncio.timeout(seconds) as limit:
                values = await self.gathering().run([record])
        except TimeoutError:
            if limit.expired():  # else it is what the task raised
                raise late(record, seconds) from None
            raise
        return values[record]

    async def await_exception(self, future: Future, timeout: Any = None) -> BaseException | None:
        """What the task raised."""
        record = future.record
        seconds = None if timeout is None else to_seconds(timeout)
        try:
            async with asyncio.timeout(seconds):
                await self.session.wait_all([record])
        except TimeoutError:
            raise late(record, seconds) from None
        return outcome_error(record) if record.status == CANCELLED else exception_of(record)

    async def await_traceback(self, future: Future, timeout: Any = None) -> TracebackType | None:
        """Where the task raised."""
        error = await self.await_exception(future, timeout)
        return None if error is None else error.__traceback__

    def add_done_callback(self, future: Future, fn: Callable[[Future], object]) -> None:
        """See `Future.add_done_callback`."""
        if not self.session.watch(future.record, lambda record: CALLBACKS.put(fn, future)):
            CALLBACKS.put(fn, future)

    def record_of(self, future: Future) -> Record:
        """What is known of a future.

        Raises:
            ForeignFuture: it is another client's.
        """
        record = future.record
        if future.face.session is not self.session:
            raise ForeignFuture(future.key)
        return record

    def gathering(self, *, skip: bool = False, direct: bool | None = None) -> Gathering:
        """A gather to be run once."""
        if direct is None:
            direct = self.direct_to_workers is not False
        return Gathering(self.session, self.exchange, skip=skip, direct=direct)

    @property
    def exchange(self) -> ReplicaExchange:
        """The way to workers' memory; raises ClientClosed before the client was started."""
        if self._exchange is None:
            raise ClientClosed(self.id, self.status)
        return self._exchange

    def sync(self, func: Callable[..., Coroutine[Any, Any, Any]], *args: Any, **kwargs: Any) -> Any:
        """The coroutine `func(*args)`, finished if this client is a blocking one."""
        kwargs.pop("asynchronous", None)
        kwargs.pop("callback_timeout", None)
        return func(*args, **kwargs)


def late(record: Record, seconds: float | None) -> TimeoutError:
    """What to raise for a record that has not ended in time."""
    return TimeoutError(f"{to_text(record.key)} has not ended within {seconds:g} s")


def _heartbeat_seconds(interval: Any) -> float:
    """From the argument, whose plain numbers are milliseconds, or the setting."""
    if isinstance(interval, (int, float)):
        interval = interval / 1000
    return float(config.read(config.Client, heartbeat_seconds=interval).heartbeat_seconds)


def _stays_on_this_host(connection: Connection) -> bool:
    """Whether the other side is on this host, as far as its address and the way to it tell."""
    return connection.scheme != TCP or is_on_this_host(parse_address(connection.peer_address))


def _abandon(session: Session) -> None:
    """A client was collected, or the process ends, without `close`."""
    session.end_from_elsewhere("client-closed")
    current.remove_default(None)
