"""A cluster on hosts that are reached by SSH, as a spec of what each of them runs."""

from __future__ import annotations

import ipaddress
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

import dask.config

from shoal.comms import Publication, new_token, publish_token
from shoal.deploy.errors import HostFailed, HostsFailed, HostsMissing, ListsDiffer
from shoal.deploy.job import ProcessInterface
from shoal.deploy.options import start_seconds
from shoal.deploy.shells import RemoteProcess, asyncssh_library
from shoal.deploy.spec import SpecCluster
from shoal.errors import UnsupportedOption
from shoal.nanny.document import plain_part_of, require_plain
from shoal.observe.status import Status
from shoal.units import to_count

NANNY: Final = "distributed.Nanny"
"""What workers are by default; the name stands for ours, whoever has the name `distributed`."""

CLOSE_SECONDS: Final = 4.0
"""What a process may take to close before it is ended by signals."""

_OURS: Final = {
    f"{package}.{name}": f"shoal.{name}"
    for package in ("distributed", "dask.distributed")
    for name in ("Nanny", "Scheduler", "Worker")
}
_OF_OLD: Final = ("scheduler_addr", "scheduler_port", "worker_addrs", "ssh_username", "ssh_port")
"""Options of what had the name before `hosts` came."""


class SSHScheduler(ProcessInterface):
    """A scheduler on another host, which ends with us and with the connection.

    Args:
        host: as `asyncssh.connect` takes it.
        connect_options: of `asyncssh.connect`.
        scheduler_kwargs: of `Scheduler`.
        remote_python: a command of the host's shell; None: the path that our interpreter has here.
    """

    def __init__(
        self,
        host: str,
        connect_options: Mapping[str, Any] | None = None,
        scheduler_kwargs: Mapping[str, Any] | None = None,
        remote_python: str | None = None,
    ) -> None:
        options = dict(scheduler_kwargs or {})
        self.token: bytes = options.pop("token", None) or new_token()
        of_scheduler = require_plain("scheduler_options", options)
        self.services: dict[str, int] = {}
        self._publication: Publication | None = None
        self.process = RemoteProcess(
            "the scheduler",
            host,
            _document("shoal.Scheduler", self.token, [], of_scheduler),
            connect_options=connect_options or {},
            python=remote_python,
        )
        super().__init__()

    async def start(self) -> None:
        """Start it; returns when it serves.  Raises HostFailed, SSHNotInstalled."""
        try:
            (words,) = await self.process.start(start_seconds(None))
        except BaseException:
            await self.close()
            raise
        self.address, self.services = words["address"], words["services"]
        self._publication = publish_token(str(self.address), self.token, file=False)
        await super().start()

    async def finished(self) -> None:
        """Wait until it has ended, however it does."""
        await self.process.finished()

    async def close(self) -> None:
        """End it."""
        if self._publication is not None:
            self._publication.withdraw()
            self._publication = None
        try:
            await self.process.close(CLOSE_SECONDS)
        finally:
            await super().close()


class SSHWorker(ProcessInterface):
    """Workers on another host, which end with us and with the connection.

    Args:
        scheduler: its address, as the host can reach it.
        host: as `asyncssh.connect` takes it.
        connect_options: of `asyncssh.connect`.
        worker_class: where the class of the workers, or of their nannies, is found there.
        worker_kwargs: of `worker_class`.
        endings: of the names of several workers; none: there is one, of this name.
        remote_python: a command of the host's shell; None: the path that our interpreter has here.
        token: what proves that they belong to the cluster.
    """

    def __init__(
        self,
        scheduler: str,
        host: str,
        connect_options: Mapping[str, Any] | None = None,
        worker_class: str = NANNY,
        worker_kwargs: Mapping[str, Any] | None = None,
        endings: Sequence[str] = (),
        name: Any = None,
        remote_python: str | None = None,
        token: bytes = b"",
    ) -> None:
        super().__init__(scheduler, name)
        self.host = host
        self.nthreads = 0
        """Of its workers together, once they are there."""
        self.memory_limit = 0
        """The same, in bytes; 0: one of them has none."""
        names = [f"{name}{ending}" for ending in endings] or [name]
        options = require_plain("worker_options", worker_kwargs or {})
        each = [{"name": one, **options} for one in names]
        self.process = RemoteProcess(
            f"worker {name}",
            host,
            _document(worker_class, token, [scheduler], *each),
            connect_options=connect_options or {},
            python=remote_python,
            on_end=self._has_ended,
        )

    async def start(self) -> None:
        """Start them; returns when they are registered.  Raises HostFailed, SSHNotInstalled."""
        try:
            words = await self.process.start(start_seconds(None))
        except BaseException:
            await self.close()
            raise
        self.address = words[0]["address"]
        self.nthreads = sum(word["nthreads"] for word in words)
        limits = [word["memory_limit"] for word in words]
        self.memory_limit = sum(limits) if all(limits) else 0
        await super().start()

    def _has_ended(self) -> None:
        self.status = Status.failed

    async def close(self) -> None:
        """End them."""
        try:
            await self.process.close(CLOSE_SECONDS)
        finally:
            await super().close()


class ClusterOfHosts(SpecCluster):
    """One whose new workers come to hosts that have the fewest."""

    kind: ClassVar[str] = "SSHCluster"

    def __init__(
        self, places: Sequence[Mapping[str, Any]], scheduler: Mapping[str, Any], **kwargs: Any
    ) -> None:
        """`places`: an entry for each host, which says under `"place"` which one it is."""
        self._places = list(places)
        self._failures: dict[str, HostFailed] = {}
        super().__init__(dict(enumerate(places)), scheduler, places[0], **kwargs)

    def new_worker_spec(self) -> dict[Any, Mapping[str, Any]]:
        """Name and spec of the next entry that `scale` adds."""
        used = Counter(spec.get("place") for spec in list(self.worker_spec.values()))
        self.new_spec = dict(min(self._places, key=lambda spec: used[spec["place"]]))
        return super().new_worker_spec()

    async def _start_entry(self, name: Any, spec: Mapping[str, Any]) -> None:
        try:
            await super()._start_entry(name, spec)
        except HostFailed as error:
            self._failures[str(name)] = error
            raise

    async def _correct(self) -> None:
        """Every host that fails is told of, and not the first one alone.

        What was lost with its host, or with the connection, is made anew.
        """
        self._failures.clear()
        async with self._correcting:
            for name in [n for n, worker in self.workers.items() if worker.status is Status.failed]:
                await self._end_entry(name)
        try:
            await super()._correct()
        except HostFailed as error:
            if len(self._failures) > 1:
                raise HostsFailed(list(self._failures.values())) from error
            raise


def SSHCluster(  # noqa: N802 -- as a class is called, which it is for who calls it
    hosts: Sequence[str] | None = None,
    connect_options: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    worker_options: Mapping[str, Any] | None = None,
    scheduler_options: Mapping[str, Any] | None = None,
    worker_class: str | type[Any] = NANNY,
    remote_python: str | Sequence[str] | None = None,
    **kwargs: Any,
) -> SpecCluster:
    """A `SpecCluster` of a scheduler and workers on hosts that are reached by SSH.

    Each host has a Python with shoal; nothing needs to run there before, and nothing is left when
    the cluster is closed, when this program ends, or when the connection does.  The configuration
    of this program is theirs as well.

    Args:
        hosts: the scheduler's, then one for each worker; the same may be there several times.
        connect_options: of `asyncssh.connect`, such as `username`, `port`, `client_keys`,
            `known_hosts`; for all, or a list of one for each host.
        worker_options: of `worker_class`; with `n_workers`, so many on each host.  Their CPUs are
            shared by the workers of a host, unless `nthreads` says otherwise.
        scheduler_options: of `Scheduler`.  It listens on any free port, and on all interfaces;
            on loopback alone if all hosts are this one.
        worker_class: the class of workers, or of what keeps them alive, or where that is found;
            it has to be importable there.
        remote_python: the interpreter, a command of the hosts' shell; for all, or a list of one
            for each host; None: the path that the interpreter of this program has.
        kwargs: of `SpecCluster`, such as `asynchronous=True`.

    Raises:
        HostsMissing: a ValueError; there are fewer than two.
        ListsDiffer: a RuntimeError; a list is not as long as that of hosts.
        SSHNotInstalled: an ImportError; `pip install 'shoal[ssh]'`.
        UnsupportedOption: an option of the older class of that name (a ValueError).
        RuntimeError: it did not start; with what is wrong with which host, and what to do.
    """
    for option in _OF_OLD:
        if option in kwargs:
            raise UnsupportedOption(f"{option}=", "Give hosts=[scheduler, worker, ...].")
    if hosts is None or isinstance(hosts, str) or len(hosts) < 2:
        raise HostsMissing(hosts)
    logins = _each("connect_options", connect_options, len(hosts))
    pythons = _each("remote_python", remote_python, len(hosts))
    asyncssh_library()  # or it would be missing after a while, and for each host
    of_workers = dict(worker_options or {})
    nworkers = to_count("n_workers", of_workers.pop("n_workers", 1))
    endings = [f"-{index}" for index in range(nworkers)] if nworkers > 1 else []
    places = [
        {
            "cls": SSHWorker,
            "options": {
                "host": hosts[place],
                "connect_options": logins[place],
                "worker_class": _place_of(worker_class),
                "worker_kwargs": of_workers,
                "endings": endings,
                "remote_python": pythons[place],
            },
            "group": endings,
            "place": place,
        }
        for place in range(1, len(hosts))
    ]
    is_here = all(map(_is_loopback, hosts))
    of_scheduler = {"host": "127.0.0.1" if is_here else "0.0.0.0", **(scheduler_options or {})}
    scheduler = {
        "cls": SSHScheduler,
        "options": {
            "host": hosts[0],
            "connect_options": logins[0],
            "scheduler_kwargs": of_scheduler,
            "remote_python": pythons[0],
        },
    }
    kwargs.setdefault("name", "SSHCluster")
    return ClusterOfHosts(places, scheduler, **kwargs)


def _each(option: str, given: Any, nhosts: int) -> list[Any]:
    """One for each host.  Raises ListsDiffer."""
    if not isinstance(given, list | tuple):
        return [given] * nhosts
    if len(given) != nhosts:
        raise ListsDiffer(option, len(given), nhosts)
    return list(given)


def _place_of(kind: str | type[Any]) -> str:
    """Where a class is found."""
    return kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _document(
    kind: str, token: bytes, arguments: Sequence[Any], *each: Mapping[str, Any]
) -> dict[str, Any]:
    """What `remote.py` reads; `each`: options of each service of the class."""
    return {
        "class": _OURS.get(kind, kind),
        "secret": token.hex(),
        "arguments": list(arguments),
        "each": list(each),
        "config": plain_part_of(dask.config.config),
        "log_level": logging.WARNING,
    }
