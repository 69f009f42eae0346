"""Where the services of a cluster on this machine live: in processes, or on one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol, Self

import dask.config

from shoal.comms import ListenError, Publication, new_token, publish_token
from shoal.comms.tcp import listen_at
from shoal.deploy.faces import close_from_anywhere
from shoal.nanny.document import (
    document_of,
    pickled_data,
    pickled_plugins,
    plain_part_of,
    require_plain,
    worker_environ,
)
from shoal.nanny.keeper import WorkerKeeper
from shoal.nanny.process import ServiceProcess
from shoal.nanny.service import Nanny
from shoal.observe.preloading import Preloads, process_preloads
from shoal.observe.status import Status
from shoal.protocol.handshake import WORKER, Keyring

_logger = logging.getLogger("shoal.deploy")

_BACKLOG: Final = 2048
_NEWS_SECONDS: Final = 0.2
"""In which the end of a process is known, once those that were connected to it have noticed."""

_GIVEN_UP_SECONDS: Final = 5.0
"""What closing a worker may take that could not start."""

_TASKS_SECONDS_MAX: Final = 2.0
"""How long tasks that are being executed may take to end as a cluster closes."""


class Site(Protocol):
    """What a cluster needs of the place where its services live."""

    address: str
    """Of the scheduler, once it runs."""
    token: bytes
    scheduler: Any

    async def start_scheduler(self, timeout_seconds: float) -> None:
        """Start the scheduler; returns when it serves."""

    async def start_worker(self, name: str, options: dict[str, Any], timeout_seconds: float) -> Any:
        """Start a worker; returns it when it is registered.  May be called before the scheduler
        serves, and then waits for that."""

    def is_scheduler_leaving(self) -> bool:
        """Whether a client has told the scheduler to close, or it has closed."""

    async def end_worker(self, worker: Any, timeout_seconds: float) -> None:
        """Close a worker; returns when it is gone."""

    async def close(self, timeout_seconds: float) -> None:
        """Close everything; returns when it is gone."""

    def close_now(self, deadline: float) -> None:
        """As `close`, where no loop runs any more; until `deadline`, on the monotonic clock."""


class ClusterNanny(Nanny):
    """A nanny that a cluster on this machine has made, and starts."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """As any keeper of a worker: where the scheduler is, the cluster knows."""
        WorkerKeeper.__init__(self, *arguments, **options)

    async def start(self) -> Self:
        """Start the worker, unless it is there.  Raises what keeps it from that."""
        await self.instantiate()
        self.scheduler_address = self.scheduler_addr
        return self


class ProcessSite:
    """Each service in a process of its own."""

    def __init__(
        self,
        host: str,
        port: int,
        scheduler_options: Mapping[str, Any],
        *,
        log_level: int,
        on_end: Callable[[Any], None],
    ) -> None:
        """`on_end`: called with the scheduler's process, or with the keeper of a worker, if it
        ends without our asking, and for good."""
        self.token = new_token()
        self.address = ""
        self._log_level, self._on_end = log_level, on_end
        self._options = require_plain("scheduler_kwargs", scheduler_options)
        self._host, self._port = host, port
        self._config = plain_part_of(dask.config.config)
        self._environ = worker_environ()
        self._keepers: list[WorkerKeeper] = []
        self._publication: Publication | None = None
        self.scheduler = ServiceProcess("the scheduler", {}, on_end=on_end)
        self._serving: asyncio.Task[None] | None = None

    async def start_scheduler(self, timeout_seconds: float) -> None:
        """See `Site.start_scheduler`."""
        self._serving = asyncio.create_task(self._start_scheduler(timeout_seconds))
        await self._serving

    async def _start_scheduler(self, timeout_seconds: float) -> None:
        with listening_socket(self._host, self._port) as sock:
            document = self._document("scheduler", {"host": self._host, **self._options})
            document["socket"] = sock.fileno()
            self.scheduler = ServiceProcess(
                "the scheduler", document, environ=self._environ, on_end=self._on_end
            )
            self.scheduler.on_sent_away = self._end_what_was_sent_away
            await self.scheduler.start(inherited=(sock.fileno(),))
        words = await self.scheduler.ready(timeout_seconds)
        self.address = words["address"]
        self._publication = publish_token(self.address, self.token, file=False)

    async def start_worker(
        self, name: str, options: dict[str, Any], timeout_seconds: float
    ) -> WorkerKeeper:
        """See `Site.start_worker`.  The worker is started again whenever it dies."""
        plain = require_plain(
            "",
            {
                **options,
                "name": name,
                "plugins": pickled_plugins(options.get("plugins", ())),
                "data": pickled_data(options.get("data")),
            },
        )
        argv = plain.pop("preload_nanny_argv", ())
        beside = plain.pop("preload_nanny", None)

        def make() -> ServiceProcess:
            return ServiceProcess(
                f"worker {name}",
                self._document("worker", plain),
                environ={**self._environ, **keeper.env},
                memory_limit_nbytes=options["memory_limit"],
            )

        keeper = ClusterNanny(
            f"worker {name}",
            plain,
            make,
            self._find_scheduler,
            self._is_scheduler_there,
            start_seconds=timeout_seconds,
            on_end=self._on_end,
            preloads=None if beside is None else Preloads([]),
        )
        keeper.keyring = Keyring.from_token(self.token).only(WORKER)
        if beside is not None:
            keeper.preloads = process_preloads(keeper, beside, argv)
        self._keepers.append(keeper)
        try:
            await keeper
        except Exception:
            self._keepers.remove(keeper)
            await keeper.close(0.0, "it could not start")
            raise
        return keeper

    def _end_what_was_sent_away(self, pids: Sequence[int]) -> None:
        """The scheduler has sent these away; they may hang, and could not be told anything."""
        for keeper in self._keepers:
            if keeper.pid in pids:
                keeper.end_what_was_sent_away()

    async def _find_scheduler(self) -> str:
        """Its address, as soon as it listens; raises what kept it from that."""
        assert self._serving is not None
        await asyncio.shield(self._serving)
        return self.address

    async def _is_scheduler_there(self) -> bool:
        """Whether it lives; if it has just died, we are about to be told."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_NEWS_SECONDS):
                await self.scheduler.finished()
        return self.scheduler.status is Status.running

    def _document(self, role: str, options: dict[str, Any]) -> dict[str, Any]:
        return document_of(
            role, self.token, options, log_level=self._log_level, config=self._config
        )

    def is_scheduler_leaving(self) -> bool:
        """See `Site.is_scheduler_leaving`."""
        return self.scheduler.is_leaving or self.scheduler.status is not Status.running

    async def end_worker(self, worker: WorkerKeeper, timeout_seconds: float) -> None:
        """See `Site.end_worker`."""
        await worker.close(timeout_seconds)
        if worker in self._keepers:
            self._keepers.remove(worker)

    async def close(self, timeout_seconds: float) -> None:
        """See `Site.close`."""
        self._withdraw()
        if self._serving is not None:
            self._serving.cancel()
        try:
            await self.scheduler.prepare(timeout_seconds)  # its plugins may want to ask the workers
        finally:
            self._let_go()
        await asyncio.gather(
            *(keeper.close(timeout_seconds, "the cluster closes") for keeper in self._keepers),
            self.scheduler.close(timeout_seconds),
        )
        self._keepers.clear()
        self._remove_files()

    def close_now(self, deadline: float) -> None:
        """See `Site.close_now`."""
        self._withdraw()
        self._let_go()
        for keeper in self._keepers:
            keeper.close_now(deadline)
        self.scheduler.close_now(deadline)
        self._remove_files()

    def _let_go(self) -> None:
        """Have everything close; the workers first, by a breath: none finds its scheduler gone."""
        for keeper in reversed(self._keepers):
            keeper.let_go()
        self.scheduler.let_go()

    def _withdraw(self) -> None:
        if self._publication is not None:
            self._publication.withdraw()
            self._publication = None

    def _remove_files(self) -> None:
        """What a scheduler leaves on disk that had no time to do it itself."""
        if self.address and self.scheduler.left_files:
            publish_token(self.address, self.token).withdraw()  # so its file is ours, and goes


class LoopSite:
    """Scheduler and workers on one event loop, in this process."""

    def __init__(
        self,
        protocol: str,
        host: str,
        port: int,
        scheduler_options: Mapping[str, Any],
        worker_class: Callable[..., Any] | None = None,
    ) -> None:
        """`protocol`: "inproc", which ignores host and port, or "tcp"."""
        from shoal.scheduler.shell.service import Scheduler
        from shoal.worker.shell.service import Worker

        self.token = new_token()
        self.address = ""
        self._worker_class: Callable[..., Any] = worker_class or Worker
        self._workers: list[Any] = []
        self._host = host
        self._loop: asyncio.AbstractEventLoop | None = None
        self.scheduler = Scheduler(
            protocol=protocol, host=host, port=port, token=self.token, **scheduler_options
        )
        self._serving: asyncio.Task[None] | None = None

    async def start_scheduler(self, timeout_seconds: float) -> None:
        """See `Site.start_scheduler`."""
        self._loop = asyncio.get_running_loop()
        self._serving = asyncio.create_task(self._start_scheduler(timeout_seconds))
        await self._serving

    async def _start_scheduler(self, timeout_seconds: float) -> None:
        async with asyncio.timeout(timeout_seconds):
            await self.scheduler
        self.address = self.scheduler.address

    async def start_worker(self, name: str, options: dict[str, Any], timeout_seconds: float) -> Any:
        """See `Site.start_worker`."""
        assert self._serving is not None
        await asyncio.shield(self._serving)
        of_worker = {name: x for name, x in options.items() if not name.startswith("preload_nanny")}
        worker = self._worker_class(
            self.address, name=name, host=self._host, token=self.token, **of_worker
        )
        self._workers.append(worker)
        try:
            async with asyncio.timeout(timeout_seconds) as patience:
                worker.at_plugins_coming = partial(_be_patient, patience)
                await worker
                worker.at_plugins_coming = None
        except Exception:
            with contextlib.suppress(Exception):  # what kept it from starting says more
                await self.end_worker(worker, min(timeout_seconds, _GIVEN_UP_SECONDS))
            raise
        return worker

    def is_scheduler_leaving(self) -> bool:
        """See `Site.is_scheduler_leaving`."""
        return self.scheduler.status is not Status.running

    async def end_worker(self, worker: Any, timeout_seconds: float) -> None:
        """See `Site.end_worker`."""
        worker.teardown_seconds_max = timeout_seconds / 2
        async with asyncio.timeout(timeout_seconds):
            await worker.close(reason="the cluster scales down")
        if worker in self._workers:
            self._workers.remove(worker)

    async def close(self, timeout_seconds: float) -> None:
        """See `Site.close`."""
        if self._serving is not None:
            self._serving.cancel()
        # A worker whose task goes on leaves its thread behind, but the scheduler must close.
        for_tasks = min(_TASKS_SECONDS_MAX, timeout_seconds / 2)
        for service in (*self._workers, self.scheduler):
            service.teardown_seconds_max = timeout_seconds / 2
        async with contextlib.AsyncExitStack() as last:  # all of it, whatever some of it raises
            last.callback(self._workers.clear)
            if self.address:  # else it never listened
                last.push_async_callback(self._close_scheduler, timeout_seconds)
            last.push_async_callback(self._close_workers, timeout_seconds, for_tasks)
            if self.scheduler.status is Status.running:  # its plugins may want to ask the workers
                await _all_in_time(timeout_seconds, self.scheduler.prepare_to_close())

    async def _close_workers(self, timeout_seconds: float, for_tasks_seconds: float) -> None:
        why = "the cluster closes"
        closing = (worker.close(for_tasks_seconds, why) for worker in self._workers)
        await _all_in_time(timeout_seconds, *closing)

    async def _close_scheduler(self, timeout_seconds: float) -> None:
        await _all_in_time(timeout_seconds, self.scheduler.close(reason="the cluster closes"))

    def close_now(self, deadline: float) -> None:
        """See `Site.close_now`.  Nothing is left to close if the loop has ended."""
        close_from_anywhere(self._loop, self.close, deadline)


def _be_patient(patience: asyncio.Timeout) -> None:
    """Wait however long, unless the waiting is over."""
    if not patience.expired():
        patience.reschedule(None)


async def _all_in_time(seconds: float, *work: Coroutine[Any, Any, object]) -> None:
    """Wait for all of these; what takes longer is given up, and the log says so.

    Raises:
        BaseException: what the first of them raises, once all are over.
    """
    if not work:
        return
    tasks = [asyncio.ensure_future(one) for one in work]
    done, late = await asyncio.wait(tasks, timeout=seconds)
    for task in late:
        task.cancel()
    if late:
        _logger.warning(
            "A cluster closes, and %d of its services in this process did not end within %.3g s: "
            "a plugin or preload holds up the event loop, or waits for what does not come",
            len(late),
            seconds,
        )
    for task in done:
        task.result()


def listening_socket(host: str, port: int) -> socket.socket:
    """A TCP socket that listens on `host`, for another process to adopt.

    Raises:
        ListenError: the port is taken, or the host not ours.
    """
    try:
        return listen_at(host, port, _BACKLOG)
    except OSError as error:
        raise ListenError.failed(f"tcp://{host}:{port}", error.strerror or str(error)) from error
