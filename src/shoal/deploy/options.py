"""What a LocalCluster can be told: which options there are, and what they mean."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final

from shoal.deploy.errors import UnknownOptions
from shoal.errors import UnsupportedOption
from shoal.nanny.document import WORKERS_LACK, refuse_absent

WORKER_OPTIONS: Final = frozenset(
    (
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

NANNY_OPTIONS: Final = frozenset(("preload_nanny", "preload_nanny_argv"))
"""What is for those that keep the workers alive, and nothing where nobody does."""

PASSED_ON: Final = WORKER_OPTIONS | NANNY_OPTIONS

LATER_OPTIONS: Final = {
    **WORKERS_LACK,
    "blocked_handlers": "Services have no handlers that could be blocked.",
    "env": "Set the variables with dask.config.set({'distributed.nanny.environ': {...}}) instead.",
    "lifetime": "Scale the cluster instead.",
    "service_kwargs": "The scheduler has its web page, and workers have none.",
    "services": "The scheduler has its web page, and workers have none.",
    "worker_services": "The scheduler has its web page, and workers have none.",
}
"""Options of upstream that would change what happens, and what to do instead."""

HARMLESS_OPTIONS: Final = frozenset(
    (
        "death_timeout",
        "heartbeat_interval",
        "lifetime_restart",
        "lifetime_stagger",
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
        near = [close for name in unknown for close in get_close_matches(name, spelt, n=1)]
        raise UnknownOptions(unknown, near)


def scheduler_options(
    dashboard_address: str | int | None, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Options of `Scheduler`; `dashboard=False` is another way to say that there is no page."""
    found = {"dashboard_address": dashboard_address, **options}
    if not found.pop("dashboard", True):
        found["dashboard_address"] = None
    return found


def check_security(security: Any, protocol: str | None) -> None:
    """Raise UnsupportedOption if certificates are asked for."""
    wants = security is True or getattr(security, "require_encryption", False)
    if wants or (protocol or "").startswith("tls"):
        raise UnsupportedOption(
            "TLS", "A LocalCluster listens on loopback only, and asks everybody for its token."
        )
