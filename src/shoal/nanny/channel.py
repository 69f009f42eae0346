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
from collections.abc import Callable
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
        self._lines: deque[bytes] = deque(maxlen=LAST_LINES)
        self._is_closed = False

    def close_theirs(self) -> None:
        """The process has its own copies by now, or was not started."""
        self.their_words.close()
        self.their_errors.close()

    async def say(self, text: bytes) -> None:
        """Send some lines; nothing happens if nobody is there any more."""
        with contextlib.suppress(OSError):
            await asyncio.get_running_loop().sock_sendall(self._words, text)

    def let_go(self) -> None:
        """Say nothing more, by which the process knows that it shall close."""
        # Where a loop still reads, a closed socket stays open, and in a fork it is the parent's.
        if not self._is_closed:
            with contextlib.suppress(OSError):  # it is gone already
                self._words.shutdown(socket.SHUT_WR)

    async def listen(self, hear: Callable[[dict[str, Any]], None]) -> None:
        """Have `hear` told each message, until the process falls silent for ever."""
        loop = asyncio.get_running_loop()
        said = b""
        while piece := await _receive(loop, self._words):
            *lines, said = (said + piece).split(b"\n")
            for line in lines:
                hear(json.loads(line))

    async def read_errors(self, is_running: Callable[[], bool]) -> None:
        """Keep what it writes to stderr until it is ready; from then on it writes to ours."""
        loop = asyncio.get_running_loop()
        rest = b""
        while piece := await _receive(loop, self._errors):
            *lines, rest = (rest + piece).split(b"\n")
            self._lines.extend(lines)
        if rest:
            self._lines.append(rest)
        if is_running() and self._lines:
            _write_to_stderr(b"\n".join(self._lines) + b"\n")  # a warning on the way, perhaps
            self._lines.clear()

    def last_lines(self) -> str:
        """The end of what it has written to stderr before it was ready."""
        return b"\n".join(self._lines).decode(errors="replace").strip()

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
