"""A client's birth, life and end."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import warnings
import weakref
from collections.abc import Callable, Coroutine, Generator, Set
from types import TracebackType
from typing import Any, ClassVar, Self, TypeVar
from uuid import uuid4

import dask.config

from shoal import config
from shoal.client import current
from shoal.client.absent import UNDERSCORED
from shoal.client.answering import Answering
from shoal.client.nested import SERVES_TASKS
from shoal.client.options import (
    Target,
    connect_seconds,
    find_target,
    has_own_scheduler,
    keyring_of,
    require_open,
)
from shoal.client.prospects import prospects_of
from shoal.client.session import Session
from shoal.client.submission import Functions
from shoal.client.topics import ECHOED, Subscriptions
from shoal.comms import find_token
from shoal.comms.exchange import BUSY_SECONDS, ReplicaExchange
from shoal.config.telling import tell_of_unheeded
from shoal.observe.installed import mismatch_of, told_versions
from shoal.observe.preloading import Preloads, process_preloads
from shoal.observe.versions import VersionMismatchWarning
from shoal.protocol.detached import ServeTasks
from shoal.protocol.exceptions import to_failure
from shoal.protocol.handshake import Keyring
from shoal.protocol.membership import TerminateCluster
from shoal.protocol.topics import SubscribeTopics
from shoal.units import to_seconds

_logger = logging.getLogger("shoal.client")

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")
MISSING: Any = object()


def finishes(method: F) -> F:
    """Marks a method that returns a coroutine of its result; `tools/make_blocking.py` reads it.

    Its own part runs in the caller's thread, also in the blocking client.
    """
    return method


class ClientBase(Answering):
    """What the asynchronous client is, beside what it can do.  See `Client` for the arguments."""

    is_blocking: ClassVar[bool] = False
    _underscored: ClassVar[Set[str]] = UNDERSCORED

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
        super().__init__(
            f"Client-{name}-{uuid4().hex}" if name else f"Client-{uuid4().hex}",
            config.read(config.Client, direct_to_workers=direct_to_workers).direct_to_workers,
        )
        self.cluster: Any = None
        self.preloads = Preloads([])
        self.security = security
        self.scheduler_file = scheduler_file
        require_open(address)
        self._address = address
        self.is_default = set_as_default
        self._heartbeat_seconds = _heartbeat_seconds(heartbeat_interval)
        self.session.families.name(serializers, deserializers)
        self._cluster_options = kwargs
        self._owns_cluster = False
        self._functions = Functions()
        self.owner: weakref.ref[Any] | None = None  # the blocking client around this one
        self._serves_tasks = SERVES_TASKS.get()
        self._context_token: Any = None
        self._starting: asyncio.Task[None] | None = None
        self._finalizer = weakref.finalize(self, _abandon, self.session)

    # --- start and end -----------------------------------------------------------------------

    def __await__(self) -> Generator[Any, Any, Self]:
        return self._started().__await__()

    async def __aenter__(self) -> Self:
        await self._started()
        if self.is_default:  # else it is meant only where it is named
            self._context_token = current.enter(self.face)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._context_token is not None:
            current.leave(self._context_token)
        await self.close()

    async def _started(self) -> Self:
        """Connect, once however many wait for it; whoever has lost its scheduler was connected."""
        if self.session.is_away:
            return self
        if self._starting is None:
            self._starting = asyncio.ensure_future(self.start())
        await asyncio.shield(self._starting)
        return self

    async def start(self) -> None:
        """Connect to the scheduler; start a cluster first if none is named.

        Raises:
            OSError: nobody answers there, not in time, or it refuses us.
            SettingError: a setting can't be used.
        """
        if not self._serves_tasks:  # whose worker was started by somebody who has told
            tell_of_unheeded()
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
        try:
            keyring = self._keyring(target)
            settings = config.read(config.Client)
            seconds = 0.0 if has_own_scheduler(target) else settings.reconnect_seconds
            self.session.may_return(seconds, is_quiet=self._serves_tasks)
            await self.session.open(
                target.address,
                keyring,
                timeout_seconds=self._timeout_seconds,
                heartbeat_seconds=self._heartbeat_seconds,
                versions=told_versions(),
                watches_members=(self.owner is None or seconds > 0) and not self._serves_tasks,
                share=settings.share,
            )
        except BaseException:
            await self._close_owned_cluster()
            raise
        try:
            await self._begin(keyring)
        except BaseException:  # we are connected, and a default perhaps
            with contextlib.suppress(Exception):
                await self.close()
            raise

    async def _begin(self, keyring: Keyring) -> None:
        """What a client does once it is connected.

        Raises:
            BaseException: what the user has set to be loaded first raises.
        """
        differ = mismatch_of(told_versions(), *self.session.machine.versions_met)
        if differ:
            warnings.warn(differ, VersionMismatchWarning, stacklevel=3)
        self._exchange = ReplicaExchange(keyring, stall_seconds=BUSY_SECONDS)
        topics = self.session.state_of(Subscriptions)
        if self._serves_tasks:
            self.session.say(ServeTasks())
            self.session.greetings.append(_greeting_of_tasks)
        else:  # what tasks print is for people
            self.session.say(SubscribeTopics(list(ECHOED)))
            topics.echoes, topics.echoes_on_loop = True, self.owner is None
        self.session.greetings.append(topics.greeting)
        self.session.closers.append(self._exchange.close)
        if self.is_default:
            current.add_default(self.face)
        prospects = prospects_of(self.cluster)
        if prospects is not None:
            prospects.tell(self)
        settings = config.read(config.Client)
        if settings.preload:
            self.preloads = process_preloads(self.face, settings.preload, settings.preload_argv)
            await self.preloads.start()

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
                preloads, self.preloads = self.preloads, Preloads([])
                await preloads.teardown()
                await self.session.close()
        finally:
            self._finalizer.detach()
            if self.session.is_open:  # there was no time left for it
                self.session.end("client-closed")
            await self._close_owned_cluster()

    async def _close_owned_cluster(self) -> None:
        if self._owns_cluster:
            self._owns_cluster = False
            await self.cluster.close()

    def close_soon(self) -> None:
        """As `close`, from any thread: does not wait for the end of it."""
        current.remove_default(self.face)
        self.session.end_from_elsewhere("client-closed")

    async def shutdown(self) -> None:
        """End the cluster, then this client."""
        _logger.info("Shutting down scheduler from Client")
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

    @classmethod
    def current(cls, allow_global: bool = True) -> Any:
        """The client of this context, or else the default one.

        Raises:
            ValueError: there is none.
        """
        return current.current_client(allow_global)

    def sync(
        self,
        func: Callable[..., Coroutine[Any, Any, Any]],
        *args: Any,
        asynchronous: bool | None = None,
        callback_timeout: Any = None,
        **kwargs: Any,
    ) -> Any:
        """The coroutine `func(*args)`, finished if this client is a blocking one."""
        work = as_coroutine(func(*args, **kwargs))
        if callback_timeout is None:
            return work
        return within(work, to_seconds(callback_timeout))


def as_coroutine(work: Any) -> Any:
    """A coroutine of what else can be awaited, such as the future of an actor's call."""
    if asyncio.iscoroutine(work) or not inspect.isawaitable(work):
        return work
    return _awaited(work)


async def _awaited(work: Any) -> Any:
    return await work


async def within(work: Coroutine[Any, Any, R], seconds: float) -> R:
    """What `work` returns.  Raises TimeoutError: not in time; it is cancelled."""
    try:
        async with asyncio.timeout(seconds) as limit:
            return await work
    except TimeoutError:
        if limit.expired():  # else it is what the work raised
            raise TimeoutError(f"timed out after {seconds:g} s") from None
        raise


def _greeting_of_tasks() -> list[ServeTasks]:
    return [ServeTasks()]


def _heartbeat_seconds(interval: Any) -> float:
    """From the argument, whose plain numbers are milliseconds, or the setting."""
    if isinstance(interval, (int, float)):
        interval = interval / 1000
    return float(config.read(config.Client, heartbeat_seconds=interval).heartbeat_seconds)


def _abandon(session: Session) -> None:
    """A client was collected, or the process ends, without `close`."""
    session.end_from_elsewhere("client-closed")
    current.remove_default(None)
