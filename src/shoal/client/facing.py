"""The hand-written half of the blocking client: its life, and what futures ask of it.

The other half, one method for each of the asynchronous client's, is generated.
"""

from __future__ import annotations

import asyncio
import time
import weakref
from abc import ABCMeta
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, ClassVar, NoReturn, Self, TypeVar, cast

from shoal.client import current
from shoal.client.absent import Absent
from shoal.client.asynchronous import AsyncClient
from shoal.client.blocking import Latch, LoopThread
from shoal.client.errors import BlockingCall, UnpicklableClient
from shoal.client.future import Future, exception_of
from shoal.client.gathering import load_near, outcome_error
from shoal.client.lateness import late
from shoal.client.leaving import OPEN, abandon, call_aside
from shoal.client.lifecycle import MISSING, as_coroutine, within
from shoal.client.machine import CANCELLED, ERROR, FINISHED, UNRESOLVED, Record
from shoal.client.options import connect_seconds, find_target, seconds_or
from shoal.client.session import Session
from shoal.client.showing import ASK_SECONDS, as_page, in_a_line
from shoal.errors import ShoalError
from shoal.observe.inside import waiting_for_tasks

T = TypeVar("T")


class BlockingBase(Absent, metaclass=ABCMeta):  # for `register`: see client.py
    """A connection to a scheduler.

    Methods wait.  On the client's own loop, as in what `sync` runs, where nothing may wait, they
    return coroutines of what they return elsewhere.

    Args:
        address: of the scheduler, or a cluster; None: the one in the settings
            (`scheduler-address`), or else a LocalCluster made for this client.
        loop: not used; all blocking clients share one loop in a thread.
        timeout: seconds for connecting, or a text such as "10s".
        set_as_default: be the client that is meant when none is named, for dask as well.
        scheduler_file: JSON file with the scheduler's `address`; waited for.
        security: None, or the cluster's token (bytes) if it can't be found by the address.
        asynchronous: make an AsyncClient instead, which is to be awaited.
        name: part of `id`, for people.
        heartbeat_interval: a text such as "5s", or milliseconds.
        direct_to_workers: fetch results from workers; False: through the scheduler.
        serializers, deserializers: names of the families that values scattered from here, and
            results that arrive here, may use; see docs/serialisation.md.
        extensions, connection_limit: not used.
        kwargs: for the LocalCluster.

    Raises:
        OSError: nobody answers there, not in time, or it refuses us.
        TypeError, ValueError: an argument makes no sense.
        BlockingCall: the cluster is on the event loop that the caller runs on.
    """

    is_blocking: ClassVar[bool] = True

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        asynchronous = kwargs.get("asynchronous", args[6] if len(args) > 6 else False)
        if asynchronous:
            return AsyncClient(*args, **kwargs)
        return super().__new__(cls)

    def __init__(
        self,
        address: Any = None,
        loop: Any = None,
        timeout: Any = MISSING,
        set_as_default: bool = True,
        scheduler_file: str | None = None,
        security: Any = None,
        asynchronous: bool = False,
        name: str | None = None,
        heartbeat_interval: Any = None,
        serializers: Any = None,
        deserializers: Any = None,
        extensions: Any = None,
        direct_to_workers: bool | None = None,
        connection_limit: int = 512,
        **kwargs: Any,
    ) -> None:
        self._closed = True  # until there is something to close
        self._owned: list[Any] = []  # the cluster that was started for this client, if one was
        seconds = connect_seconds(None if timeout is MISSING else timeout)
        if _runs_here(address):
            raise BlockingCall
        if find_target(address, scheduler_file, seconds) is None:
            address = _local_cluster(security, kwargs)
            self._owned.append(address)
            kwargs = {}
        try:
            self._async = AsyncClient(
                address,
                timeout=timeout,
                set_as_default=set_as_default,
                scheduler_file=scheduler_file,
                security=security,
                name=name,
                heartbeat_interval=heartbeat_interval,
                serializers=serializers,
                deserializers=deserializers,
                direct_to_workers=direct_to_workers,
                **kwargs,
            )
        except BaseException:  # an argument makes no sense
            while self._owned:
                self._owned.pop().close()
            raise
        self._async.owner = weakref.ref(self)
        self.session: Session = self._async.session
        self._thread = LoopThread.acquire()
        self._closed = False
        self._context_token: Any = None
        self._finalizer = weakref.finalize(self, abandon, self.session, self._thread, self._owned)
        self._finalizer.atexit = False  # the handler below waits, which a finalizer must not
        try:
            self._thread.run(self._async.start())
        except BaseException:
            self.close()
            raise
        OPEN.add(self)

    def start(self, **kwargs: Any) -> None:
        """Nothing: a blocking client is connected from the start."""

    @classmethod
    def around(cls, asynchronous: AsyncClient, thread: LoopThread) -> Self:
        """A client with the session of `asynchronous`, which is connected, and ends with it."""
        self = object.__new__(cls)
        self._owned = []
        self._async = asynchronous
        self._async.owner = weakref.ref(self)
        self.session = asynchronous.session
        self._thread = thread
        self._closed = False
        self._context_token = None
        self._finalizer = weakref.finalize(self, abandon, self.session, thread, self._owned)
        self._finalizer.detach()  # whoever made the other client ends it
        return self

    # --- the end -----------------------------------------------------------------------------

    def close(self, timeout: Any = None) -> None:
        """Release all futures and disconnect; close the cluster if this client started it.

        Args:
            timeout: seconds; twice the one for connecting by default.
        """
        if self._thread.is_here:
            return self.hand_over(self._close_here(timeout))
        if self._closed:
            return None
        self._closed = True
        self._finalizer.detach()
        try:
            if self._thread.is_alive:  # else we are a child of a fork: it is the parent's
                self._thread.run(self._async.close(timeout))
        finally:
            self._thread.release()
            while self._owned:
                self._owned.pop().close()
        return None

    async def _close_here(self, timeout: Any) -> None:
        """As `close`, on the client's loop."""
        if self._closed:
            return
        self._closed = True
        self._finalizer.detach()
        try:
            await self._async.close(timeout)
        finally:
            while self._owned:
                await call_aside(self._owned.pop().close)
            self._thread.release()

    def close_soon(self) -> None:
        """As `close`, from any thread, a loop's included: does not wait for the end of it."""
        if not self._closed:
            self._closed = True
            self._finalizer()

    def shutdown(self) -> None:
        """End the cluster, then this client."""
        if self._thread.is_here:
            return self.hand_over(self._shut_down_here())
        if self.cluster is not None:
            self._owned[:] = [self.cluster]
            self.close()
        elif not self._closed:
            self._thread.run(self._async.shutdown())
            self.close()
        return None

    async def _shut_down_here(self) -> None:
        """As `shutdown`, on the client's loop."""
        if self.cluster is not None:
            self._owned[:] = [self.cluster]
        elif not self._closed:
            await self._async.shutdown()
        await self._close_here(None)

    def __enter__(self) -> Self:
        if self._thread.is_here:  # the end of the block could not wait
            raise BlockingCall
        if self._async.is_default:  # else it is meant only where it is named
            self._context_token = current.enter(self, for_dask=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._context_token is not None:
            current.leave(self._context_token)
        self.close()

    # --- what it is --------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """How the scheduler knows this client."""
        return self._async.id

    @property
    def status(self) -> str:
        """`connecting`, `running`, `closing` or `closed`."""
        return "closed" if self._closed else self._async.status

    @property
    def asynchronous(self) -> bool:
        """Whether the caller runs on the client's own loop, where methods return coroutines."""
        return self._thread.is_here

    @property
    def exchange(self) -> Any:
        """The way to workers' memory, for its loop."""
        return self._async.exchange

    @property
    def is_on_loop(self) -> bool:
        """As `asynchronous`."""
        return self._thread.is_here

    @property
    def loop(self) -> Any:
        """The event loop that serves this client."""
        return self._thread.loop

    @property
    def cluster(self) -> Any:
        """The cluster that this client was given or has started; None if neither."""
        return self._async.cluster

    @property
    def security(self) -> Any:
        """As given."""
        return self._async.security

    @property
    def scheduler_file(self) -> str | None:
        """As given."""
        return self._async.scheduler_file

    @property
    def direct_to_workers(self) -> bool | None:
        """As given, or set."""
        return self._async.direct_to_workers

    @classmethod
    def current(cls, allow_global: bool = True) -> Any:
        """The client of this context, or else the default one.

        Raises:
            ValueError: there is none.
        """
        return current.current_client(allow_global)

    def __reduce__(self) -> NoReturn:
        raise UnpicklableClient

    def __repr__(self) -> str:
        if not hasattr(self, "_thread"):  # an argument made no sense
            return in_a_line("", "newly-created", None)
        return in_a_line(self.session.address, self.status, self._facts_shown())

    def _repr_html_(self) -> str:
        facts, link = self._facts_shown(), self._async.dashboard_link
        return as_page(self.id, self.session.address, self.status, facts, link)

    def _facts_shown(self) -> Any:
        """The scheduler's figures, if it tells them in a moment; else None."""
        if self.status != "running" or self._thread.is_here:
            return None
        try:
            return self._thread.run(self._async.scheduler_info(n_workers=0), ASK_SECONDS)
        except (OSError, ShoalError):  # a TimeoutError among them; a text must not fail
            return None

    # --- waiting -----------------------------------------------------------------------------

    def finish(self, work: Any, asynchronous: bool | None = None) -> Any:
        """As `hand_over` a coroutine; anything else as it is."""
        return self.hand_over(work, asynchronous) if asyncio.iscoroutine(work) else work

    def hand_over(self, work: Coroutine[Any, Any, T], asynchronous: bool | None = None) -> T:
        """The result of a coroutine; on the client's loop the coroutine itself.

        Args:
            asynchronous: True: something to be awaited, on whatever loop; False: wait.
        """
        here = self._thread.is_here
        if not (here if asynchronous is None else asynchronous):
            return self._thread.run(work)
        return cast(T, work if here else self._thread.run_from_elsewhere(work))

    def sync(
        self,
        func: Callable[..., Any],
        *args: Any,
        asynchronous: bool | None = None,
        callback_timeout: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Run the coroutine function `func` on the client's loop, and wait for its result.

        On that loop it returns a coroutine, as all methods do there.

        Args:
            args, kwargs: for the function.
            asynchronous: True: return something to be awaited; False: wait.
            callback_timeout: seconds until it raises TimeoutError.
        """
        with self._thread.held():  # the work may close its last client
            work = as_coroutine(func(*args, **kwargs))
            if not asyncio.iscoroutine(work):  # of a method of ours, which has waited
                return work
            if callback_timeout is not None:
                work = within(work, seconds_or(callback_timeout, 0.0))
            return self.hand_over(work, asynchronous)

    def future_result(self, future: Future, timeout: Any = None) -> Any:
        """See `Future.result`.  A small result is read right here, without the loop."""
        if self._thread.is_here:
            return self._async.await_future(future, timeout)
        record = future.record
        seconds = seconds_or(timeout, None)
        started_at = time.monotonic()
        self._wait(record, seconds)
        if record.status == FINISHED:
            if record.value is not None:
                return load_near(record, self)
        elif record.status in (ERROR, CANCELLED):
            raise outcome_error(record)
        left = None if seconds is None else seconds - (time.monotonic() - started_at)
        return self._thread.run(self._async.await_future(future, left, told_seconds=seconds))

    def future_exception(self, future: Future, timeout: Any = None) -> Any:
        """See `Future.exception`."""
        if self._thread.is_here:
            return self._async.await_exception(future, timeout)
        record = future.record
        self._wait(record, seconds_or(timeout, None))
        return outcome_error(record) if record.status == CANCELLED else exception_of(record)

    def future_traceback(self, future: Future, timeout: Any = None) -> Any:
        """See `Future.traceback`."""
        if self._thread.is_here:
            return self._async.await_traceback(future, timeout)
        error = self.future_exception(future, timeout)
        return None if error is None else error.__traceback__

    async def await_future(self, future: Future, timeout: Any = None) -> Any:
        """The result of one future, for whoever awaits it on whatever loop."""
        work = self._async.await_future(future, timeout)
        if self._thread.is_here:
            return await work
        return await self._thread.run_from_elsewhere(work)

    async def await_results(self, records: list[Record]) -> dict[Record, Any]:
        """As `await_future`, of many that have ended."""
        work = self._async.await_results(records)
        if self._thread.is_here:
            return await work
        return await self._thread.run_from_elsewhere(work)

    def add_done_callback(self, future: Future, fn: Callable[[Future], object]) -> None:
        """See `Future.add_done_callback`."""
        self._async.add_done_callback(future, fn)

    def _wait(self, record: Record, seconds: float | None) -> None:
        if record.status not in UNRESOLVED:
            return
        latch = Latch()
        if self.session.watch(record, latch):
            try:
                with waiting_for_tasks():
                    ended = latch.wait(seconds)
            except BaseException:
                self.session.unwatch([record], latch)
                raise
            if not ended:
                self.session.unwatch([record], latch)
                raise self._thread.run(late(self.session, record, seconds))


def _runs_here(cluster: Any) -> bool:
    """Whether a cluster's services are on the loop that the caller runs on, so can't answer it."""
    here = getattr(cluster, "called_from_running_loop", False) is True
    return here and not getattr(cluster, "processes", False)


def _local_cluster(security: Any, options: dict[str, Any]) -> Any:
    from importlib import import_module  # clusters are built on clients, not beneath them

    if security is not None:
        options = {**options, "security": security}
    return import_module("shoal.deploy.local").LocalCluster(**options)
