"""Clusters for tests: on the test's own loop, or in processes."""

from __future__ import annotations

import asyncio
import functools
import inspect
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import dask.config

from shoal.client.client import AsyncClient
from shoal.deploy.local import LocalCluster
from shoal.errors import UnsupportedOption
from shoal.protocol.payload import load
from shoal.scheduler.machine.invariants import check
from shoal.scheduler.shell.service import Scheduler
from shoal.testing.leaks import clean
from shoal.worker.shell.service import Worker

TIMEOUT_SECONDS: Final = 30
START_SECONDS: Final = 7
END_SECONDS: Final = 10
"""Within which workers have to close, and then the scheduler."""
CONNECT_TIMEOUT: Final = "distributed.comm.timeouts.connect"
"""The setting; tests of clusters on one loop wait less for each other than programs do."""
CONFIG: Final[Mapping[str, Any]] = {
    "distributed.admin.tick.interval": "500 ms",
    "distributed.scheduler.validate": True,
    "distributed.worker.validate": True,
}
"""What is else so in tests of clusters: every step is checked."""
DEFAULT_WORKERS: Final = (("127.0.0.1", 1), ("127.0.0.1", 2))

_IGNORED_OPTIONS: Final = frozenset(
    (
        "dashboard",
        "dashboard_address",
        "heartbeat_interval",
        "death_timeout",
        "transition_counter_max",
    )
)
"""Options that tests give to upstream's services and that change nothing here."""


@contextmanager
def config_for_cluster_tests(**extra_config: Any) -> Iterator[None]:
    """The configuration that tests of clusters run with."""
    with (
        tempfile.TemporaryDirectory() as directory,
        dask.config.set({"temporary-directory": directory, **CONFIG, **extra_config}),
    ):
        yield


async def start_cluster(
    nthreads: Sequence[Sequence[Any]],
    scheduler_addr: str,
    security: Any = None,
    Worker: Callable[..., Any] = Worker,  # noqa: N803 -- known by this name
    scheduler_kwargs: Mapping[str, Any] | None = None,
    worker_kwargs: Mapping[str, Any] | None = None,
    timeout: float = START_SECONDS,
) -> tuple[Scheduler, list[Any]]:
    """A scheduler and workers on the running loop.

    Args:
        nthreads: for each worker: host, threads and, perhaps, its options.
        scheduler_addr: host, or "inproc://" for connections within the process.
        Worker: what to make workers with.
    """
    if security:
        raise UnsupportedOption("security=", "Services ask for a token in any case.")
    protocol = "inproc" if scheduler_addr.startswith("inproc") else "tcp"
    host = scheduler_addr.partition("://")[2] or scheduler_addr
    scheduler = Scheduler(
        **{
            "host": host,
            "protocol": protocol,
            "validate": True,
            **_without_ignored(scheduler_kwargs or {}),
        }
    )
    workers: list[Any] = []
    try:
        async with asyncio.timeout(timeout):
            await scheduler
            for name, (worker_host, count, *options) in enumerate(nthreads):
                validate = dask.config.get("distributed.worker.validate", True)
                own = {"name": name, "host": worker_host, "validate": validate}
                own.update(worker_kwargs or {})
                own.update(*options)
                workers.append(
                    Worker(
                        scheduler.address,
                        nthreads=count,
                        token=scheduler.token,
                        **_without_ignored(own),
                    )
                )
            await asyncio.gather(*(_awaited(worker) for worker in workers))
    except BaseException:
        await end_cluster(scheduler, workers)
        raise
    return scheduler, workers


async def _awaited(service: Any) -> None:
    """Start a worker, or a nanny, as upstream's are started."""
    await service


def _without_ignored(options: Mapping[str, Any]) -> dict[str, Any]:
    """Without what is of no effect here; no extensions are what there is anyway."""
    return {
        name: value
        for name, value in options.items()
        if name not in _IGNORED_OPTIONS and (name, value) != ("extensions", {})
    }


async def end_cluster(s: Scheduler, workers: Sequence[Any]) -> None:
    """Close the workers, then the scheduler, whatever becomes of those.

    Raises:
        TimeoutError: one of them takes longer than END_SECONDS.
        BaseException: what the first that failed raises.
    """
    closing = [_closed(worker) for worker in workers]
    outcomes = await asyncio.gather(*closing, return_exceptions=True)
    await _closed(s)
    for outcome in outcomes:
        if outcome is not None:
            raise outcome


async def _closed(service: Any) -> None:
    async with asyncio.timeout(END_SECONDS):
        await service.close()


def _raise_what_failed_hard(s: Scheduler) -> None:
    """Raise what a worker closed for, if one has: see `fail_hard`."""
    for _, event in s.get_events("worker-fail-hard"):
        error: Any = load(event["exception"])
        raise error


def validate_state(*servers: Any) -> None:
    """Check every invariant of schedulers; workers have checked their own after every step."""
    for server in servers:
        if isinstance(server, Scheduler):
            broken = list(check(server.machine.state))
            assert not broken, broken


def gen_test(
    timeout: float = TIMEOUT_SECONDS,
    config: Mapping[str, Any] | None = None,
    clean_kwargs: Mapping[str, Any] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Turns a coroutine function into a test, which must end within `timeout` seconds."""
    if callable(timeout):
        raise TypeError("write @gen_test(), with parentheses")

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def test(*args: Any, **kwargs: Any) -> None:
            _require_coroutine_function(function)  # here, or none of the module's tests would run
            with clean(**(clean_kwargs or {})), config_for_cluster_tests(**(config or {})):
                asyncio.run(_bounded(function(*args, **kwargs), timeout))

        return test

    return decorate


def gen_cluster(
    nthreads: Sequence[Sequence[Any]] | None = None,
    scheduler: str = "127.0.0.1",
    timeout: float = TIMEOUT_SECONDS,
    security: Any = None,
    Worker: Callable[..., Any] = Worker,  # noqa: N803 -- known by this name
    client: bool = False,
    scheduler_kwargs: Mapping[str, Any] | None = None,
    worker_kwargs: Mapping[str, Any] | None = None,
    client_kwargs: Mapping[str, Any] | None = None,
    active_rpc_timeout: float = 1,
    config: Mapping[str, Any] | None = None,
    clean_kwargs: Mapping[str, Any] | None = None,
    allow_unclosed: bool = True,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Turns `async def test([client,] scheduler, *workers)` into a test with a cluster of its own.

    Scheduler, workers and client share the test's loop; every step is checked for its invariants.
    Arguments that follow are fixtures or parameters.

    Args:
        nthreads: as for `start_cluster`; two workers of 1 and 2 threads if None.
        timeout: seconds for the test.
        client: True: the test's first argument is an asynchronous client.
    """
    rows = DEFAULT_WORKERS if nthreads is None else nthreads

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        _require_coroutine_function(function)

        async def play(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            s, workers = await start_cluster(
                rows, scheduler, security, Worker, scheduler_kwargs, worker_kwargs, timeout
            )
            try:
                first: tuple[Any, ...] = (s, *workers)
                if not client:
                    result = await _bounded(function(*first, *args, **kwargs), timeout)
                else:
                    async with AsyncClient(s.address, **(client_kwargs or {})) as c:
                        result = await _bounded(function(c, *first, *args, **kwargs), timeout)
                validate_state(s)
                _raise_what_failed_hard(s)
                return result
            finally:
                await end_cluster(s, workers)

        @functools.wraps(function)
        def test(*args: Any, **kwargs: Any) -> Any:
            settings = {CONNECT_TIMEOUT: "5s", **(config or {})}
            with clean(**(clean_kwargs or {})), config_for_cluster_tests(**settings):
                return asyncio.run(play(args, kwargs))

        return _without_first(test, function, int(client) + 1 + len(rows))

    return decorate


def _without_first(
    test: Callable[..., Any], function: Callable[..., Any], n: int
) -> Callable[..., Any]:
    """Show pytest what is left of the function's arguments once the first `n` are given."""
    parameters = inspect.signature(function).parameters.values()
    named = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
    placed = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    left = placed[n:] + named
    vars(test)["__signature__"] = inspect.Signature(left)  # counts before that of what it wraps
    return test


def _require_coroutine_function(function: Callable[..., Any]) -> None:
    if not inspect.iscoroutinefunction(function):
        raise RuntimeError(f"{function.__name__} is no coroutine function: write `async def`")


async def _bounded(work: Any, timeout_seconds: float) -> Any:
    async with asyncio.timeout(timeout_seconds):
        return await work


@contextmanager
def cluster(
    nworkers: int = 2,
    nanny: bool = False,
    worker_kwargs: Mapping[str, Any] | None = None,
    active_rpc_timeout: float = 10,
    scheduler_kwargs: Mapping[str, Any] | None = None,
    config: Mapping[str, Any] | None = None,
) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """A cluster of processes: `{"address": ...}` of the scheduler, and for each worker
    `{"address": ..., "proc": ...}`, whose `proc()` is what keeps its process.

    Args:
        nanny: True or not, a worker that dies is started again.
    """
    options = {"nthreads": 1, **_without_ignored(worker_kwargs or {})}
    with (
        config_for_cluster_tests(**(config or {})),
        LocalCluster(
            n_workers=nworkers,
            threads_per_worker=options.pop("nthreads"),
            processes=True,
            scheduler_kwargs=_without_ignored(scheduler_kwargs or {}),
            **options,
        ) as running,
    ):
        yield (
            {"address": running.scheduler_address},
            [
                {"address": worker.address, "proc": weakref.ref(worker)}
                for worker in running.workers.values()
            ],
        )
