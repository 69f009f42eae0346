"""`distributed.comm.tcp`: comms over TCP."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn

from shoal.comms import tcp
from shoal.comms.addresses import TCP as TCP_SCHEME
from shoal.comms.addresses import Address, parse_address
from shoal.comms.errors import CommClosedError
from shoal.compat import addresses
from shoal.compat.comm.backend import Backend
from shoal.compat.comm.carried import Carried, CarriedConnector, CarriedListener
from shoal.compat.comm.core import Comm
from shoal.compat.comm.errors import FatalCommClosedError
from shoal.compat.serialising.memory import BIG_BYTES_SHARD_SIZE
from shoal.compat.serialising.streams import from_frames, to_frames


class TCP(Carried):
    """A comm over TCP."""

    max_shard_size: ClassVar[int] = BIG_BYTES_SHARD_SIZE
    """Bytes of the longest frame."""

    async def read(self, deserializers: Any = None) -> Any:
        """See `Comm.read`.  One that is cancelled closes the comm: what it waited for would be
        the answer to somebody else's question."""
        try:
            frames = await self._mailbox.take()
        except BaseException:
            self.abort()
            raise
        try:
            return await from_frames(
                frames,
                deserialize=self.deserialize,
                deserializers=deserializers,
                allow_offload=self.allow_offload,
            )
        except EOFError as error:
            self.abort()
            raise CommClosedError.lost(self.peer_address, "a message was cut short") from error
        except asyncio.CancelledError:
            self.abort()
            raise

    async def write(self, msg: Any, serializers: Any = None, on_error: Any = "message") -> int:
        """See `Comm.write`.  What was cut off in the middle closes the comm."""
        if self.closed():
            raise CommClosedError.already(self.peer_address)
        frames = await framed(self, msg, serializers, on_error)
        nbytes = sum([memoryview(frame).nbytes for frame in frames])
        try:
            await self._mailbox.put(frames, nbytes)
        except BaseException:
            self.abort()
            raise
        return nbytes


class TCPConnector(CarriedConnector):
    """Dials."""

    prefix = "tcp://"
    comm_class = TCP


def place(address: str, default_host: str | None, default_port: int) -> Address:
    """Where to listen for ``host:port``, with the defaults for what it does not say."""
    asked = parse_address(f"tcp://{address}", default_port)
    host = asked.host if asked.host or default_host is None else default_host
    return Address("tcp", host=host, port=asked.port)


async def framed(comm: Any, message: Any, serializers: Any, on_error: Any) -> list[Any]:
    """The frames of what a comm of ours with hosts and ports is told to write."""
    return await to_frames(
        message,
        allow_offload=comm.allow_offload,
        serializers=serializers,
        on_error=on_error or "message",
        context={
            "sender": comm.local_info,
            "recipient": comm.remote_info,
            **comm.handshake_options,
        },
        frame_split_size=comm.max_shard_size,
    )


class TCPListener(CarriedListener):
    """Listens at ``host:port``; no host means all interfaces, no port any that is free."""

    prefix = "tcp://"
    comm_class = TCP

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
        """See `CarriedListener`.

        Args:
            allow_offload: False: what comes is read on the loop, however large.
            default_host, default_port: where `address` says none.
        """
        super().__init__(address, comm_handler, deserialize, **connection_args)
        self.allow_offload = allow_offload
        self._where = place(address, default_host, default_port)
        self._bound: Address | None = None

    async def _bind(self) -> dict[str, Any]:
        sock = await tcp.bind(self._where)
        self._bound = tcp.bound_address(sock)
        known_as = "" if self._where.is_wildcard else f"tcp://[{self._where.host}]:0"
        return {"address": known_as, "sock": sock, "shortcut": False}

    async def _handle(self, comm: Comm) -> None:
        comm.allow_offload = self.allow_offload
        await super()._handle(comm)

    @property
    def listen_address(self) -> str:
        """What it is bound to, which may be a wildcard."""
        self._started()
        return str(self._bound)

    def get_host_port(self) -> tuple[str, int]:
        """Host and port that it is bound to."""
        self._started()
        assert self._bound is not None
        return self._bound.host, self._bound.port


class BaseTCPBackend(Backend):
    """What backends of schemes with hosts and ports have in common."""

    stands_on = TCP_SCHEME

    _connector_class: ClassVar[Any]
    _listener_class: ClassVar[Any]

    def get_connector(self) -> Any:
        """See `Backend.get_connector`."""
        return self._connector_class()

    def get_listener(
        self,
        loc: str,
        handle_comm: Callable[[Comm], Any],
        deserialize: bool,
        **connection_args: Any,
    ) -> Any:
        """See `Backend.get_listener`."""
        return self._listener_class(loc, handle_comm, deserialize, **connection_args)

    def get_address_host(self, loc: str) -> str:
        """See `Backend.get_address_host`."""
        return addresses.parse_host_port(loc, 0)[0]

    def get_address_host_port(self, loc: str) -> tuple[str, int]:
        """See `Backend.get_address_host_port`."""
        return addresses.parse_host_port(loc)

    def resolve_address(self, loc: str) -> str:
        """See `Backend.resolve_address`."""
        return addresses.resolve_address(f"tcp://{loc}").removeprefix("tcp://")

    def get_local_address_for(self, loc: str) -> str:
        """See `Backend.get_local_address_for`."""
        return addresses.local_host_for(loc)


class TCPBackend(BaseTCPBackend):
    """Carries ``tcp``."""

    _connector_class = TCPConnector
    _listener_class = TCPListener


def get_stream_address(comm: Any) -> str:
    """The address of a comm's own end.

    Raises:
        OSError: it has ended.
    """
    if comm.closed():
        raise CommClosedError.already(comm.peer_address)
    return str(comm.local_address)


def convert_stream_closed_error(obj: Any, exc: BaseException) -> NoReturn:
    """Raise what tornado says of a stream that has ended as comms say it.

    Args:
        obj: the comm, which the text names.
        exc: a StreamClosedError; the error behind it, if it has one, is what is told.

    Raises:
        FatalCommClosedError: the peer does not know who has signed our certificate.
        CommClosedError: anything else.
    """
    cause = getattr(exc, "real_error", None) or exc
    kind = CommClosedError
    if isinstance(cause, ssl.SSLError) and "UNKNOWN_CA" in str(cause.reason):
        kind = FatalCommClosedError
    raise kind(f"in {obj}: {type(cause).__name__}: {cause}") from cause
