"""What a workload is handed: the module under test, its size, and a cluster to run on."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from benchmarks.errors import ClusterNotComplete, WrongResult
from benchmarks.figures import Figure
from benchmarks.processes import Meter

NWORKERS = 2
CLUSTER: dict[str, Any] = {
    "n_workers": NWORKERS,
    "threads_per_worker": 1,
    "processes": True,
    "dashboard_address": None,
}


@dataclass(frozen=True)
class Session:
    """A client with a ready cluster, and the meter of all its processes."""

    client: Any
    meter: Meter
    addresses: tuple[str, ...]


@dataclass(frozen=True)
class Bench:
    """One run of one workload: `module_name` is `distributed`, `shoal` or `pool`."""

    module_name: str
    size: int

    @property
    def module(self) -> Any:
        """The module under test; only its public names are used."""
        return importlib.import_module(self.module_name)

    @contextmanager
    def cluster(self) -> Iterator[Session]:
        """The layout that `Client(n_workers=2)` makes: where the scheduler runs is its choice."""
        client = self.module.Client(**CLUSTER)
        try:
            yield session_of(client)
        finally:
            client.close()

    @contextmanager
    def separate_cluster(self) -> Iterator[Session]:
        """Client and scheduler in processes of their own, so that each can be told apart."""
        command = [sys.executable, "-m", "benchmarks.host", self.module_name]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as host:
            assert host.stdout is not None
            address = host.stdout.readline().strip()
            client = self.module.Client(address)
            try:
                yield session_of(client)
            finally:
                client.close()
                # Leaving the block closes the pipe, which ends the host, and waits for it.


@dataclass(frozen=True)
class Workload:
    """One thing to measure.

    `full` and `quick` are its sizes; `run` yields figures and raises `WrongResult` if the values
    are not those of plain Python.  `pool`, if any, is the same for a process pool.
    """

    name: str
    about: str
    run: Callable[[Bench], Iterator[Figure]]
    full: int
    quick: int
    timeout_seconds: float = 120.0
    pool: Callable[[Bench], Iterator[Figure]] | None = None
    only_shoal: bool = False
    rounds_max: int = 1_000_000

    def size(self, quick: bool) -> int:
        """The size to run at."""
        return self.quick if quick else self.full

    def runs_on(self, side: str) -> bool:
        """Whether `side` takes part."""
        if side == "pool":
            return self.pool is not None
        return side == "shoal" or not self.only_shoal


def session_of(client: Any) -> Session:
    """Ask who runs where; raise `ClusterNotComplete` unless all workers are there."""
    worker_pids = dict(client.run(os.getpid))
    if len(worker_pids) != NWORKERS:
        raise ClusterNotComplete(len(worker_pids), NWORKERS)
    scheduler_pid = client.run_on_scheduler(os.getpid)
    return Session(client, Meter(scheduler_pid, worker_pids), tuple(worker_pids))


def check(what: str, got: object, expected: object) -> None:
    """Raise `WrongResult` unless the two are equal."""
    if got != expected:
        raise WrongResult(what, got, expected)
