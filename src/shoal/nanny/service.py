"""A nanny: one worker in a process of its own, started again when it dies, by upstream's names."""

from __future__ import annotations

import logging
import os
from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any, Final, Self

import dask.config

from shoal import config as settings
from shoal.comms import connect, require_token
from shoal.comms.addresses import parse_address
from shoal.comms.scheduler_file import read_scheduler_file
from shoal.nanny.document import (
    WORKERS_LACK,
    document_of,
    listed,
    pickled_plugins,
    refuse_absent,
    require_plain,
    worker_environ,
)
from shoal.nanny.errors import NoSchedulerGiven, UnknownOption
from shoal.nanny.keeper import WorkerKeeper
from shoal.nanny.process import ServiceProcess
from shoal.observe.limits import memory_limit_bytes, thread_count
from shoal.observe.preloading import Preloads, process_preloads
from shoal.protocol.codec import Decoder
from shoal.protocol.directions import SchedulerToWorker
from shoal.protocol.handshake import WORKER, Keyring
from shoal.units import to_seconds

START_SECONDS: Final = 60.0
"""What a process may take to become a worker, beyond the time that it looks for its scheduler."""

PROBE_SECONDS: Final = 2.0
"""How long a scheduler that was lost is looked for."""

LATER_OPTIONS: Final = {
    **WORKERS_LACK,
    "lifetime": "Close the nanny when its time is over.",
    "security": "The token in SHOAL_TOKEN_FILE, or the scheduler file, lets a worker in.",
    "services": "Workers have no web page.",
    "worker_class": "Make a Worker in this process instead.",
}
"""Options of upstream that would change what happens, and what to do instead."""

HARMLESS_OPTIONS: Final = frozenset(
    (
        "dashboard",
        "dashboard_address",
        "heartbeat_interval",
        "http_prefix",
        "lifetime_restart",
        "lifetime_stagger",
        "listen_address",
        "profile_cycle_interval",
        "protocol",
        "quiet",
        "reconnect",
    )
)
"""Options of upstream that only tune what shoal does by itself."""

_decoder: Final = Decoder(SchedulerToWorker)


class Nanny(WorkerKeeper):
    """Keeps one worker of a scheduler alive, in a process of its own on this machine.

    `await Nanny(address)` starts it, and `async with Nanny(address)` closes it as well.  The worker
    is started again whenever it dies by itself: at once, then after ever longer pauses, and not
    for ever (`shoal.nanny.deaths-max`); `finished` returns then, and `failure` says why.
    """

    def __init__(
        self,
        scheduler_ip: str | None = None,
        scheduler_port: int | None = None,
        scheduler_file: str | None = None,
        worker_port: int = 0,
        nthreads: int | None = None,
        local_directory: str | os.PathLike[str] | None = None,
        name: Any = None,
        memory_limit: str | float | None = "auto",
        validate: bool = False,
        resources: Mapping[str, float] | None = None,
        silence_logs: int | None = None,
        death_timeout: float | str | None = None,
        contact_address: str | None = None,
        env: Mapping[str, Any] | None = None,
        host: str | None = None,
        port: int | None = None,
        config: Mapping[str, Any] | None = None,
        token: bytes | None = None,
        preload: str | Sequence[str] | None = None,
        preload_argv: Sequence[Any] | None = None,
        preload_nanny: str | Sequence[str] | None = None,
        preload_nanny_argv: Sequence[Any] | None = None,
        plugins: Iterable[Any] = (),
        **options: Any,
    ) -> None:
        """Nothing happens until it is started.

        Args:
            scheduler_ip: the scheduler's address, e.g. `tcp://10.0.0.1:8786`; or its host, with
                `scheduler_port`; or give `scheduler_file`.
            worker_port, host, contact_address: where the worker listens, and what peers are told.
            nthreads, name, memory_limit, resources, local_directory, validate: of the worker.
            silence_logs: level (of `logging`) below which the worker's log is silent.
            death_timeout: seconds to find the scheduler at the start.
            env: variables that are set in the worker's process before anything is imported.
            config: on top of the configuration that the worker gets, which is ours.
            token: what proves that it belongs to the cluster; None: looked for.
            preload, preload_argv, plugins: of the worker.
            preload_nanny, preload_nanny_argv: of ours; see `observe/preloading.py`; None: the
                settings'.

        Raises:
            NoSchedulerGiven, UnsupportedOption, NotPlain, TypeError, ValueError: what can't be
                used.
        """
        _check(options)
        preloads = _preloads(self, preload_nanny, preload_nanny_argv)
        self.scheduler_address, known = _find(scheduler_ip, scheduler_port, scheduler_file)
        nthreads = thread_count(nthreads)
        seconds = None if death_timeout is None else to_seconds(death_timeout)
        self._token = token or known
        self._environ, self._config = env, config
        self._log_level = logging.WARNING if silence_logs is None else silence_logs
        given = _given(
            nthreads=nthreads,
            memory_limit=memory_limit_bytes(memory_limit, nthreads),
            name=name,
            port=worker_port or port,
            host=host,
            contact_address=contact_address,
            local_directory=None if local_directory is None else os.fspath(local_directory),
            resources=None if resources is None else dict(resources),
            death_timeout=seconds,
            validate=validate,
            preload=None if preload is None else listed(preload),
            preload_argv=None if preload_argv is None else list(preload_argv),
            plugins=pickled_plugins(plugins) or None,
        )
        self._options = require_plain("", given)
        super().__init__(
            "the worker" if name is None else f"worker {name}",
            self._options,
            self._make_process,
            self._find_address,
            self._probe,
            start_seconds=START_SECONDS + (seconds or _connect_seconds()),
            preloads=preloads,
        )

    def __await__(self) -> Generator[Any, None, Self]:
        return self.start().__await__()

    async def __aenter__(self) -> Self:
        return await self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def start(self) -> Self:
        """Start the worker; returns when it is registered with the scheduler.

        Raises:
            AuthenticationError: nobody here knows the scheduler's token.
            ProcessDied, ProcessLate, OSError: the process could not become a worker.
        """
        self._keyring()  # a missing token is told here, and not by a process
        try:
            await self.instantiate()
        except BaseException:
            await self.end_hooks()
            raise
        return self

    # --- what the keeper needs ---------------------------------------------------------------

    def _make_process(self) -> ServiceProcess:
        config = dask.config.config
        if self._config is not None:
            config = dask.config.merge(config, self._config)
        return ServiceProcess(
            self.what,
            document_of(
                "worker",
                self._find_token(),
                self._options,
                log_level=self._log_level,
                config=config,
            ),
            environ=worker_environ({**(self._environ or {}), **self.env}),
            memory_limit_nbytes=self.memory_limit,
        )

    def _find_token(self) -> bytes:
        return self._token or require_token(self.scheduler_address, WORKER)

    def _keyring(self) -> Keyring:
        return Keyring.from_token(self._find_token()).only(WORKER)

    async def _find_address(self) -> str:
        return self.scheduler_address

    async def _probe(self) -> bool:
        """Whether the scheduler lets a worker in."""
        try:
            connection = await connect(
                self.scheduler_address,
                self._keyring(),
                WORKER,
                _decoder,
                timeout_seconds=PROBE_SECONDS,
            )
        except OSError:
            return False
        connection.abort()
        return True


def _preloads(
    nanny: Nanny, preload: str | Sequence[str] | None, argv: Sequence[Any] | None
) -> Preloads:
    """Execute what is to run beside the worker's process; None: as is set."""
    found = settings.read(settings.Nanny)
    chosen = found.preload if preload is None else preload
    return process_preloads(nanny, chosen, argv or found.preload_argv)


def _connect_seconds() -> float:
    """How long a worker looks for its scheduler if nothing else is said."""
    return settings.read(settings.Comm).connect_seconds


def _find(host: str | None, port: int | None, file: str | None) -> tuple[str, bytes | None]:
    """The scheduler's address, and its token if the scheduler file has one.

    Raises:
        NoSchedulerGiven: there is none, or no such file.
    """
    if file is None:
        return _address_of(host, port), None
    found = read_scheduler_file(file)
    if found is None:
        raise NoSchedulerGiven(file)
    return _address_of(found.address, port), found.token


def _address_of(host: str | None, port: int | None) -> str:
    """The scheduler's address, from what upstream takes for it."""
    address = host or dask.config.get("scheduler-address", None)
    if not address:
        raise NoSchedulerGiven
    text = str(address)
    if port is not None:
        text = f"{text}:{port}"
    if "://" not in text:
        text = f"tcp://{text}"
    return str(parse_address(text))


def _given(**options: Any) -> dict[str, Any]:
    """Those that say something."""
    return {name: value for name, value in options.items() if value is not None}


def _check(options: Mapping[str, Any]) -> None:
    """Raise what is wrong with options that nobody knows, or that change what they can't."""
    refuse_absent(options, LATER_OPTIONS)
    for name in options:
        if name not in LATER_OPTIONS and name not in HARMLESS_OPTIONS:
            raise UnknownOption(name)
