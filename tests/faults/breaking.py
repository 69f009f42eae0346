"""A way through which services are reached, and which breaks when a test says so."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from types import TracebackType
from typing import Self

PIECE_NBYTES = 1 << 16
RESET = struct.pack("ii", 1, 0)
"""For SO_LINGER: the connection ends by a reset, and not in good order."""


class Passage:
    """A port on this host that leads to another; on the loop that entered it.

    Nobody has a shortcut to it, so whoever comes this way comes by TCP.
    """

    def __init__(self, target: str) -> None:
        self._target = target
        self.address = ""
        self.nconnections = 0
        self._writers: dict[asyncio.StreamWriter, None] = {}
        self._pumps: dict[asyncio.Task[None], None] = {}

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._pass, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.address = f"tcp://127.0.0.1:{port}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
        await asyncio.gather(*self._pumps, return_exceptions=True)
        await self._server.wait_closed()

    def lead_to(self, target: str) -> None:
        """Whoever comes from now on is led there."""
        self._target = target

    def close(self) -> None:
        """Break all that pass, and let nobody in any more."""
        self._server.close()
        self.reset()

    def reset(self) -> int:
        """Break all that pass, both ways; how many connections that were."""
        broken, self._writers = list(self._writers), {}
        for writer in broken:
            with contextlib.suppress(OSError):  # it has ended before
                writer.get_extra_info("socket").setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, RESET
                )
            writer.transport.abort()
        return len(broken) // 2

    async def _pass(self, reader: asyncio.StreamReader, near: asyncio.StreamWriter) -> None:
        host, _, port = self._target.removeprefix("tcp://").rpartition(":")
        try:
            far_reader, far = await asyncio.open_connection(host, int(port))
        except OSError:
            near.transport.abort()
            return
        self.nconnections += 1
        self._writers[near] = self._writers[far] = None
        for source, sink in ((reader, far), (far_reader, near)):
            pump = asyncio.ensure_future(self._pump(source, sink))
            self._pumps[pump] = None
            pump.add_done_callback(self._pumps.pop)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while piece := await reader.read(PIECE_NBYTES):
                writer.write(piece)
                await writer.drain()
        self._writers.pop(writer, None)
        writer.close()
