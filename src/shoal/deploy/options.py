"""What a LocalCluster can be told: which options there are, and what they mean."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Final

from shoal import config
from shoal.deploy.errors import UnknownOptions
from shoal.deploy.sharing import memory_limit_nbytes
from shoal.errors import UnsupportedOption
from shoal.nanny.document import refuse_absent
from shoal.observe.asked import host_of_interface, split_scheme
from shoal.units import to_seconds

WORKER_OPTIONS: Final = frozenset(
    (
        "data",
        "executor",
        "lifetime",
        "lifetime_restart",
        "lifetime_stagger",
        "local_directory",
        "memory_limit",
        "name",
        "plugins",
        "preload",
        "preload_argv",
        "resources",
        "validate",
    )
)
"""What is passed on to the workers.  A test says that `Worker` has them all."""

START_SECONDS_MIN: Final = 60.0
"""Starting an interpreter may take long on a loaded machine; less than this is never the limit."""

NANNY_OPTIONS: Final = frozenset(("preload_nanny", "preload_nanny_argv"))
"""What is for those that keep the workers alive, and nothing where nobody does."""

PASSED_ON: Final = WORKER_OPTIONS | NANNY_OPTIONS

LATER_OPTIONS: Final = {
    "env": "Set the variables with dask.config.set({'distributed.nanny.environ': {...}}) instead.",
}
"""Options of upstream that would change what happens, and what to do instead."""

HARMLESS_OPTIONS: Final = frozenset(
    (
        "death_timeout",
        "heartbeat_interval",
        "nanny",
        "profile_cycle_interval",
        "quiet",
        "reconnect",
    )
)
"""Options of upstream that only tune what shoal does by itself."""


def host_of_old(start: Any, ip: str | None, host: str | None) -> str | None:
    """What two options of old mean today: the host."""
    if start is not None:
        warnings.warn("start= is ignored: a cluster starts when it is made", stacklevel=3)
    if ip is not None:
        warnings.warn("ip= is deprecated; write host=", DeprecationWarning, stacklevel=3)
    return host or ip


def where_to_listen(
    host: str | None, interface: str | None, protocol: str | None
) -> tuple[str, str | None]:
    """Host and protocol, where either may be said by the other, or by an interface.

    Raises:
        UnknownInterface: this machine has none of that name.
    """
    if interface:
        host, protocol = host_of_interface(interface), protocol or "tcp"
    scheme, host = split_scheme("127.0.0.1" if host is None else host)
    return host or "0.0.0.0", scheme or protocol


def start_seconds(death_timeout: float | str | None) -> float:
    """What starting a service may take."""
    if death_timeout is not None:
        return to_seconds(death_timeout)
    return max(START_SECONDS_MIN, config.read(config.Comm).connect_seconds)


def threads_asked(nthreads: int | None, options: dict[str, Any]) -> int | None:
    """Threads of each worker, which may be said as workers do; that is taken from `options`."""
    as_workers_say: int | None = options.pop("nthreads", None)
    return as_workers_say if nthreads is None else nthreads


def of_workers(given: Mapping[str, Any], nworkers: int, nthreads: int) -> dict[str, Any]:
    """What each of so many workers is made with.  Raises ValueError: a size that is none."""
    return {
        **{name: value for name, value in given.items() if name in PASSED_ON},
        "nthreads": nthreads,
        "memory_limit": memory_limit_nbytes(given.get("memory_limit", "auto"), nworkers),
    }


def refuse_services(*given: Any) -> None:
    """Raise UnsupportedOption if servers of a program's own are asked for."""
    if any(given):
        raise UnsupportedOption(
            "services=", "The scheduler has its web page; what else shall run there is a plugin."
        )


def whether_processes(processes: bool | None, worker_class: Any) -> bool:
    """Whether services are processes; unless it is said, they are if the workers are our own."""
    if processes not in (True, False, None):
        raise TypeError(f"processes is True, False or None, not {processes!r}")
    if processes is None:
        processes = worker_class is None
    if processes and worker_class is not None:
        raise UnsupportedOption("worker_class with processes=True", "Leave one of them out.")
    if processes and os.name != "posix":
        raise UnsupportedOption("processes=True on this system", "Say processes=False.")
    return processes


def log_level(silence_logs: int | str | bool) -> int:
    """The level from which logs are heard."""
    if silence_logs is False:
        return logging.INFO
    if silence_logs is True:
        return logging.ERROR
    if isinstance(silence_logs, str):
        return logging.getLevelNamesMapping()[silence_logs.upper()]
    return silence_logs


def check_worker_options(options: Mapping[str, Any]) -> None:
    """Raise what is wrong with options that nobody knows, or that change what they can't."""
    refuse_absent(options, LATER_OPTIONS)
    known = {*WORKER_OPTIONS, *NANNY_OPTIONS, *HARMLESS_OPTIONS, *LATER_OPTIONS}
    unknown = [name for name in options if name not in known]
    if unknown:
        spelt = sorted({*WORKER_OPTIONS, "n_workers", "threads_per_worker", "processes"})
        from difflib import get_close_matches  # only here, as it is rare

        near = [close for name in unknown for close in get_close_matches(name, spelt, n=1)]
        raise UnknownOptions(unknown, near)


def scheduler_options(
    dashboard_address: str | int | None,
    blocked_handlers: Sequence[str] | None,
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """Options of `Scheduler`, where some have a parameter of the cluster's own.

    Nobody is waited for: what begins and ends with one process tree has no network to break.
    """
    found: dict[str, Any] = {
        "dashboard_address": dashboard_address,
        "resume_seconds": 0.0,
        "client_resume_seconds": 0.0,
    }
    if blocked_handlers is not None:
        found["blocked_handlers"] = list(blocked_handlers)
    return {**found, **options}


def check_security(security: Any, protocol: str | None) -> None:
    """Raise UnsupportedOption if certificates are asked for."""
    wants = security is True or getattr(security, "require_encryption", False)
    if wants or (protocol or "").startswith("tls"):
        raise UnsupportedOption(
            "TLS", "A LocalCluster listens on loopback only, and asks everybody for its token."
        )
