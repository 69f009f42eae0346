"""Schemes of third parties: who carries them, and how our own connections go over them.

A third party's backend has the shape that `distributed.comm.registry.Backend` gives it.  It is put
into `BACKENDS` by hand, or found by an entry point of the group `distributed.comm.backends` that
has the scheme's name.  The schemes of this package (tcp, unix, inproc) are never looked up here.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from shoal.comms.errors import UnknownScheme

GROUP: Final = "distributed.comm.backends"
_CARRIER: Final = "shoal.compat.comm.carrying"
"""What makes a connection of ours of what a backend makes.  Old names stand on us, so it is found
by its name, and only where a third party's scheme is used."""

BACKENDS: Final[dict[str, Any]] = {}
"""Scheme -> its backend; programs add theirs."""


def find_backend(scheme: str) -> Any | None:
    """The backend of a third party's scheme; None if there is none.

    Cost: the first time of a scheme, a look at every installed distribution.
    """
    backend = BACKENDS.get(scheme)
    if backend is None:
        from importlib.metadata import entry_points  # 10 ms that nobody else shall spend

        for entry_point in entry_points(group=GROUP, name=scheme):
            backend = BACKENDS[scheme] = entry_point.load()()
            break
    return backend


def backend_of(scheme: str) -> Any:
    """As `find_backend`.

    Raises:
        UnknownScheme: nobody carries that scheme (a ValueError).
    """
    backend = find_backend(scheme)
    if backend is None:
        raise UnknownScheme(scheme, sorted(BACKENDS))
    return backend


def carrier() -> Any:
    """The module with `dial` and `listen` over a third party's backend."""
    return import_module(_CARRIER)


def local_address_for(scheme: str, location: str) -> str:
    """Where to listen, to be reached by a third party's scheme from who is at `location`."""
    return f"{scheme}://{backend_of(scheme).get_local_address_for(location)}"
