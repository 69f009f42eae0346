"""How long to wait for what a peer sends: for as long as something comes."""

from __future__ import annotations

import asyncio
from typing import Final

from shoal.comms.calls import PendingCalls
from shoal.comms.errors import CallTimeoutError
from shoal.comms.transport import Connection

PROGRESS_BYTES_PER_SECOND: Final = 6_500.0
"""Less is no progress: 64 KiB in ten seconds."""


class Patience:
    """Gives one request up once next to nothing has come on its connection for so long.

    A peer that was stopped keeps its connections, and the system goes on to accept for it.
    """

    def __init__(
        self,
        connection: Connection,
        calls: PendingCalls,
        request: int,
        what: str,
        *,
        first_seconds: float,
        seconds: float,
    ) -> None:
        """
        Args:
            calls: has the request, which fails with CallTimeoutError.
            what: was asked for, in words.
            first_seconds: until something comes; the peer has to make it ready first.
            seconds: from then on, between one look and the next.
        """
        self._connection, self._calls = connection, calls
        self._request, self._what = request, what
        self._seconds = seconds
        self._waited_seconds = first_seconds
        self._received_nbytes = connection.received_nbytes
        loop = self._loop = asyncio.get_running_loop()
        self._timer = loop.call_later(first_seconds, self._look)

    def end(self) -> None:
        """It has ended, however."""
        self._timer.cancel()

    def _look(self) -> None:
        received_nbytes = self._connection.received_nbytes
        came_nbytes = received_nbytes - self._received_nbytes
        if came_nbytes < PROGRESS_BYTES_PER_SECOND * self._seconds:
            address = self._connection.peer_address
            late = CallTimeoutError(self._what, address, self._waited_seconds)
            self._calls.fail(self._request, late)
            return
        self._received_nbytes = received_nbytes
        self._waited_seconds = self._seconds
        self._timer = self._loop.call_later(self._seconds, self._look)
