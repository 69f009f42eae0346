"""`distributed.comm.tcp`, encrypted: comms over TLS, for programs' own; a cluster's are not yet.

The certificates say whom to talk to; the token is proved in messages, as over a third party's comm.
A message is the number of its frames, their lengths, and the frames.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import Callable
from typing import Any, ClassVar, Final

from shoal import config
from shoal.comms import tcp
from shoal.comms.addresses import Address, parse_address
from shoal.comms.errors import CommClosedError, ListenError, ProtocolError
from shoal.comms.sockets import FLUSH_SECONDS, LINGER_SECONDS
from shoal.compat.comm import handshaking
from shoal.compat.comm.carried import LIMITS
from shoal.compat.comm.core import BaseListener, Comm, Connector, handled
from shoal.compat.comm.errors import FatalCommClosedError, NoContext
from shoal.compat.comm.tcp import BaseTCPBackend, framed, place
from shoal.compat.serialising.memory import BIG_BYTES_SHARD_SIZE
from shoal.compat.serialising.streams import from_frames

PREFIX: Final = "tls://"
CLOSE_SECONDS: Final = FLUSH_SECONDS + LINGER_SECONDS
"""How long the peer has to take what is queued, and to say that it has seen the end."""
STRANGERS_NBYTES_MAX: Final = 1 << 16
"""The longest message of a peer that has not proved to hold the token."""
_NUMBER: Final = struct.Struct("<Q")


class TLS(Comm):
    """A comm over TLS."""

    max_shard_size: ClassVar[int] = BIG_BYTES_SHARD_SIZE
    """Bytes of the longest frame."""

    def __init__(
        self, stream: Any, local_addr: str, peer_addr: str, deserialize: bool = True
    ) -> None:
        """`stream`: a pair of asyncio's, to read and to write."""
        super().__init__(deserialize)
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter
        self._reader, self._writer = stream
        self._local_address, self._peer_address = local_addr, peer_addr
        self._closed = False
        self._writing = asyncio.Lock()

    @property
    def local_address(self) -> str:
        """Our own end."""
        return self._local_address

    @property
    def peer_address(self) -> str:
        """The other."""
        return self._peer_address

    @property
    def extra_info(self) -> dict[str, Any]:
        """The peer's certificate, and the cipher."""
        return {name: self._writer.get_extra_info(name) for name in ("peercert", "cipher")}

    async def read(self, deserializers: Any = None) -> Any:
        """See `Comm.read`.  One that is cancelled closes the comm."""
        try:
            frames = await self._read_frames()
        except (asyncio.IncompleteReadError, OSError) as error:
            self.abort()
            raise CommClosedError.lost(self.peer_address, str(error) or "it ended") from error
        except BaseException:
            self.abort()
            raise
        return await from_frames(
            frames,
            deserialize=self.deserialize,
            deserializers=deserializers,
            allow_offload=self.allow_offload,
        )

    async def _read_frames(self) -> list[bytearray]:
        (nframes,) = _NUMBER.unpack(await self._reader.readexactly(_NUMBER.size))
        trusted = bool(handshaking.proved_role(self))
        if nframes > (LIMITS.nbuffers_max if trusted else 16):
            raise ProtocolError(f"a message of {nframes:,} frames is none")
        lengths = struct.unpack(
            f"<{nframes}Q", await self._reader.readexactly(_NUMBER.size * nframes)
        )
        limit = LIMITS.buffer_bytes_max if trusted else STRANGERS_NBYTES_MAX
        if sum(lengths) > limit:
            raise ProtocolError(f"a message of {sum(lengths):,} bytes is too long")
        return [bytearray(await self._reader.readexactly(nbytes)) for nbytes in lengths]

    async def write(self, msg: Any, serializers: Any = None, on_error: Any = "message") -> int:
        """See `Comm.write`."""
        if self._closed:
            raise CommClosedError.already(self.peer_address)
        frames = await framed(self, msg, serializers, on_error)
        views = [memoryview(frame).cast("B") for frame in frames]
        head = struct.pack(f"<{len(views) + 1}Q", len(views), *map(len, views))
        try:
            async with self._writing:
                self._writer.write(head)
                for view in views:
                    self._writer.write(view)
                    await self._writer.drain()
        except OSError as error:
            self.abort()
            raise CommClosedError.lost(self.peer_address, str(error)) from error
        except BaseException:
            self.abort()
            raise
        return sum(map(len, views))

    async def close(self) -> None:
        """See `Comm.close`."""
        self._closed = True
        self._writer.close()
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._writer.wait_closed()
        self._writer.transport.abort()

    def abort(self) -> None:
        """See `Comm.abort`."""
        self._closed = True
        self._writer.transport.abort()

    def closed(self) -> bool:
        """See `Comm.closed`."""
        return self._closed or self._writer.transport.is_closing()


def _address(where: Any) -> str:
    return PREFIX + str(Address("tcp", host=where[0], port=where[1])).removeprefix("tcp://")


def _context(arguments: dict[str, Any]) -> ssl.SSLContext:
    """The context among the arguments of a connection; raises NoContext."""
    context = arguments.get("ssl_context")
    if not isinstance(context, ssl.SSLContext):
        raise NoContext
    return context


class TLSConnector(Connector):
    """Dials."""

    prefix = PREFIX
    encrypted = True
    comm_class = TLS

    async def connect(self, address: str, deserialize: bool = True, **connection_args: Any) -> TLS:
        """See `Connector.connect`.

        Raises:
            NoContext: there is no `ssl_context` among the arguments (a TypeError).
            FatalCommClosedError: the certificates don't fit.
        """
        asked = parse_address(f"tcp://{address}")
        context = _context(connection_args)
        name = connection_args.get("server_hostname")
        sock = await _dial(asked)
        try:
            stream = await asyncio.open_connection(
                sock=sock, ssl=context, server_hostname=name or asked.host
            )
        except ssl.SSLError as error:
            raise FatalCommClosedError(
                f"Cannot connect to {PREFIX}{address}: {error}. Check that both sides have "
                "certificates of the same authority."
            ) from error
        local = _address(stream[1].get_extra_info("sockname"))
        return self.comm_class(stream, local, f"{PREFIX}{address}", deserialize)


async def _dial(asked: Address) -> socket.socket:
    """A connected socket, that notices a peer which vanished without a word; raises OSError."""
    silence_seconds = config.read(config.Comm).silence_seconds
    failure: OSError | None = None
    for family, where in await tcp.resolve(asked.host, asked.port):
        try:
            return await tcp.dial(family, where, silence_seconds)
        except OSError as error:
            failure = failure or error
    raise failure or OSError("its host has no address")


class TLSListener(BaseListener):
    """Listens at ``host:port``; no host means all interfaces, no port any that is free."""

    prefix = PREFIX
    encrypted = True
    comm_class = TLS

    def __init__(
        self,
        address: str,
        comm_handler: Callable[[Comm], Any],
        deserialize: bool = True,
        allow_offload: bool = True,
        default_host: str | None = None,
        default_port: int = 0,
        **connection_args: Any,
    ) -> None:
        """See `TCPListener`.

        Raises:
            NoContext: there is no `ssl_context` among the arguments (a TypeError).
        """
        super().__init__()
        self._where = place(address, default_host, default_port)
        self._context = _context(connection_args)
        self.comm_handler = comm_handler
        self.deserialize, self.allow_offload = deserialize, allow_offload
        self._bound: Address | None = None
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """See `Listener.start`; raises ListenError."""
        sock = await tcp.bind(self._where)
        self._bound = tcp.bound_address(sock)
        try:
            self._server = await asyncio.start_server(
                self._accepted,
                sock=sock,
                ssl=self._context,
                ssl_handshake_timeout=config.read(config.Comm).handshake_seconds,
            )
        except OSError as error:
            sock.close()
            raise ListenError.failed(self.listen_address, str(error)) from error
        handshaking.keyring_of(self)  # from now on who dials can know what is asked for

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tcp.set_up(writer.get_extra_info("socket"), config.read(config.Comm).silence_seconds)
        peer = _address(writer.get_extra_info("peername"))
        comm = self.comm_class((reader, writer), self.contact_address, peer, self.deserialize)
        comm.allow_offload = self.allow_offload
        try:
            await self.on_connection(comm)
        except CommClosedError:
            return  # it could not prove who it is, or went
        await handled(self, self.comm_handler, comm)

    def stop(self) -> None:
        """See `Listener.stop`."""
        if self._server is not None:
            self._server.close()
        handshaking.forget(self)
        self.abort_handshaking_comms()

    @property
    def listen_address(self) -> str:
        """What it is bound to, which may be a wildcard."""
        return _address(self.get_host_port())

    @property
    def contact_address(self) -> str:
        """Where others reach it."""
        known_as = "" if self._where.is_wildcard else self._where.host
        self.get_host_port()
        assert self._bound is not None
        contact = tcp.contact_address(self._bound, known_as)
        return _address((contact.host, contact.port))

    def get_host_port(self) -> tuple[str, int]:
        """Host and port that it is bound to; raises ValueError if it was not started."""
        if self._bound is None:
            raise ValueError("invalid operation on non-started listener: await it first")
        return self._bound.host, self._bound.port


class TLSBackend(BaseTCPBackend):
    """Carries ``tls`` between programs' own ends."""

    stands_on = ""
    for_clusters = False

    _connector_class = TLSConnector
    _listener_class = TLSListener
