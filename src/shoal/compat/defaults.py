"""Settings of `distributed` that programs expect to find in dask's configuration."""

from __future__ import annotations

from typing import Any, Final

import dask.config
import msgspec

from shoal.config import SECTIONS
from shoal.config.legacy import LEGACY

BESIDE: Final[dict[str, Any]] = {
    "version": 2,
    "admin.event-loop": "asyncio",
    "comm.default-scheme": "tcp",
    "worker.multiprocessing-method": "spawn",
}
"""Those that are no settings of shoal, but are read by programs, or by functions in `compat`."""


RENAMED: Final[dict[str, str]] = {
    "allowed-failures": "scheduler.allowed-failures",
    "bandwidth": "scheduler.bandwidth",
    "bokeh-export-tool": "dashboard.export-tool",
    "compression": "comm.compression",
    "connect-timeout": "comm.timeouts.connect",
    "default-data-size": "scheduler.default-data-size",
    "default-scheme": "comm.default-scheme",
    "diagnostics-link": "dashboard.link",
    "heartbeat-interval": "client.heartbeat",
    "log-format": "admin.log-format",
    "log-length": "admin.log-length",
    "multiprocessing-method": "worker.multiprocessing-method",
    "pdb-on-err": "admin.pdb-on-err",
    "profile-cycle-interval": "worker.profile.cycle",
    "profile-interval": "worker.profile.interval",
    "recent-messages-log-length": "admin.low-level-log-length",
    "socket-backlog": "comm.socket-backlog",
    "tcp-timeout": "comm.timeouts.tcp",
    "tick-maximum-delay": "admin.tick.limit",
    "tick-time": "admin.tick.interval",
    "transition-log-length": "admin.low-level-log-length",
    "use-file-locking": "worker.use-file-locking",
    "work-stealing": "scheduler.work-stealing",
    "worker-memory-pause": "worker.memory.pause",
    "worker-memory-spill": "worker.memory.spill",
    "worker-memory-target": "worker.memory.target",
    "worker-memory-terminate": "worker.memory.terminate",
    "worker-ttl": "scheduler.worker-ttl",
}
"""What settings were called before they had sections; dask warns, and reads the new name."""


def old_defaults() -> dict[str, Any]:
    """Old name below `distributed.` → the value that holds if nobody sets it.

    Plain values in seconds and bytes, where files say "30 s" or "64 MiB".
    """
    values = {}
    for section in SECTIONS:
        for field, value in msgspec.structs.asdict(section()).items():
            values[f"{section.path}.{_setting_name(section, field)}"] = value
    return BESIDE | {old: values[new] for old, new in LEGACY.items()}


def enter_defaults() -> None:
    """Put them where whatever a user has set, or sets later, comes first."""
    tree: dict[str, Any] = {}
    for name, value in old_defaults().items():
        *sections, last = name.split(".")
        inner = tree
        for part in sections:
            inner = inner.setdefault(part, {})
        inner[last] = value
    dask.config.update_defaults({"distributed": tree})
    for old, new in RENAMED.items():
        dask.config.deprecations.setdefault(old, f"distributed.{new}")


def _setting_name(section: type[msgspec.Struct], field: str) -> str:
    encoded = dict(zip(section.__struct_fields__, section.__struct_encode_fields__, strict=True))
    return encoded[field]
