"""What a cluster comes back to when a fault is over: its workers, no tasks, no replicas."""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from time import monotonic
from typing import Any, NamedTuple

import psutil

from shoal import Client, wait

SECONDS_MAX = 10.0
POOLED_THREADS_MAX = 8
"""Pools, of Python and of libraries, start threads when they are first of use, and keep them."""
LOOK_SECONDS = 0.05
"""Between two looks at what nothing tells of."""


def until(is_so: Callable[[], object], seconds_max: float = SECONDS_MAX) -> None:
    """Wait for what nothing tells of.  Raises AssertionError: it was not so in time."""
    deadline = monotonic() + seconds_max
    while not is_so():
        assert monotonic() < deadline, f"not so within {seconds_max:g} s"
        select.select([], [], [], LOOK_SECONDS)


class Handles(NamedTuple):
    """What one process has of the system."""

    ndescriptors: int
    nthreads: int


class Counts(NamedTuple):
    """What there is in a cluster."""

    nworkers: int
    ntasks: int
    nreplicas: int


def count_tasks(dask_scheduler: Any) -> int:
    """Tasks that the scheduler knows."""
    return len(dask_scheduler.tasks)


def count_replicas(dask_worker: Any) -> int:
    """Results that a worker has, wherever."""
    return len(dask_worker.data)


def count(client: Client) -> Counts:
    """What there is now; what this client has let go of before is not counted any more."""
    replicas = client.run(count_replicas, on_error="ignore")
    return Counts(len(replicas), client.run_on_scheduler(count_tasks), sum(replicas.values()))


def handles_of(pid: int) -> Handles:
    """Of a process of this user."""
    process = psutil.Process(pid)
    return Handles(process.num_fds(), process.num_threads())


class Baseline:
    """A cluster as it is before the fault: warm, and with nothing to do."""

    def __init__(self, client: Client, nworkers: int) -> None:
        """Every worker has fetched from every other when this returns.

        `nworkers`: how many there are, and shall be in the end.
        """
        self._client = client
        self.nworkers = nworkers
        client.wait_for_workers(nworkers, timeout=SECONDS_MAX)
        self.scheduler_pid: int = client.run_on_scheduler(os.getpid)
        warm_up(client)
        pids = {"scheduler": self.scheduler_pid, "client": os.getpid()}
        self._pids = {role: pid for role, pid in pids.items() if pid}
        self._handles = {role: handles_of(pid) for role, pid in self._pids.items()}

    def complaints(self, seconds_max: float = SECONDS_MAX) -> list[str]:
        """What is not as it was, after at most `seconds_max`; a sentence each."""
        self._client.wait_for_workers(self.nworkers, timeout=seconds_max)
        warm_up(self._client)
        deadline = monotonic() + seconds_max
        while (found := self._complaints()) and monotonic() < deadline:
            select.select([], [], [], LOOK_SECONDS)
        return found

    def _complaints(self) -> list[str]:
        counts = count(self._client)
        found = []
        if counts.nworkers != self.nworkers:
            found.append(f"{counts.nworkers} workers, not {self.nworkers}")
        if counts.ntasks:
            found.append(f"the scheduler still knows {counts.ntasks} tasks")
        if counts.nreplicas:
            found.append(f"workers still have {counts.nreplicas} results")
        for role, before in self._handles.items():
            now = handles_of(self._pids[role])
            if now.ndescriptors > before.ndescriptors:
                found.append(f"descriptors of the {role}: {before.ndescriptors}, now {now[0]}")
            if now.nthreads > before.nthreads + POOLED_THREADS_MAX:
                found.append(f"threads of the {role}: {before.nthreads}, now {now.nthreads}")
        return found


def whole(nbytes: int) -> bytes:
    """A result that does not travel with messages."""
    return bytes(nbytes)


def length(*values: bytes) -> int:
    """Needs them all."""
    return sum(map(len, values))


WARM_UP_NBYTES = 20_000


def warm_up(client: Client) -> None:
    """Have each worker fetch from each, and the client from all."""
    addresses = list(client.scheduler_info()["workers"])
    wholes = [_submitted(client, there, whole, WARM_UP_NBYTES) for there in addresses]
    sums = [_submitted(client, there, length, *wholes) for there in addresses]
    wait(sums, timeout=SECONDS_MAX)
    assert client.gather(sums) == [WARM_UP_NBYTES * len(wholes)] * len(sums)
    client.gather(wholes)


def _submitted(client: Client, there: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """The future of a call on that worker, or on another if it goes just now."""
    options = {"workers": [there], "allow_other_workers": True, "pure": False}
    return client.submit(function, *arguments, **options)
