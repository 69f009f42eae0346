"""What every cluster has in common: its life, its two faces, and questions to its scheduler."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import time
import uuid
import warnings
import weakref
from collections.abc import Callable, Generator
from html import escape
from types import TracebackType
from typing import Any, ClassVar, Final, Self

from dask.utils import format_bytes

from shoal import config
from shoal.client import current
from shoal.client.absent import Absent
from shoal.client.blocking import LoopThread
from shoal.client.errors import WorkersLate
from shoal.client.prospects import Prospects, unless_hopeless
from shoal.client.session import Session
from shoal.comms import require_token
from shoal.config.telling import tell_of_unheeded
from shoal.deploy.adapting import Adapting
from shoal.deploy.errors import CannotScale, ClusterClosed, WrongWith
from shoal.deploy.faces import CORRECTION, TwoFaces
from shoal.deploy.offering import offer_to_scale
from shoal.errors import ShoalError
from shoal.observe.errors import ViewWouldBlock
from shoal.observe.facts import FactsOfScheduler, facts_of_identity
from shoal.observe.links import dashboard_link
from shoal.observe.logs import Logs, RecentLogs, text_of
from shoal.observe.status import Status
from shoal.protocol import logs, membership, questions
from shoal.protocol.handshake import CLIENT, Keyring
from shoal.units import to_seconds

CLOSE_SECONDS: Final = 5.0
"""What closing may take before processes are ended by signals, if nothing else is said."""

EXIT_SECONDS: Final = 3.0
"""The same for clusters that are still open when the interpreter exits."""

RETIRE_PATIENCE_SECONDS: Final = 30.0
"""How long a worker that is to go is kept if what it holds is not taken from it: long enough for
three others to be asked, one after the other, that don't answer."""

LOGGERS: Final = ("shoal.deploy", "shoal.nanny", "distributed.nanny")
"""Where this process says how the services of a cluster fare."""

_REMEDIES: Final = {
    "logs": "cluster.get_logs() has what services have logged.",
    "start_worker": "Change the number of workers by cluster.scale(n).",
}
"""Methods of the released `distributed` that clusters lack, and what to do instead."""

_open_clusters: Final[weakref.WeakSet[Cluster]] = weakref.WeakSet()


class Cluster(Adapting, TwoFaces, Absent):
    """A scheduler and workers that live and end together.

    A blocking cluster is ready when its constructor returns; one with `asynchronous=True` when it
    was awaited or entered.  Subclasses give `_start`, `_close`, `_close_now`, `scale`, and the
    attributes `scheduler`, `workers`, `token`, as far as they have any; `_begin` is the last that
    the constructor of one calls.  One whose scheduler runs elsewhere sets `scheduler_comm`, which
    has its `address`.

    Args:
        quiet: it says nothing of its progress.
        loop, scheduler_sync_interval: taken, and not needed.
    """

    kind: ClassVar[str] = "Cluster"

    _owner_of_absent = "Cluster"
    _absent = frozenset(_REMEDIES)
    _supports_scaling = True
    _remedies = _REMEDIES

    scheduler: Any = None
    scheduler_comm: Any = None
    token: bytes = b""

    def __init__(
        self,
        asynchronous: bool = False,
        loop: Any = None,
        quiet: bool = False,
        name: str | None = None,
        scheduler_sync_interval: float = 1,
    ) -> None:
        super().__init__()
        self.status = Status.created
        self.quiet = quiet
        self.workers: dict[Any, Any] = {}
        self.name = str(name) if name is not None else uuid.uuid4().hex[:8]
        self._asynchronous = asynchronous
        self._pid = os.getpid()
        self.failure: Exception | None = None
        """Why it has fewer workers than it should, or none; None: it has them."""
        self.prospects = Prospects()
        """Who waits for workers is told here if they can't come."""
        self._session: Session | None = None
        self._asking = asyncio.Lock()
        self._recent_logs: RecentLogs | None = None
        self._starting: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    # --- what a subclass gives ---------------------------------------------------------------

    async def _start(self) -> None:
        """Start everything; on the loop.  What it raises closes the cluster."""

    async def _close(self, timeout_seconds: float) -> None:
        """End everything; on the loop."""

    def _close_now(self, deadline: float) -> None:
        """End everything, where no loop runs any more; until `deadline`, monotonic."""

    # --- beginning ---------------------------------------------------------------------------

    def _begin(self) -> None:
        """Start a blocking cluster, and wait for that; the last thing its constructor does."""
        _open_clusters.add(self)
        if self._asynchronous:
            return
        self._thread = LoopThread.acquire()
        try:
            self._thread.run(self._started())
        except BaseException:  # Ctrl-C, too: what has started by now is ended first
            self.close()
            raise

    async def _started(self) -> Self:
        if self._starting is None:
            self._loop = asyncio.get_running_loop()
            self._starting = asyncio.create_task(self._start_or_close())
        try:
            await asyncio.shield(self._starting)
        except asyncio.CancelledError:
            self._starting.cancel()
            await asyncio.wait((self._starting,))
            raise
        return self

    async def _start_or_close(self) -> None:
        self.status = Status.starting
        self._recent_logs = RecentLogs(config.read(config.Histories).log_records_max, *LOGGERS)
        try:
            tell_of_unheeded()
            await self._start()
            offer_to_scale(self, self._started_scheduler)
        except BaseException:
            self.status = Status.closing
            await self._close_and_forget(CLOSE_SECONDS)
            raise
        self.status = Status.running

    def __await__(self) -> Generator[Any, None, Self]:
        return self._started_and_scaled().__await__()

    async def _started_and_scaled(self) -> Self:
        """Started, and of the size that was asked for last.  Raises what keeps it from that."""
        await self._started()
        if self.status is Status.running:
            await self._scaled()
        return self

    async def _scaled(self) -> None:
        """Wait for what `scale` has begun."""
        corrections = [task for task in self._background if task.get_name() == CORRECTION]
        if not corrections:
            return
        await asyncio.wait(corrections)
        for task in corrections:
            error = None if task.cancelled() else task.exception()  # as the cluster closes
            if error is not None:
                raise error

    # --- end ---------------------------------------------------------------------------------

    def close(self, timeout: float | str | None = None) -> Any:
        """End the workers and the scheduler; a second call does nothing.

        Args:
            timeout: seconds after which processes are ended by signals; 5 if None.

        Returns:
            None, or something to await if the cluster is asynchronous or the caller on its loop.
        """
        seconds = CLOSE_SECONDS if timeout is None else to_seconds(timeout)
        if self.asynchronous:
            return self._in_background(self._closed(seconds))
        thread, self._thread = self._thread, None  # ours alone: the exit handler may close as well
        if thread is None:
            return None
        try:
            if thread.is_alive:
                thread.run(self._closed(seconds))
            else:  # as in a child of a fork
                self._end_now(seconds)
        finally:
            thread.release()
        return None

    async def _closed(self, timeout_seconds: float) -> None:
        if self._closing is None:
            self._closing = asyncio.create_task(self._close_all(timeout_seconds))
        await asyncio.shield(self._closing)

    async def _close_all(self, timeout_seconds: float) -> None:
        _open_clusters.discard(self)
        if self._starting is not None and not self._starting.done():
            self._starting.cancel()
            await asyncio.wait((self._starting,))
        if self.status in (Status.created, Status.closed):
            self.status = Status.closed
            return
        self.status = Status.closing
        self._stop_adapting("the cluster closes")
        for task in self._background - {asyncio.current_task()}:
            if task.get_name() == CORRECTION:
                task.cancel()
        session, self._session = self._session, None
        try:
            if session is not None:
                await session.close()
        finally:
            await self._close_and_forget(timeout_seconds)

    async def _close_and_forget(self, timeout_seconds: float) -> None:
        """End everything; whatever that raises, it is not tried again."""
        try:
            await self._close(timeout_seconds)
        finally:
            _open_clusters.discard(self)
            if self._recent_logs is not None:
                self._recent_logs.close()
            self.status = Status.closed

    def _end_now(self, timeout_seconds: float) -> None:
        """End without a loop: it is gone, or belongs to a thread that no longer runs."""
        _open_clusters.discard(self)
        if self.status is not Status.closed:
            self.status = Status.closed
            self._stop_adapting("the cluster closes")
            if self._recent_logs is not None:
                self._recent_logs.close()
            if self._pid == os.getpid():  # else it is the parent's, whose loop is not in a fork
                self._close_now(time.monotonic() + timeout_seconds)
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.release()

    def __enter__(self) -> Self:
        if self._asynchronous:
            raise WrongWith(self.kind, asynchronous=True)
        self._require_running()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        if not self._asynchronous:
            raise WrongWith(self.kind, asynchronous=False)
        return await self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._closed(CLOSE_SECONDS)

    def __del__(self) -> None:
        if getattr(self, "status", "") in ("starting", "running", "failed"):  # globals may be gone
            warnings.warn(f"unclosed cluster {self!r}", ResourceWarning, source=self, stacklevel=1)
            self._end_now(EXIT_SECONDS)

    def _require_running(self) -> None:
        if self.status != Status.running:
            if self.status is Status.failed and isinstance(self.failure, ClusterClosed):
                raise self.failure
            raise ClusterClosed(self.name, self.status)

    @property
    def _is_ending(self) -> bool:
        """Whether it closes, or has: no worker is started any more."""
        return self.status in (Status.closing, Status.closed)

    # --- questions ---------------------------------------------------------------------------

    @property
    def _address(self) -> str:
        """Where the scheduler is; empty if there is none yet."""
        found = getattr(self.scheduler, "address", "") or getattr(
            self.scheduler_comm, "address", ""
        )
        return str(found or "")

    @property
    def scheduler_address(self) -> str:
        """Where clients and workers find the scheduler."""
        return self._address or "<Not Connected>"

    @property
    def scheduler_info(self) -> FactsOfScheduler:
        """What the scheduler and its workers are, as plain values; asked at each look.

        Raises:
            ViewWouldBlock: the cluster is asynchronous; a client's method can be awaited.
        """
        if not self._address:
            return FactsOfScheduler.of("", "", 0.0, {}, ())
        if self.asynchronous:
            raise ViewWouldBlock(self.name)
        return facts_of_identity(self.sync(self._ask, questions.SchedulerIdentity))

    @property
    def observed(self) -> set[Any]:
        """Names of the workers that are connected."""
        return {worker["name"] for worker in self.scheduler_info["workers"].values()}

    @property
    def plan(self) -> set[Any]:
        """Names of the workers that are wanted; where nobody scales, those that are there."""
        return self.observed

    @property
    def requested(self) -> set[Any]:
        """Names of the workers that have been asked for; where nobody scales, those there are."""
        return self.observed

    def scale(self, n: int) -> Any:
        """Have `n` workers.

        Raises:
            CannotScale: a NotImplementedError; this kind of cluster can't.
        """
        raise CannotScale(type(self).__name__)

    @property
    def dashboard_link(self) -> str:
        """The address of the web page; empty if there is none."""
        services = getattr(self.scheduler, "services", {})
        return dashboard_link(self._address, services)

    async def _ask(self, make: Callable[[int], Any], timeout_seconds: float | None = None) -> Any:
        """Ask the scheduler; the connection for it is made at the first question, and kept."""
        self._require_running()
        async with self._asking:
            session = self._session
            if session is None or session.status != "running":
                session = Session(f"Cluster-{self.name}")
                await session.open(
                    self.scheduler_address,
                    Keyring.from_token(self.token or require_token(self._address, CLIENT)),
                    timeout_seconds=config.read(config.Comm).connect_seconds,
                    heartbeat_seconds=config.read(config.Client).heartbeat_seconds,
                    versions={},  # nobody compares them with ours
                )
                self._session = session
        return await session.call(make, timeout_seconds=timeout_seconds)

    async def _retire(self, addresses: list[str]) -> None:
        """Have workers give what only they hold to those that stay, as far as these can take it."""
        with contextlib.suppress(ShoalError, OSError):  # they go anyway
            await self._ask(
                lambda n: membership.RetireWorkers(
                    n, addresses, patience_seconds=RETIRE_PATIENCE_SECONDS
                )
            )

    def wait_for_workers(self, n_workers: int, timeout: float | str | None = None) -> Any:
        """Wait until `n_workers` are connected, whoever has started them.

        Raises:
            ValueError: `n_workers` is not a positive number.
            WorkersLate: a TimeoutError; they were not there after `timeout`.
            CrashLoop, ProcessDied: they can't come, as those that were started died.
        """
        if type(n_workers) is not int or n_workers < 1:
            raise ValueError(f"`n_workers` must be a positive integer. Instead got {n_workers!r}.")
        seconds = None if timeout is None else to_seconds(timeout)
        return self.sync(self._wait_for_workers, n_workers, seconds)

    async def _wait_for_workers(self, nworkers: int, timeout_seconds: float | None) -> None:
        try:
            await unless_hopeless(
                self._ask(lambda n: membership.AwaitWorkers(n, nworkers), timeout_seconds),
                self.prospects,
                nworkers,
            )
        except TimeoutError as error:
            found: questions.Identity = await self._ask(questions.SchedulerIdentity)
            nhere = len(found.workers)
            raise WorkersLate(nworkers, nhere, timeout_seconds or 0.0) from error

    def get_logs(
        self, cluster: bool = True, scheduler: bool = True, workers: bool | list[str] = True
    ) -> Any:
        """What has been logged, by service: a text of lines, the newest first.

        Services show on stderr what is WARNING or above, or as `silence_logs` says; those in
        processes of their own remember INFO as well.

        Args:
            cluster: as "Cluster", what this process has logged about them.
            scheduler: as "Scheduler".
            workers: by their addresses; a list: these only.
        """
        return self.sync(self._get_logs, cluster, scheduler, workers)

    async def _get_logs(self, cluster: bool, scheduler: bool, workers: bool | list[str]) -> Logs:
        found = Logs()
        if cluster:
            found["Cluster"] = text_of(self._recent_logs.latest() if self._recent_logs else ())
        if scheduler:
            lines: list[logs.LogLine] = await self._ask(logs.SchedulerLogs)
            found["Scheduler"] = text_of(lines)
        if workers:
            names = None if workers is True else list(workers)
            by_worker: dict[str, list[logs.LogLine]] = await self._ask(
                lambda request: logs.WorkerLogs(request, None, names)
            )
            found.update({worker: text_of(lines) for worker, lines in by_worker.items()})
        return found

    def get_client(self) -> Any:
        """The current client if it is one of this cluster, else a new one."""
        from shoal.client.client import Client

        found = current.find_client()
        if found is not None and found.cluster is self:
            return found
        return Client(self, asynchronous=self.asynchronous)

    # --- looks -------------------------------------------------------------------------------

    @property
    def _nlive(self) -> int:
        """How many workers have not ended."""
        return len(self._there)

    @property
    def _state(self) -> str:
        """Its status, and what is wrong with it if anything is, in a line."""
        if self.failure is None:
            return str(self.status)
        first_line = str(self.failure).partition("\n")[0]
        return f"{self.status}: {first_line}"

    @property
    def _there(self) -> list[Any]:
        """What is shown of its workers: what has `nthreads` and `memory_limit`."""
        ended = (Status.closed, Status.failed)
        return [worker for worker in list(self.workers.values()) if worker.status not in ended]

    @property
    def _size(self) -> str:
        """How many workers it has, their threads and memory; no memory if one has no limit."""
        there = self._there
        nthreads = sum(getattr(worker, "nthreads", 0) for worker in there)
        limits = [getattr(worker, "memory_limit", 0) for worker in there]
        memory = f", memory={format_bytes(sum(limits))}" if all(limits) else ""
        return f"workers={len(there)}, threads={nthreads}{memory}"

    def __repr__(self) -> str:
        wrong = "" if self._state == Status.running else f", {self._state}"
        return (
            f"{type(self).__name__}({self.name}, {self.scheduler_address!r}, {self._size}{wrong})"
        )

    def _repr_html_(self) -> str:
        return (
            f"<div><strong>{escape(type(self).__name__)}</strong> {escape(self.name)}<br>"
            f"Scheduler: <code>{escape(self.scheduler_address)}</code><br>"
            f"Workers: {len(self._there)}, {escape(self._state)}{self._scaling_html}</div>"
        )


@atexit.register
def close_open_clusters() -> None:
    """Close what the program has left open, quietly; all at once, and within some seconds."""
    for cluster in list(_open_clusters):
        cluster._end_now(EXIT_SECONDS)
