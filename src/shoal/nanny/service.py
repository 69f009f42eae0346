"""A nanny: one worker in a process of its own, started again when it dies, by upstream's names."""

from __future__ import annotations

import logging
import os
from collections.abc import Generator, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

from shoal import config as settings
from shoal.comms import connect, require_token
from shoal.nanny.document import (
    document_of,
    listed,
    pickled_class,
    pickled_data,
    pickled_plugins,
    refuse_absent,
    require_plain,
    worker_environ,
)
from shoal.nanny.errors import UnknownOption
from shoal.nanny.keeper import WorkerKeeper
from shoal.nanny.process import ServiceProcess
from shoal.observe.asked import find_scheduler, host_of_interface, refuse_encryption
from shoal.observe.limits import memory_limit_bytes, thread_count
from shoal.observe.preloading import Preloads, process_preloads
from shoal.protocol.codec import Decoder
from shoal.protocol.directions import SchedulerToWorker
from shoal.protocol.handshake import WORKER, Keyring
from shoal.units import to_seconds

if TYPE_CHECKING:
    from shoal.observe.memory import MemoryView

START_SECONDS: Final = 60.0
"""What a process may take to become a worker, beyond the time that it looks for its scheduler."""

PROBE_SECONDS: Final = 2.0
"""How long a scheduler that was lost is looked for."""

LATER_OPTIONS: Final = {
    "services": "Workers have no web page.",
}
"""Options of upstream that would change what happens, and what to do instead."""

HARMLESS_OPTIONS: Final = frozenset(
    (
        "dashboard",
        "dashboard_address",
        "heartbeat_interval",
        "http_prefix",
        "profile_cycle_interval",
    )
)
"""Options of upstream that only tune what shoal does by itself."""

_decoder: Final = Decoder(SchedulerToWorker)
_find: Final = partial(find_scheduler, "Nanny")


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
        worker_port: int | str | Sequence[int] | None = 0,
        nthreads: int | None = None,
        local_directory: str | os.PathLike[str] | None = None,
        services: Any = None,
        name: Any = None,
        memory_limit: str | float | None = "auto",
        reconnect: bool = True,
        validate: bool = False,
        quiet: bool = False,
        resources: Mapping[str, float] | None = None,
        silence_logs: int | None = None,
        death_timeout: float | str | None = None,
        preload: str | Sequence[str] | None = None,
        preload_argv: Sequence[Any] | None = None,
        preload_nanny: str | Sequence[str] | None = None,
        preload_nanny_argv: Sequence[Any] | None = None,
        security: Any = None,
        contact_address: str | None = None,
        listen_address: str | None = None,
        worker_class: type[Any] | str | None = None,
        env: Mapping[str, Any] | None = None,
        interface: str | None = None,
        host: str | None = None,
        port: int | None = None,
        protocol: str | None = None,
        config: Mapping[str, Any] | None = None,
        token: bytes | None = None,
        plugins: Iterable[Any] = (),
        data: Any = None,
        lifetime: float | str | None = None,
        lifetime_stagger: float | str | None = None,
        lifetime_restart: bool | None = None,
        **options: Any,
    ) -> None:
        """Nothing happens until it is started.

        Args:
            scheduler_ip: the scheduler's address, e.g. `tcp://10.0.0.1:8786`; or its host, with
                `scheduler_port`; or give `scheduler_file`.
            worker_port, host, contact_address: where the worker listens, and what peers are told.
            interface: a network interface that has the address, instead of `host`.
            worker_class: what the worker is, or where that is found; a class of its own kind.
            security: taken if it asks for no certificates.
            protocol: how the scheduler is reached, where its address does not say it.
            services, reconnect, quiet, listen_address: of no effect, as a nanny listens nowhere.
            nthreads, name, memory_limit, resources, local_directory, validate: of the worker.
            silence_logs: level (of `logging`) below which the worker's log is silent.
            death_timeout: seconds to find the scheduler at the start.
            env: variables that are set in the worker's process before anything is imported.
            config: on top of the configuration that the worker gets, which is ours.
            token: what proves that it belongs to the cluster; None: looked for.
            preload, preload_argv, plugins, data: of the worker.
            lifetime, lifetime_stagger, lifetime_restart: after which time the worker goes, and
                whether another comes.
            preload_nanny, preload_nanny_argv: of ours; see `observe/preloading.py`; None: the
                settings'.

        Raises:
            NoSchedulerGiven, UnsupportedOption, NotPlain, TypeError, ValueError: what can't be
                used.
        """
        _check({**options, "services": services}, security)
        preloads = _preloads(self, preload_nanny, preload_nanny_argv)
        self.scheduler_address, told = _find(scheduler_ip, scheduler_port, scheduler_file, protocol)
        nthreads = thread_count(nthreads)
        self._token, self._environ, self._config = token or told, env, config
        self._log_level = logging.WARNING if silence_logs is None else silence_logs
        self._options = _given(
            nthreads=nthreads, memory_limit=memory_limit_bytes(memory_limit, nthreads), name=name,
            port=worker_port or port, contact_address=contact_address, validate=validate,
            host=host_of_interface(interface) if interface else host,
            worker_class=pickled_class(worker_class), resources=resources and dict(resources),
            local_directory=local_directory and os.fspath(local_directory), preload=listed(preload),
            preload_argv=listed(preload_argv), plugins=pickled_plugins(plugins) or None,
            data=pickled_data(data), lifetime=lifetime, lifetime_restart=lifetime_restart,
            lifetime_stagger=lifetime_stagger, death_timeout=_seconds(death_timeout),
        )  # fmt: skip
        super().__init__(
            "the worker" if name is None else f"worker {name}", self._options, self._make_process,
            self._find_address, self._probe, preloads=preloads,
            start_seconds=START_SECONDS + (_seconds(death_timeout) or _connect_seconds()),
        )  # fmt: skip

    def have_it_reconnect(self, seconds: float) -> None:
        """Have the worker look so long for a scheduler that it has lost; before it is started."""
        self._options = {**self._options, "reconnect_seconds": seconds}

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
        self.keyring = self._keyring()  # a missing token is told here, and not by a process
        try:
            await self.instantiate()
        except BaseException:
            await self.end_hooks()
            raise
        return self

    # --- what the keeper needs ---------------------------------------------------------------

    def _make_process(self) -> ServiceProcess:
        return ServiceProcess(
            self.what,
            document_of(
                "worker",
                self._find_token(),
                self._options,
                log_level=self._log_level,
                config=self._config,
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


def _given(**options: Any) -> dict[str, Any]:
    """Those that say something.  Raises NotPlain: one of them can't travel."""
    given = {name: value for name, value in options.items() if value is not None}
    return require_plain("", given)


def _seconds(duration: float | str | None) -> float | None:
    return None if duration is None else to_seconds(duration)


def _check(options: Mapping[str, Any], security: Any) -> None:
    """Raise what is wrong with options that nobody knows, or that change what they can't."""
    refuse_encryption(security)
    refuse_absent(options, LATER_OPTIONS)
    for name in options:
        if name not in LATER_OPTIONS and name not in HARMLESS_OPTIONS:
            raise UnknownOption(name)


def _memory_of(nanny: Nanny) -> MemoryView:
    """What its worker may have of memory, by upstream's names."""
    from shoal.observe.memory import MemoryView  # only here, as it is rare

    return MemoryView(nanny.memory_limit, settings.read(settings.Memory))


setattr(Nanny, "memory_manager", property(_memory_of))  # noqa: B010 -- known by this name
