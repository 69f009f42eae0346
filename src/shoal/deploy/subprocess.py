"""A cluster of processes on this machine, as a spec of what each of them is."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Any, Final

from shoal.comms import Publication, new_token, publish_token
from shoal.deploy.errors import SchedulerNotStarted
from shoal.deploy.job import ProcessInterface
from shoal.deploy.options import scheduler_options, where_to_listen
from shoal.deploy.sharing import memory_limit_nbytes, workers_and_threads
from shoal.deploy.sites import listening_socket
from shoal.deploy.spec import SpecCluster, class_of
from shoal.errors import ShoalError, UnsupportedOption
from shoal.nanny.document import document_of, require_plain, worker_environ
from shoal.nanny.process import ServiceProcess
from shoal.nanny.service import Nanny
from shoal.units import to_seconds

NANNY: Final = "distributed.Nanny"
"""What workers are by default; the name stands for ours, whoever has the name `distributed`."""

CLOSE_SECONDS: Final = 5.0
"""What a process may take to close before it is ended by signals."""

_POSIX: Final = "Clusters of subprocesses do not support Windows"


class SubprocessScheduler(ProcessInterface):
    """A scheduler in a process of its own, which ends with us.

    Args:
        scheduler_kwargs: of `Scheduler`.
        timeout: what starting it may take.

    Raises:
        UnsupportedOption: a RuntimeError; not on this system.
    """

    def __init__(
        self, scheduler_kwargs: Mapping[str, Any] | None = None, timeout: float | str = 30
    ) -> None:
        _require_posix()
        self._options = dict(scheduler_kwargs or {})
        self._timeout_seconds = to_seconds(timeout)
        self.token = self._options.pop("token", None) or new_token()
        self.services: dict[str, int] = {}
        self.process: ServiceProcess | None = None
        self._publication: Publication | None = None
        super().__init__()

    async def start(self) -> None:
        """Start it; returns when it serves.

        Raises:
            SchedulerNotStarted: a RuntimeError; with what kept it from that.
        """
        try:
            await self._start(dict(self._options))
        except (ShoalError, OSError, OverflowError) as error:
            await self.close()
            raise SchedulerNotStarted(str(error)) from error
        await super().start()

    async def _start(self, options: dict[str, Any]) -> None:
        host, port = options.setdefault("host", "127.0.0.1"), options.pop("port", 0)
        with listening_socket(host, port) as sock:
            document = document_of(
                "scheduler",
                self.token,
                require_plain("scheduler_kwargs", options),
                log_level=logging.WARNING,
            )
            document["socket"] = sock.fileno()
            self.process = ServiceProcess("the scheduler", document, environ=worker_environ())
            await self.process.start(inherited=(sock.fileno(),))
        words = await self.process.ready(self._timeout_seconds)
        self.address, self.services = words["address"], words["services"]
        self._publication = publish_token(str(self.address), self.token, file=False)

    async def close(self) -> None:
        """End it."""
        if self._publication is not None:
            self._publication.withdraw()
            self._publication = None
        try:
            if self.process is not None:
                await self.process.close(CLOSE_SECONDS)
        finally:
            if self.process is not None and self.process.left_files and self.address:
                publish_token(self.address, self.token).withdraw()  # so its file is ours, and goes
            await super().close()


class SubprocessWorker(ProcessInterface):
    """A worker in a process of its own, which is started again when it dies, and ends with us.

    Args:
        scheduler: its address.
        worker_class: a nanny, or what the worker in its process is; or where that is found.
        worker_kwargs: of `Nanny`.
        token: what proves that it belongs to the cluster; None: looked for.

    Raises:
        UnsupportedOption: a RuntimeError; not on this system.
    """

    def __init__(
        self,
        scheduler: str,
        worker_class: str | type[Any] = NANNY,
        name: Any = None,
        worker_kwargs: Mapping[str, Any] | None = None,
        token: bytes | None = None,
    ) -> None:
        _require_posix()
        super().__init__(scheduler, name)
        kind = _class_of(worker_class)
        options = {"token": token, "name": name, **(worker_kwargs or {})}
        if not issubclass(kind, Nanny):
            options["worker_class"], kind = kind, Nanny
        self._nanny: Nanny = kind(scheduler, **options)

    @property
    def nthreads(self) -> int:
        """Threads of the worker."""
        return self._nanny.nthreads

    @property
    def memory_limit(self) -> int:
        """Of the worker, in bytes; 0: none."""
        return self._nanny.memory_limit

    async def start(self) -> None:
        """Start it; returns when it is registered.  Raises what keeps it from that."""
        await self._nanny
        self.address = self._nanny.worker_address
        await super().start()

    async def close(self) -> None:
        """End it."""
        try:
            await self._nanny.close(CLOSE_SECONDS)
        finally:
            await super().close()


def SubprocessCluster(  # noqa: N802 -- as a class is called, which it is for who calls it
    host: str | None = None,
    scheduler_port: int = 0,
    scheduler_kwargs: Mapping[str, Any] | None = None,
    dashboard_address: str = ":8787",
    worker_class: str = NANNY,
    n_workers: int | None = None,
    threads_per_worker: int | None = None,
    worker_kwargs: Mapping[str, Any] | None = None,
    silence_logs: int = logging.WARNING,
    **kwargs: Any,
) -> SpecCluster:
    """A `SpecCluster` of a scheduler and workers in processes on this machine.

    Args:
        host, scheduler_port, dashboard_address: of the scheduler; loopback, and any free port.
        n_workers, threads_per_worker: None: as the cores suggest.
        worker_class: see `SubprocessWorker`.
        scheduler_kwargs, worker_kwargs: what else they are made with.
        silence_logs: level (of `logging`) below which the logs of workers are silent.
        kwargs: of `SpecCluster`.

    Raises:
        UnsupportedOption: a RuntimeError; not on this system.
    """
    _require_posix()
    nworkers, nthreads = workers_and_threads(n_workers, threads_per_worker, processes=True)
    of_workers = {"nthreads": nthreads, "silence_logs": silence_logs, **(worker_kwargs or {})}
    limit = of_workers.get("memory_limit", "auto")
    of_workers["memory_limit"] = memory_limit_nbytes(limit, nworkers)
    of_scheduler = scheduler_options(dashboard_address, None, scheduler_kwargs or {})
    of_scheduler |= {"host": where_to_listen(host, None, None)[0], "port": scheduler_port}
    worker = {
        "cls": SubprocessWorker,
        "options": {"worker_class": worker_class, "worker_kwargs": of_workers},
    }
    scheduler = {"cls": SubprocessScheduler, "options": {"scheduler_kwargs": of_scheduler}}
    kwargs.setdefault("name", "SubprocessCluster")
    return SpecCluster(dict.fromkeys(range(nworkers), worker), scheduler, worker, **kwargs)


def _class_of(kind: str | type[Any]) -> type[Any]:
    """The class, or what is found under its name."""
    found: type[Any] = Nanny if kind in (NANNY, f"dask.{NANNY}") else class_of(kind)
    return found


def _require_posix() -> None:
    if os.name != "posix":
        raise UnsupportedOption(_POSIX, "Use LocalCluster(processes=False).")
