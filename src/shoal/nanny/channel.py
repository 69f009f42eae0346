"""What is said between a process and whoever has started it: lines of JSON, and its stderr.

What comes and what goes is a line for each message; which words there are is a table of whoever
listens.  The end of the channel is, for each side, the end of the other.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

LAST_LINES: Final = 20


class Channel:
    """Our end of two pairs of sockets; the other ends become the process's stdin and stderr.

    `let_go` and `close` may be called from any thread.
    """

    def __init__(self) -> None:
        self._words, self.their_words = socket.socketpair()
        self._errors, self.their_errors = socket.socketpair()
        self._words.setblocking(False)
        self._errors.setblocking(False)
        self._last: deque[bytes] = deque(maxlen=LAST_LINES)
        self._turn = asyncio.Lock()  # a second writer would push the first one out of its line
        self._is_closed = False

    def close_theirs(self) -> None:
        """The process has its own copies by now, or was not started."""
        self.their_words.close()
        self.their_errors.close()

    async def say(self, text: bytes) -> None:
        """Send some lines, after those that are being sent; nothing happens if nobody is there."""
        with contextlib.suppress(OSError):
            async with self._turn:
                await asyncio.get_running_loop().sock_sendall(self._words, text)

    def let_go(self) -> None:
        """Say nothing more, by which the process knows that it shall close."""
        # Where a loop still reads, a closed socket stays open, and in a fork it is the parent's.
        if not self._is_closed:
            with contextlib.suppress(OSError):  # it is gone already
                self._words.shutdown(socket.SHUT_WR)

    async def listen(self, hear: Callable[[dict[str, Any]], None]) -> None:
        """Have `hear` told each message, until the process falls silent for ever."""
        async for line in self._lines_of(self._words):
            if line.endswith(b"\n"):  # else it ended in the middle of it
                hear(json.loads(line))

    async def read_errors(self, is_running: Callable[[], bool]) -> None:
        """Keep what it writes to stderr until it is ready; from then on it writes to ours."""
        async for line in self._lines_of(self._errors):
            self._last.append(line.removesuffix(b"\n"))
        if is_running() and self._last:
            _write_to_stderr(b"\n".join(self._last) + b"\n")  # a warning on the way, perhaps
            self._last.clear()

    async def _lines_of(self, sock: socket.socket) -> AsyncIterator[bytes]:
        """Each line with its end; the last one may have none.  Cost: that of the bytes."""
        loop = asyncio.get_running_loop()
        pieces: list[bytes] = []  # of a line whose end has not come yet
        while piece := await _receive(loop, sock):
            *ends, rest = piece.split(b"\n")
            for end in ends:
                yield b"".join((*pieces, end, b"\n"))
                pieces.clear()
            if rest:
                pieces.append(rest)
        if pieces:
            yield b"".join(pieces)

    def last_lines(self) -> str:
        """The end of what it has written to stderr before it was ready."""
        return b"\n".join(self._last).decode(errors="replace").strip()

    def close(self) -> None:
        """Let go of both sockets.  Safe to call again."""
        self._is_closed = True
        self._words.close()
        self._errors.close()


async def _receive(loop: asyncio.AbstractEventLoop, sock: socket.socket) -> bytes:
    """Some bytes; none if the other end is gone, however it went."""
    try:
        return await loop.sock_recv(sock, 1 << 16)
    except OSError:
        return b""


def _write_to_stderr(text: bytes) -> None:
    with contextlib.suppress(OSError):
        os.write(2, text)
