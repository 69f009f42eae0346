"""Settings of `distributed` that programs expect to find in dask's configuration."""

from __future__ import annotations

from typing import Any, Final

import dask.config

from shoal.config import SECTIONS
from shoal.config.base import setting_names
from shoal.config.legacy import LEGACY
from shoal.config.unheeded import CARRIED, UNHEEDED

BESIDE: Final[dict[str, Any]] = CARRIED | {old: each.default for old, each in UNHEEDED.items()}
"""Those that are no settings of shoal, but are read by programs, or by functions in `compat`."""

OTHERWISE: Final[dict[str, Any]] = {"admin.event-loop": "tornado"}
"""Those whose default has another word in `distributed`."""

RENAMED: Final[dict[str, str]] = {
    "allowed-failures": "scheduler.allowed-failures",
    "bandwidth": "scheduler.bandwidth",
    "bokeh-export-tool": "dashboard.export-tool",
    "compression": "comm.compression",
    "connect-timeout": "comm.timeouts.connect",
    "default-data-size": "scheduler.default-data-size",
    "default-scheme": "comm.default-scheme",
    "diagnostics-link": "dashboard.link",
    "distributed.comm.recent-messages-log-length": "admin.low-level-log-length",
    "distributed.p2p.disk": "p2p.storage.disk",
    "distributed.scheduler.events-log-length": "admin.low-level-log-length",
    "distributed.scheduler.transition-log-length": "admin.low-level-log-length",
    "heartbeat-interval": "client.heartbeat",
    "log-format": "admin.log-format",
    "log-length": "admin.log-length",
    "multiprocessing-method": "worker.multiprocessing-method",
    "pdb-on-err": "admin.pdb-on-err",
    "profile-cycle-interval": "worker.profile.cycle",
    "profile-interval": "worker.profile.interval",
    "recent-messages-log-length": "admin.low-level-log-length",
    "rmm": "rmm",
    "socket-backlog": "comm.socket-backlog",
    "tcp-timeout": "comm.timeouts.tcp",
    "tick-maximum-delay": "admin.tick.limit",
    "tick-time": "admin.tick.interval",
    "transition-log-length": "admin.low-level-log-length",
    "ucx": "comm.ucx",
    "use-file-locking": "worker.use-file-locking",
    "work-stealing": "scheduler.work-stealing",
    "worker-memory-pause": "worker.memory.pause",
    "worker-memory-spill": "worker.memory.spill",
    "worker-memory-target": "worker.memory.target",
    "worker-memory-terminate": "worker.memory.terminate",
    "worker-ttl": "scheduler.worker-ttl",
}
"""What settings were called in their time; dask reads the new name, and warns whoever sets the old
one in a program."""


def old_defaults() -> dict[str, Any]:
    """Old name below `distributed.` → the value that holds if nobody sets it.

    Plain values in seconds and bytes, where files say "30 s" or "64 MiB".
    """
    values = {}
    for section in SECTIONS:
        defaults = section()
        for field, last in setting_names(section).items():
            values[f"{section.path}.{last}"] = getattr(defaults, field)
    return BESIDE | {old: values[new] for old, new in LEGACY.items()} | OTHERWISE


def enter_defaults() -> None:
    """Put them where whatever a user has set, or sets later, comes first."""
    tree: dict[str, Any] = {}
    for name, value in old_defaults().items():
        *sections, last = name.split(".")
        inner = tree
        for part in sections:
            inner = inner.setdefault(part, {})
        inner[last] = value
    for old, new in RENAMED.items():
        dask.config.deprecations.setdefault(old, f"distributed.{new}")
    dask.config.rename({old: f"distributed.{new}" for old, new in RENAMED.items()})
    dask.config.update_defaults({"distributed": tree})
