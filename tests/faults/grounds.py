"""Clusters on which faults are let loose: a LocalCluster, or one of commands; and what is left."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import dask
import psutil

from shoal import Client, LocalCluster
from tests.faults.kit.proxy import Proxy
from tests.faults.kit.roles import Cast, free_port
from tests.leaks import Watch, open_what_stays

NWORKERS = 3
KINDS = ("local", "commands")

SETTINGS = {"distributed.scheduler.allowed-failures": 1000}
"""Workers are killed from outside, so that it proves nothing against the tasks that they ran."""
VARIABLES = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1000"}

EXPECTED = (r"killed by SIGKILL",)
"""In what commands write to stderr: each death of a worker is told."""


@dataclass
class Ground:
    """A cluster that works, and what is to be known of it."""

    client: Client
    nworkers: int
    pids: dict[str, int]
    """Of those whose memory is looked at: role → process."""
    proxies: list[Proxy] = field(default_factory=list)
    """Those on whose connections something may happen."""
    complaints: list[str] = field(default_factory=list)
    """What was left behind, once all is over; a sentence each."""

    def workers(self) -> list[int]:
        """Processes of the workers that the scheduler knows now and that are alive."""
        known = self.client.scheduler_info()["workers"].values()
        return [facts["pid"] for facts in known if psutil.pid_exists(facts["pid"])]


class _Loud(logging.Handler):
    """Keeps errors that services of this process log."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(f"logged: {record.getMessage()}")


@contextlib.contextmanager
def ground(kind: str, folder: Path) -> Iterator[Ground]:
    """One of `KINDS`, in an empty `folder`; its complaints are complete when the block is left."""
    with _local(folder) if kind == "local" else commands(folder) as found:
        yield found


@contextlib.contextmanager
def _local(folder: Path) -> Iterator[Ground]:
    loud = _Loud()
    logger = logging.getLogger("shoal")
    logger.addHandler(loud)
    open_what_stays()
    watch = Watch()
    places = {"TMPDIR": str(folder), "XDG_RUNTIME_DIR": str(folder)}
    try:
        with (
            mock.patch.dict(os.environ, places),
            dask.config.set(SETTINGS),
            LocalCluster(
                n_workers=NWORKERS,
                threads_per_worker=1,
                processes=True,
                dashboard_address=None,
                silence_logs=logging.ERROR,
                local_directory=str(folder),
            ) as cluster,
            Client(cluster) as client,
        ):
            scheduler_pid = client.run_on_scheduler(os.getpid)
            found = Ground(client, NWORKERS, {"scheduler": scheduler_pid, "client": os.getpid()})
            yield found
    finally:
        logger.removeHandler(loud)
    found.complaints += [f"left behind: {leak}" for leak in watch.leaked()]
    found.complaints += [f"left behind: {p}" for p in folder.rglob("*") if not p.is_dir()]
    found.complaints += loud.texts


@contextlib.contextmanager
def commands(
    folder: Path, *, peers_by_proxy: bool = False, all_by_proxy: bool = False
) -> Iterator[Ground]:
    """A cluster of commands, in an empty `folder`.

    Args:
        peers_by_proxy: one of the workers is reached by its peers by way of a proxy.
        all_by_proxy: all reach the scheduler by way of another one.
    """
    with contextlib.ExitStack() as stack:
        cast = stack.enter_context(Cast(folder))
        scheduler, address = cast.scheduler(**VARIABLES)
        proxies = []
        if all_by_proxy:
            proxies.append(stack.enter_context(Proxy(address)))
            address = proxies[-1].address
        nproxied = 0
        if peers_by_proxy:
            port = free_port()
            proxies.append(stack.enter_context(Proxy(f"tcp://127.0.0.1:{port}")))
            place = ("--worker-port", str(port), "--contact-address", proxies[-1].address)
            cast.worker(address, *place)
            nproxied = 1
        cast.worker(address, "--nworkers", str(NWORKERS - nproxied))
        with cast.client(address) as client:
            nannies = [role for role in cast.roles if role.name == "worker"]
            pids = {"scheduler": scheduler.pid, "client": os.getpid()}
            pids.update({f"nanny {number}": role.pid for number, role in enumerate(nannies)})
            found = Ground(client, NWORKERS, pids, proxies)
            yield found
        found.complaints += cast.complaints(*EXPECTED)
