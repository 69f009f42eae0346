"""`distributed.comm.registry`: who carries which scheme."""

from __future__ import annotations

from typing import Any, Final

from shoal.comms.backends import BACKENDS, backend_of
from shoal.compat.comm.inproc import InProcBackend
from shoal.compat.comm.tcp import TCPBackend
from shoal.compat.comm.tls import TLSBackend

BACKENDS.setdefault("inproc", InProcBackend())
BACKENDS.setdefault("tcp", TCPBackend())
BACKENDS.setdefault("tls", TLSBackend())

backends: Final = BACKENDS


def get_backend(scheme: str) -> Any:
    """Who carries `scheme`; installed packages are looked through for it.

    Raises:
        UnknownScheme: nobody (a ValueError).
    """
    return backend_of(scheme)
