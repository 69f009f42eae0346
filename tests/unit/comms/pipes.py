"""A third party's way to carry messages: streams of asyncio, with a length before each frame."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from shoal.comms.errors import CommClosedError
from shoal.compat.addresses import local_host_for, parse_host_port
from shoal.compat.comm.backend import Backend
from shoal.compat.comm.core import BaseListener, Comm, Connector
from shoal.compat.serialising.streams import from_frames, to_frames

SCHEME = "pipe"


def _address(where: Any) -> str:
    return f"{SCHEME}://{where[0]}:{where[1]}"


class Pipe(Comm):
    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        peer: str,
        deserialize: bool,
    ) -> None:
        super().__init__(deserialize)
        self._reader, self._writer, self._peer = reader, writer, peer
        self._local = _address(writer.get_extra_info("sockname"))
        self._closed = False

    @property
    def local_address(self) -> str:
        return self._local

    @property
    def peer_address(self) -> str:
        return self._peer

    async def read(self, deserializers: Any = None) -> Any:
        try:
            nframes = int.from_bytes(await self._reader.readexactly(8), "little")
            frames = []
            for _ in range(nframes):
                nbytes = int.from_bytes(await self._reader.readexactly(8), "little")
                frames.append(bytearray(await self._reader.readexactly(nbytes)))
        except (asyncio.IncompleteReadError, OSError) as error:
            self.abort()
            raise CommClosedError("the pipe is cut") from error
        return await from_frames(frames, self.deserialize, deserializers)

    async def write(self, msg: Any, serializers: Any = None, on_error: Any = None) -> int:
        if self._closed:
            raise CommClosedError("the pipe is closed")
        frames = [memoryview(frame) for frame in await to_frames(msg, serializers=serializers)]
        self._writer.write(len(frames).to_bytes(8, "little"))
        for frame in frames:
            self._writer.write(frame.nbytes.to_bytes(8, "little") + frame)
        try:
            await self._writer.drain()
        except OSError as error:
            raise CommClosedError("the pipe is cut") from error
        return sum(frame.nbytes for frame in frames)

    async def close(self) -> None:
        self.abort()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    def abort(self) -> None:
        self._closed = True
        self._writer.close()

    def closed(self) -> bool:
        return self._closed


class PipeConnector(Connector):
    async def connect(self, address: str, deserialize: bool = True, **_: Any) -> Pipe:
        host, port = parse_host_port(address)
        reader, writer = await asyncio.open_connection(host, port)
        return Pipe(reader, writer, f"{SCHEME}://{address}", deserialize)


class PipeListener(BaseListener):
    introduces = True

    def __init__(self, loc: str, handle_comm: Callable[[Any], Any], deserialize: bool) -> None:
        super().__init__()
        self._where = parse_host_port(loc, 0)
        self._handle_comm, self._deserialize = handle_comm, deserialize
        self._server: asyncio.Server

    async def start(self) -> None:
        host, port = self._where
        self._server = await asyncio.start_server(self._accepted, host or "127.0.0.1", port)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = _address(writer.get_extra_info("peername"))
        pipe = Pipe(reader, writer, peer, self._deserialize)
        try:
            if self.introduces:
                await self.on_connection(pipe)
            await self._handle_comm(pipe)
        except CommClosedError:
            return  # it could not prove who it is, or went
        except asyncio.CancelledError:
            pipe.abort()  # the loop ends

    def stop(self) -> None:
        self._server.close()
        self.abort_handshaking_comms()

    @property
    def listen_address(self) -> str:
        return _address(self._server.sockets[0].getsockname())

    contact_address = listen_address


class PipeBackend(Backend):
    listener_class = PipeListener

    def get_connector(self) -> PipeConnector:
        return PipeConnector()

    def get_listener(self, loc: str, handle_comm: Any, deserialize: bool, **_: Any) -> PipeListener:
        return self.listener_class(loc, handle_comm, deserialize)

    def get_address_host(self, loc: str) -> str:
        return parse_host_port(loc)[0]

    def get_address_host_port(self, loc: str) -> tuple[str, int]:
        return parse_host_port(loc)

    def resolve_address(self, loc: str) -> str:
        return loc

    def get_local_address_for(self, loc: str) -> str:
        return f"{local_host_for(loc)}:0"
