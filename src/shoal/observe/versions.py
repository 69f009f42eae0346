"""What is installed where: versions of Python and packages, and a table of those that differ."""

from __future__ import annotations

import locale
import os
import platform
import struct
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from shoal.observe.tables import asciitable
from shoal.version import VERSION

PACKAGES: Final = (
    "dask",
    "distributed",
    "msgpack",
    "cloudpickle",
    "tornado",
    "toolz",
    "numpy",
    "pandas",
    "lz4",
)
SCHEDULERS_PACKAGES: Final = frozenset(
    ("python", "dask", "distributed", "shoal", "cloudpickle", "tornado", "toolz", "lz4")
)
"""A scheduler opens nothing of users', so that other packages of its may have any version."""

_LACKS_IT: Final = "MISSING"
_SAYS_NOTHING: Final = "UNKNOWN"
_TITLE: Final = "Mismatched versions found"

Versions = Mapping[str, Any]


class VersionMismatchWarning(Warning):
    """Client, scheduler and workers differ in the versions of what they have in common."""


def get_versions(packages: Iterable[str] | None = None) -> dict[str, dict[str, Any]]:
    """This process: `host` (the interpreter and the system) and `packages` (name → version).

    Args:
        packages: names to add; a package that is not installed has the version None.

    Cost: a few milliseconds; nothing is imported.
    """
    return {"host": _host(), "packages": package_versions(packages or ())}


def _host() -> dict[str, Any]:
    language, encoding = locale.getlocale()
    return {
        "python": _python(),
        "python-bits": struct.calcsize("P") * 8,
        "OS": platform.system(),
        "OS-release": platform.release(),
        "machine": platform.machine(),
        "processor": platform.processor(),
        "byteorder": sys.byteorder,
        "LC_ALL": os.environ.get("LC_ALL", "None"),
        "LANG": os.environ.get("LANG", f"{language}.{encoding}"),
    }


def _python() -> str:
    return ".".join(map(str, sys.version_info))


def package_versions(more: Iterable[str] = ()) -> dict[str, str | None]:
    """Python's version, ours, and those of packages; None of one that is not installed."""
    found: dict[str, str | None] = {"python": _python(), "shoal": VERSION}
    for name in (*PACKAGES, *more):
        found.setdefault(name, _version_of(name))
    return found


def _version_of(name: str) -> str | None:
    """Of an installed package; shoal stands for `distributed`, of the same version as dask."""
    from importlib import metadata  # late: it takes longer than the rest of us, at each start

    installed = "dask" if name == "distributed" else name
    loaded = getattr(sys.modules.get(installed), "__version__", None)
    try:
        version = loaded if isinstance(loaded, str) else metadata.version(installed)
    except metadata.PackageNotFoundError:
        return None
    return version.partition("+")[0] if name == "distributed" else version


def error_message(
    scheduler: Versions | None,
    workers: Mapping[str, Versions | None],
    source: Versions | None,
    source_name: str = "Client",
) -> dict[str, str]:
    """What `get_versions` said in several places, compared.

    Args:
        source: of whoever asks, whose column has the title `source_name`.

    Returns:
        `warning`, a table of what differs (empty if nothing does), and `error`, which is empty:
        no difference is known with which nothing works.
    """
    columns: list[Callable[[str], set[str]]] = [
        lambda name: {_said(source, name)},
        lambda name: {_said(scheduler, name)},
        lambda name: {_said(worker, name) for worker in workers.values()},
    ]
    everybody = [source, scheduler, *workers.values()]
    rows = []
    for name in sorted({name for one in everybody for name in _named_by(one)}):
        cells = [column(name) for column in columns]
        compared = cells if name in SCHEDULERS_PACKAGES else [cells[0], cells[2]]
        if len(set[str]().union(*compared)) > 1:
            rows.append([name, *map(_cell, cells)])
    if not rows:
        return {"warning": "", "error": ""}
    table = asciitable(["Package", source_name, "Scheduler", "Workers"], rows)
    return {"warning": f"{_TITLE}\n\n{table}", "error": ""}


def _named_by(one: Versions | None) -> Mapping[str, Any]:
    found: Mapping[str, Any] = (one or {}).get("packages") or {}
    return found


def _said(one: Versions | None, name: str) -> str:
    if not one or "packages" not in one:
        return _SAYS_NOTHING
    return str(one["packages"].get(name, _LACKS_IT))


def _cell(said: set[str]) -> str:
    """One version as it is, several as a set."""
    if len(said) == 1:
        return next(iter(said))
    return "{" + ", ".join(sorted(map(repr, said))) + "}" if said else ""
