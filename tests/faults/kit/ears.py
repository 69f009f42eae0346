"""Hears what tasks tell as they run, in whichever process."""

from __future__ import annotations

import socket
from pathlib import Path
from types import TracebackType

SECONDS_MAX = 20.0


class Ear:
    """A datagram socket, at a path that tasks are given; use it in a `with`."""

    def __init__(self, path: Path) -> None:
        """Raises OSError: the path is too long for a socket, or taken."""
        self.path = str(path)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self._socket.bind(self.path)

    def __enter__(self) -> Ear:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._socket.close()

    def next(self, seconds_max: float = SECONDS_MAX) -> str:
        """The next words.  Raises TimeoutError: there were none in time."""
        self._socket.settimeout(seconds_max)
        return self._socket.recv(1 << 12).decode()
