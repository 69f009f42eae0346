"""What came on a connection and was not read yet, and how much of ours the peer has yet to read.

A connection hands messages over as they come.  Programs read when they like, so the two ends tell
each other what they have taken, and whoever writes waits while too much is on its way.
"""

from __future__ import annotations

import asyncio
import collections
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from shoal.comms.ending import DRAINED_NBYTES
from shoal.comms.errors import CommClosedError
from shoal.comms.transport import Connection
from shoal.protocol.freestanding import Handed, Parcel, Taken

WINDOW_NBYTES: Final = 64 << 20
"""How much may be on its way and unread before the next message waits."""
TOLD_NBYTES: Final = WINDOW_NBYTES // 4
"""After so much was read the peer is told."""
MESSAGE_NBYTES: Final = 512
"""What a message counts for beside its bytes: a queue of small ones takes memory as well."""


class Mailbox:
    """Both directions of one connection, message by message.  Belongs to one event loop."""

    def __init__(self, connection: Connection) -> None:
        """`connection` is started here, and nobody else's from now on."""
        self.connection = connection
        self.ended = False
        self._reason: Exception | None = None
        self._came: collections.deque[tuple[Any, int]] = collections.deque()
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._nbytes_read = 0  # and the peer was not told
        self._nbytes_out = 0  # and the peer has not said that it was read
        connection.start(self._on_messages, self._on_closed)

    def _on_messages(self, messages: list[msgspec.Struct], buffers: list[Any]) -> None:
        for message in messages:
            if isinstance(message, Parcel):
                self._came.append((buffers, MESSAGE_NBYTES + sum(map(len, buffers))))
            elif isinstance(message, Handed):
                self._came.append((message.value, MESSAGE_NBYTES))
            elif isinstance(message, Taken):
                self._nbytes_out -= message.nbytes
                self._room.set()
        if self._came:
            self._news.set()

    def _on_closed(self, reason: Exception | None) -> None:
        self.ended, self._reason = True, reason
        self._news.set()
        self._room.set()

    async def take(self) -> Any:
        """The next message: its frames, or itself if it came by reference.

        What came before the peer's end can still be read.

        Raises:
            CommClosedError: there is no more.
        """
        while not self._came:
            if self.ended or self.connection.closed:
                raise self._closed()
            self._news.clear()
            await self._news.wait()
        message, nbytes = self._came.popleft()
        self._nbytes_read += nbytes
        if self._nbytes_read >= TOLD_NBYTES and not self.connection.closed:
            self.connection.send([Taken(self._nbytes_read)])
            self._nbytes_read = 0
        return message

    async def put(self, frames: Sequence[Any], nbytes: int) -> None:
        """Send a message's frames, which may be changed once this has returned.

        Raises:
            CommClosedError: the connection has ended.
        """
        await self._wait_for_room()
        self._nbytes_out += MESSAGE_NBYTES + nbytes
        self.connection.send_with_buffers(Parcel(), _with_own_end(frames))
        await self.connection.drain()

    async def hand(self, value: Any) -> None:
        """Give a message by reference, within the process.

        Raises:
            CommClosedError: the connection has ended.
        """
        await self._wait_for_room()
        self._nbytes_out += MESSAGE_NBYTES
        self.connection.send([Handed(value)])

    async def _wait_for_room(self) -> None:
        while self._nbytes_out > WINDOW_NBYTES and not (self.ended or self.connection.closed):
            self._room.clear()
            await self._room.wait()
        if self.ended or self.connection.closed:
            raise self._closed()

    def _closed(self) -> CommClosedError:
        if isinstance(self._reason, CommClosedError):
            return self._reason
        closed = CommClosedError.already(self.connection.peer_address)
        closed.__cause__ = self._reason
        return closed

    async def close(self) -> None:
        """Send what is under way, and end; nothing can be read any more."""
        self._give_up()
        self.connection.close()
        await self.connection.wait_closed()

    def abort(self) -> None:
        """End at once."""
        self._give_up()
        self.connection.abort()

    def _give_up(self) -> None:
        self._came.clear()
        self._news.set()
        self._room.set()


def _with_own_end(frames: Sequence[Any]) -> list[Any]:
    """The frames; of those that have the last bytes there are copies.

    `drain` returns when nearly all is the system's.  What may still be ours then must not be the
    program's memory, which it is free to change.
    """
    kept = list(frames)
    nbytes = 0
    for at in range(len(kept) - 1, -1, -1):
        if nbytes > DRAINED_NBYTES:
            break
        view = memoryview(kept[at])
        nbytes += view.nbytes
        if type(view.obj) is not bytes:
            kept[at] = view.tobytes()
    return kept
