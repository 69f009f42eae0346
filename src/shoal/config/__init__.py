"""Settings: each one's name, default, unit and reason, read from `dask.config`.

A section is a frozen Struct.  Its fields are settings: the field `connect_seconds` of the section
at `comm` is `shoal.comm.connect-seconds` in a YAML file and `DASK_SHOAL__COMM__CONNECT_SECONDS` in
the environment.  Fields ending in `_seconds` also take texts such as "500ms", those ending in
`_bytes` such as "64MiB", and `False` or `None` turns off what may be off (`float | None`).

A value set under `shoal.` wins; then one that a program sets under its `distributed.` name (the
table in `legacy.py`); then the default.  Read a section when a service starts, never in a machine.
"""

from shoal.config.base import Settings
from shoal.config.errors import SettingError
from shoal.config.reading import full_name_of, read
from shoal.config.sections import (
    SECTIONS,
    Adaptive,
    Client,
    Comm,
    Dashboard,
    Deploying,
    Histories,
    Logs,
    Memory,
    Nanny,
    Profile,
    Replicas,
    Scheduler,
    Shuffle,
    Stealing,
    Tls,
    Worker,
)

__all__ = [
    "SECTIONS",
    "Adaptive",
    "Client",
    "Comm",
    "Dashboard",
    "Deploying",
    "Histories",
    "Logs",
    "Memory",
    "Nanny",
    "Profile",
    "Replicas",
    "Scheduler",
    "SettingError",
    "Settings",
    "Shuffle",
    "Stealing",
    "Tls",
    "Worker",
    "full_name_of",
    "read",
]
