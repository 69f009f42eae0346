"""A cluster on this machine: the scheduler and each worker in a process, or all on one loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from shoal.deploy import options
from shoal.deploy.adapting import AdaptingBySize
from shoal.deploy.cluster import CLOSE_SECONDS, Cluster
from shoal.deploy.errors import ClusterClosed
from shoal.deploy.faces import CORRECTION
from shoal.deploy.facts import facts_of_processes
from shoal.deploy.sharing import nprocesses_nthreads, workers_and_threads
from shoal.deploy.sites import LoopSite, ProcessSite, Site
from shoal.errors import ShoalError, UnsupportedOption
from shoal.nanny.keeper import WorkerKeeper
from shoal.nanny.process import ServiceProcess
from shoal.nanny.service import Nanny
from shoal.observe.errors import ViewWouldBlock
from shoal.observe.facts import FactsOfScheduler, facts_of_identity
from shoal.observe.remote import RemoteScheduler
from shoal.observe.status import Status
from shoal.protocol import membership, questions
from shoal.units import to_count, to_nbytes

__all__ = ["LocalCluster", "nprocesses_nthreads"]

_logger = logging.getLogger("shoal.deploy")


class LocalCluster(AdaptingBySize, Cluster):
    """A scheduler and workers on this machine; only this machine can reach them.

    Args:
        name: for people; a random one if None.
        n_workers: how many workers; None: as the cores and `threads_per_worker` suggest.
        threads_per_worker: of each worker.
        processes: the scheduler and each worker in a process of its own, so that none holds up
            another; False: all on one loop in this process, which starts at once and shares
            objects instead of copying them.
        memory_limit: of each worker: bytes, "4GB", a fraction of the machine, "auto" (an equal
            share), or 0 for none.
        host: where to listen; loopback if None, everywhere if it is empty.
        interface: a network interface that has the address, instead.
        scheduler_port: 0 takes a free one.
        asynchronous: True: await it, or use `async with`, and await its methods.
        dashboard_address: where the scheduler serves its web page: this port, or the next that is
            free, of `host`; None for no page.
        blocked_handlers: operations that the scheduler refuses, such as "run_function".
        silence_logs: level (of `logging`) below which the services' logs are silent.
        scheduler_kwargs: options of `Scheduler`.
        resources, local_directory, validate: of each worker.

    Raises:
        TypeError, ValueError: an unknown option, or a value that makes no sense.
        ProcessDied, ProcessLate: a process did not start; everything is closed again.

    Cost: about 0.4 s for the first cluster of a program, 0.05 s for others, and 30 MB for each
    process; 5 ms without processes.
    """

    kind: ClassVar[str] = "LocalCluster"
    ends_with_scheduler: ClassVar[bool] = True
    """Nobody starts another if it is lost, so that clients need not look for one."""

    def __init__(
        self,
        name: str | None = None,
        n_workers: int | None = None,
        threads_per_worker: int | None = None,
        processes: bool | None = None,
        loop: Any = None,
        start: Any = None,
        host: str | None = None,
        ip: str | None = None,
        scheduler_port: int = 0,
        silence_logs: int | str | bool = logging.WARNING,
        dashboard_address: str | int | None = ":8787",
        worker_dashboard_address: str | None = None,
        services: Any = None,
        worker_services: Any = None,
        service_kwargs: Any = None,
        asynchronous: bool = False,
        security: Any = None,
        protocol: str | None = None,
        blocked_handlers: Sequence[str] | None = None,
        interface: str | None = None,
        worker_class: Any = None,
        scheduler_kwargs: Mapping[str, Any] | None = None,
        scheduler_sync_interval: float = 1,
        **worker_kwargs: Any,
    ) -> None:
        self.status = Status.created  # before anything can fail
        threads_per_worker = options.threads_asked(threads_per_worker, worker_kwargs)
        if start is not None or ip is not None:
            host = options.host_of_old(start, ip, host)
        host, protocol = options.where_to_listen(host, interface, protocol)
        options.refuse_services(services, worker_services, service_kwargs)
        options.check_worker_options(worker_kwargs)
        options.check_security(security, protocol)
        if processes is not False and worker_class is Nanny:
            worker_class = None  # that is what keeps each worker alive
        of_nannies = isinstance(worker_class, type) and issubclass(worker_class, Nanny)
        processes = options.whether_processes(False if of_nannies else processes, worker_class)
        nworkers, nthreads = workers_and_threads(
            n_workers, threads_per_worker, processes=processes or of_nannies
        )
        super().__init__(asynchronous=asynchronous, name=name)
        self.processes = processes
        self._names: list[Any] = list(range(nworkers))  # whom we want, in the order of their start
        self._next_name = nworkers
        self._worker_options = options.of_workers(worker_kwargs, nworkers, nthreads)
        self._correcting = asyncio.Lock()
        self._start_seconds = options.start_seconds(worker_kwargs.get("death_timeout"))
        self._worker_class = worker_class
        self._site = self._make_site(
            host, scheduler_port, protocol or ("tcp" if of_nannies else None),
            options.scheduler_options(dashboard_address, blocked_handlers, scheduler_kwargs or {}),
            worker_class, options.log_level(silence_logs),
        )  # fmt: skip
        self.token = self._site.token
        self._begin()

    def _make_site(
        self,
        host: str,
        port: int,
        protocol: str | None,
        scheduler_options: dict[str, Any],
        worker_class: Callable[..., Any] | None,
        log_level: int,
    ) -> Site:
        scheme = (protocol or "").removesuffix("://")
        if self.processes:
            if scheme not in ("", "tcp"):
                raise UnsupportedOption(f"protocol={protocol!r} with processes", "Leave it out.")
            ourselves = weakref.ref(self)  # who waits for the processes' end must not keep us

            def on_end(process: Any) -> None:
                cluster = ourselves()
                if cluster is not None:
                    cluster._has_ended(process)

            return ProcessSite(host, port, scheduler_options, log_level=log_level, on_end=on_end)
        if not scheme:
            scheme = "tcp" if port or host != "127.0.0.1" else "inproc"
        return LoopSite(scheme, host, port, scheduler_options, worker_class)

    @property
    def scheduler(self) -> Any:
        """The scheduler itself, if it is in this process, else a read-only view of it."""
        if not self.processes:
            return self._site.scheduler
        return RemoteScheduler.of(lambda: self._site.scheduler, self._ask_and_wait)

    @property
    def _started_scheduler(self) -> Any:
        return self._site.scheduler

    def _ask_and_wait(self, make: Callable[[int], Any]) -> Any:
        """Ask the scheduler, for a view that can't be awaited."""
        if self.asynchronous:
            raise ViewWouldBlock(self.name)
        return self.sync(self._ask, make)

    # --- life --------------------------------------------------------------------------------

    async def _start(self) -> None:
        """Scheduler and workers at the same time; the first failure ends it all."""
        seconds = self._start_seconds
        starting = [asyncio.ensure_future(self._site.start_scheduler(seconds))]
        await asyncio.sleep(0)  # it goes first, by a breath
        starting += [asyncio.ensure_future(self._add_worker(name)) for name in self._names]
        try:
            await asyncio.wait(starting, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            failures = [
                task.exception() for task in starting if task.done() and not task.cancelled()
            ]
            for task in starting:
                task.cancel()
            await asyncio.gather(*starting, return_exceptions=True)
        for failure in failures:  # the scheduler's before those that come from it
            if failure is not None:
                raise failure

    async def _add_worker(self, name: Any) -> None:
        worker = await self._site.start_worker(
            str(name), dict(self._worker_options), self._start_seconds
        )
        self.workers[name] = worker

    async def _end_worker(self, name: Any) -> None:
        worker = self.workers.pop(name, None)
        if worker is None:
            return  # it has ended by itself meanwhile
        try:
            if self.status == Status.running:
                await self._ask(lambda n: membership.CloseWorkers(n, [worker.address]))
        finally:
            await self._site.end_worker(worker, CLOSE_SECONDS)

    async def _close(self, timeout_seconds: float) -> None:
        await self._site.close(timeout_seconds)
        self.workers.clear()

    def _close_now(self, deadline: float) -> None:
        self._site.close_now(deadline)

    def _has_ended(self, process: Any) -> None:
        """The scheduler's process, or a worker for good; nobody here has asked for that."""
        if process is self._site.scheduler:
            self._scheduler_ended(process)
        else:
            self._worker_ended(process)

    def _scheduler_ended(self, process: ServiceProcess) -> None:
        """Without it there is no cluster: nothing is started any more."""
        if self.status is not Status.running:
            return
        death = process.death
        how = death.describe() if death is not None and not death.is_clean else "it was shut down"
        self.failure = ClusterClosed(self.name, Status.failed, f"its scheduler has ended ({how})")
        self.status = Status.failed
        for worker in self.workers.values():
            worker.close_gracefully("its scheduler has ended")
        self.prospects.end(0, self.failure)
        log = _logger.info if process.farewell is not None else _logger.error
        log("The scheduler of the cluster %s has ended (%s); so have its workers", self.name, how)

    def _worker_ended(self, worker: WorkerKeeper) -> None:
        """It left because the scheduler told it so, or died too often."""
        if worker.failure is not None:
            self._lose_hope(worker.failure)
            return
        for name in [name for name, one in self.workers.items() if one is worker]:
            del self.workers[name]
            if name in self._names:  # else we were about to let it go
                self._names.remove(name)

    def _lose_hope(self, failure: Exception) -> None:
        """No more workers come than there are, until somebody scales the cluster."""
        self.failure = failure
        self._in_background(self._tell_prospects(failure))

    async def _tell_prospects(self, failure: Exception) -> None:
        """Tell whoever waits how many workers there are: somebody else may have started some."""
        ours = {str(name) for name in (*self._names, *self.workers)}
        nothers = 0
        with contextlib.suppress(ShoalError, OSError):  # the scheduler ends as well: told elsewhere
            found: questions.Identity = await self._ask(questions.SchedulerIdentity)
            nothers = sum(worker.name not in ours for worker in found.workers)
        if self.failure is not failure or self.status is not Status.running:
            return  # it was scaled or closed meanwhile, or another was lost
        nworkers = self._nlive + nothers
        if nworkers:
            self.prospects.end(nworkers, failure)
            return
        _logger.error(
            "No worker of the cluster %s is left: what its clients wait for fails, and so does "
            "what they wait for from now on, until cluster.scale(n) starts new ones",
            self.name,
        )
        self.prospects.end_all(failure)

    # --- size --------------------------------------------------------------------------------

    def scale(
        self, n: int | None = None, memory: float | str | None = None, cores: int | None = None
    ) -> Any:
        """Have `n` workers, or as many as give that much memory or that many cores.

        Returns at once; `wait_for_workers` waits for new ones.  Of workers that are too many, those
        that were added last go; what only they hold is copied to those that stay, and what they run
        is run elsewhere if it takes more than a second.  Those that have died too often to be
        restarted are started anew.

        Args:
            n: how many workers.
            memory: of all workers together, in bytes or as "100GB".
            cores: threads of all workers together.

        Returns:
            None, or something to await if the cluster is asynchronous.

        Raises:
            TypeError, ValueError: `n` is no count; or memory is asked for without a memory_limit.
        """
        wanted = [0 if n is None else to_count("n", n)]
        if memory is not None:
            limit = self._worker_options["memory_limit"]
            if not limit:
                raise ValueError(
                    "Workers have no memory_limit, so memory= can't size the cluster. Scale by n= "
                    "or cores=, or make the cluster with memory_limit=."
                )
            wanted.append(math.ceil(to_nbytes(memory) / limit))
        if cores is not None:
            wanted.append(math.ceil(cores / self._worker_options["nthreads"]))
        names = self._names[: max(wanted)]
        while len(names) < max(wanted):
            names.append(self._next_name)
            self._next_name += 1
        return self._want(names)

    scale_up = scale

    def scale_down(self, workers: Iterable[Any]) -> Any:
        """Let these workers go, by name or address; as `scale` otherwise."""
        going = {str(worker) for worker in workers}
        names = [
            name
            for name in self._names
            if str(name) not in going
            and getattr(self.workers.get(name), "address", None) not in going
        ]
        return self._want(names)

    def _size_of_new(self, option: str) -> float:
        return float(self._worker_options[option])

    def _want(self, names: list[Any]) -> Any:
        self._require_running()
        if self._site.is_scheduler_leaving():  # and its end is not known yet
            why = "its scheduler has ended (it was shut down)"
            raise ClusterClosed(self.name, Status.failed, why)
        self._names = names
        self.failure = None
        self.prospects.renew()
        if self.asynchronous:
            return self._in_background(self._correct(), CORRECTION)
        thread = self._thread
        if thread is None:
            raise ClusterClosed(self.name, self.status)
        thread.call(lambda: self._in_background(self._correct(), CORRECTION))
        return None

    async def _correct(self) -> None:
        """Bring the workers in line with whom we want; a later call waits for an earlier one."""
        self.prospects.renew()  # what was about to be told as they were asked for is no longer so
        async with self._correcting:
            if self._is_ending:
                return
            ended = [
                n for n, w in self.workers.items() if w.status in (Status.closed, Status.failed)
            ]
            for name in ended:  # by themselves; those that are wanted are started anew
                await self._site.end_worker(self.workers.pop(name), CLOSE_SECONDS)
            wanted = list(self._names)
            going = [name for name in self.workers if name not in wanted]
            coming = [name for name in wanted if name not in self.workers]
            if going and self.status is Status.running:
                leaving = [self.workers[name] for name in going]
                for worker in leaving:
                    if isinstance(worker, WorkerKeeper):
                        worker.close_gracefully("it is retired")
                await self._retire([worker.address for worker in leaving])
            outcomes = await asyncio.gather(  # to the end, or the next call finds some half done
                *map(self._end_worker, going),
                *map(self._add_worker, coming),
                return_exceptions=True,
            )
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                self._lose_hope(outcome)
            if outcome is not None:
                raise outcome

    def new_worker_spec(self) -> dict[Any, dict[str, Any]]:
        """Name of the next worker, and what it is made of."""
        return {self._next_name: self._spec()}

    def _spec(self) -> dict[str, Any]:
        kind: Any = Nanny if self.processes else self._worker_class
        if kind is None:
            from shoal.worker.shell.service import Worker  # which processes import by themselves

            kind = Worker
        return {"cls": kind, "options": dict(self._worker_options)}

    # --- looks -------------------------------------------------------------------------------

    @property
    def worker_spec(self) -> dict[Any, dict[str, Any]]:
        """Names of the workers that we want, and what each is made of."""
        return {name: self._spec() for name in self._names}

    @property
    def scheduler_info(self) -> FactsOfScheduler:
        """What the scheduler and its workers are, as plain values.

        A blocking cluster asks the scheduler; an asynchronous one says what it knows of the
        services it has started.
        """
        if self.processes and self.asynchronous:
            return facts_of_processes(self._site.scheduler, self.workers.values())
        if not self.processes:
            return facts_of_identity(self.scheduler.describe())
        self._require_running()
        return facts_of_identity(self.sync(self._ask, questions.SchedulerIdentity))

    @property
    def plan(self) -> set[Any]:
        """Names of the workers that we want."""
        return set(self._names)

    @property
    def requested(self) -> set[Any]:
        """Names of the workers that have been started."""
        return set(self.workers)

    @property
    def observed(self) -> set[Any]:
        """Names of the workers that are connected."""
        running = (Status.running, Status.paused)
        return {name for name, worker in self.workers.items() if worker.status.value in running}
