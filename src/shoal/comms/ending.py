"""How a connection ends, and how its owner waits for that or for room: alike for all kinds."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final

import msgspec

from shoal.comms.transport import OnClosed, OnMessages
from shoal.protocol.framing import ProtocolError

DRAINED_NBYTES: Final = 1 << 20
"""`drain` returns when less than this is unsent."""


class Ending(ABC):
    """The part of a connection that is not about what carries it; on the loop that made it."""

    def __init__(self) -> None:
        self.closed = False
        self.unsent_nbytes = 0
        self.received_nbytes = 0
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._on_messages: OnMessages | None = None
        self._on_closed: OnClosed | None = None
        self._reason: Exception | None = None
        self._failure: ProtocolError | None = None  # why we turned the peer away
        self._ended = False  # nothing comes or goes any more
        self._told = False  # `on_closed` was called
        self._drained: list[asyncio.Future[None]] = []
        self._finished: asyncio.Future[None] = self._loop.create_future()

    @abstractmethod
    def send(self, messages: Sequence[msgspec.Struct]) -> None:
        """See `Connection.send`."""

    @abstractmethod
    def close(self) -> None:
        """See `Connection.close`."""

    @abstractmethod
    def _end(self, reason: Exception | None) -> None:
        """End at once, for `reason`; the owner is told."""

    def _turn_away(self, failure: ProtocolError) -> None:
        """The peer is not understood: tell it, if there is a word for that, and end."""
        word = failure.last_word
        if isinstance(word, msgspec.Struct) and not self.closed:
            self._failure = failure
            self.send([word])
            self.close()
        else:
            self._end(failure)

    def _tell(self) -> None:
        """Call `on_closed`, once there is one, and never twice."""
        if not self._finished.done():
            self._finished.set_result(None)
        if self._told or self._on_closed is None:
            return
        self._told = True
        on_closed, self._on_messages, self._on_closed = self._on_closed, None, None
        on_closed(self._reason)

    def _wake_drained(self) -> None:
        waiting, self._drained = self._drained, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)

    async def drain(self) -> None:
        """See `Connection.drain`."""
        if self.unsent_nbytes <= DRAINED_NBYTES or self._ended:
            return
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._drained.append(waiter)
        await waiter

    async def wait_closed(self) -> None:
        """See `Connection.wait_closed`."""
        await asyncio.shield(self._finished)
