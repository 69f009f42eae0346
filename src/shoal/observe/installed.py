"""The versions that processes tell each other as they meet, and what is said if these differ.

They are told at each start of a process, so they are found faster than `versions` finds them: by
what is loaded, and by the names of the folders that tell of what is installed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from shoal.observe.versions import PACKAGES, error_message
from shoal.version import VERSION

_SUFFIXES: Final = (".dist-info", ".egg-info")


@cache
def told_versions() -> dict[str, str]:
    """Package → version, of those that are installed here.  Cost: 1 ms, once for each process."""
    found = {"python": ".".join(map(str, sys.version_info)), "shoal": VERSION}
    for name in PACKAGES:
        # As it stands there: some modules look it up at the first look, which takes long.
        loaded = vars(sys.modules[name]).get("__version__") if name in sys.modules else None
        if isinstance(loaded, str) and name != "distributed":
            found[name] = loaded
    for name, version in _in_folders():
        if name in PACKAGES and name != "distributed":
            found.setdefault(name, version)
    if "dask" in found:
        found["distributed"] = found["dask"]  # which we stand for
    return {name: found[name] for name in sorted(found)}


def _in_folders() -> Iterator[tuple[str, str]]:
    """Name and version of what is installed, what is found first by an import first."""
    for entry in sys.path:
        try:
            files = os.listdir(entry or os.curdir)
        except OSError:
            continue  # an archive, or nothing
        for file in files:
            if file.endswith(_SUFFIXES):
                name, version, *_ = [*file.rpartition(".")[0].split("-"), ""]
                yield name.lower(), version


def mismatch_of(
    client: Mapping[str, str],
    scheduler: Mapping[str, str],
    workers: Mapping[str, Mapping[str, str]],
) -> str:
    """A table of what differs; "" if nothing does.

    Args:
        scheduler: {} if it does not say.
        workers: of those that have others than the client; {} of one that does not say.
    """
    if not scheduler:
        return ""
    told = {address: _as_told(said) for address, said in workers.items() if said}
    compared = told or {"": _as_told(client)}
    return error_message(_as_told(scheduler), compared, _as_told(client))["warning"]


def _as_told(said: Mapping[str, str]) -> dict[str, Any]:
    return {"packages": dict(said)}
