"""A comm over a connection of ours, and what listens for such comms."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import weakref
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Final

import dask.config
from dask.utils import parse_timedelta

from shoal.comms.endpoints import connect
from shoal.comms.endpoints import listen as listen_for_connections
from shoal.comms.errors import AuthenticationError, CommClosedError
from shoal.comms.transport import Connection
from shoal.comms.transport import Listener as ConnectionListener
from shoal.compat.comm import handshaking
from shoal.compat.comm.core import BaseListener, Comm, Connector, handled
from shoal.compat.comm.errors import NotEncrypted
from shoal.compat.comm.keys import keyrings_for
from shoal.compat.comm.mailbox import Mailbox
from shoal.protocol.codec import Decoder
from shoal.protocol.framing import FrameLimits
from shoal.protocol.freestanding import ON_SOCKETS
from shoal.protocol.handshake import CLIENT, Keyring

logger = logging.getLogger("shoal.comms")

LIMITS: Final = FrameLimits(nbuffers_max=1 << 20)
"""A message has a few frames for each value that is marked, and may have many of them."""
_DECODER: Final = Decoder(ON_SOCKETS)


class Carried(Comm):
    """A comm over a connection whose peer has proved to hold the token."""

    def __init__(
        self, stream: Connection, local_addr: str, peer_addr: str, deserialize: bool = True
    ) -> None:
        """`stream`: the connection; it is started here."""
        super().__init__(deserialize)
        self.stream = stream
        self._local_address, self._peer_address = local_addr, peer_addr
        self._mailbox = Mailbox(stream)
        self._finalizer = weakref.finalize(
            self, _let_go, self._mailbox, asyncio.get_running_loop(), repr(self)
        )
        self._finalizer.atexit = False
        handshaking.has_proved(self, stream.role)

    @property
    def local_address(self) -> str:
        """Our own end."""
        return self._local_address

    @property
    def peer_address(self) -> str:
        """The other."""
        return self._peer_address

    async def close(self) -> None:
        """See `Comm.close`; returns when the peer has seen it, or a second later."""
        self._finalizer.detach()
        await self._mailbox.close()

    def abort(self) -> None:
        """See `Comm.abort`."""
        self._finalizer.detach()
        self._mailbox.abort()

    def closed(self) -> bool:
        """See `Comm.closed`."""
        return self.stream.closed


def _let_go(mailbox: Mailbox, loop: asyncio.AbstractEventLoop, shown: str) -> None:
    """Nobody has the comm any more: nobody could close it either."""
    if not mailbox.connection.closed and not loop.is_closed():
        logger.warning("Closing dangling comm %s", shown)
        loop.call_soon_threadsafe(mailbox.abort)


class CarriedConnector(Connector):
    """Makes comms of one scheme; what kind, its class says."""

    prefix: ClassVar[str]
    comm_class: ClassVar[type[Carried]]
    refuses_encryption: ClassVar[bool] = True

    async def connect(self, address: str, deserialize: bool = True, **connection_args: Any) -> Comm:
        """See `Connector.connect`; other arguments are for other schemes.

        Raises:
            NotEncrypted: `require_encryption` is among the arguments.
        """
        where = f"{self.prefix}{address}"
        if self.refuses_encryption:
            refuse_encryption(where, connection_args)
        timeout = dask.config.get("distributed.comm.timeouts.connect", "30s")
        seconds = float(parse_timedelta(timeout, default="seconds"))
        connection = await _connect(where, seconds)
        return self.comm_class(
            connection, connection.local_address, connection.peer_address, deserialize
        )


async def _connect(where: str, timeout_seconds: float) -> Connection:
    """A connection by the first of our keys that is not refused; `timeout_seconds`: for each."""
    *others, last = keyrings_for(where)
    for keyring in others:
        with contextlib.suppress(AuthenticationError):
            return await _connect_by(keyring, where, timeout_seconds)
    return await _connect_by(last, where, timeout_seconds)


async def _connect_by(keyring: Keyring, where: str, timeout_seconds: float) -> Connection:
    return await connect(
        where, keyring, CLIENT, _DECODER, timeout_seconds=timeout_seconds, limits=LIMITS
    )


def refuse_encryption(where: str, arguments: dict[str, Any]) -> None:
    """Raises NotEncrypted if the arguments of a connection require it."""
    if arguments.get("require_encryption"):
        raise NotEncrypted(where)


class CarriedListener(BaseListener):
    """Listens for connections of ours, and makes comms of them."""

    prefix: ClassVar[str]
    comm_class: ClassVar[type[Carried]]
    refuses_encryption: ClassVar[bool] = True

    def __init__(
        self,
        address: str,
        comm_handler: Callable[[Comm], Any],
        deserialize: bool = True,
        **connection_args: Any,
    ) -> None:
        """`address` has no scheme; other arguments are for other schemes.

        Raises:
            NotEncrypted: `require_encryption` is among the arguments.
        """
        super().__init__()
        if self.refuses_encryption:
            refuse_encryption(f"{self.prefix}{address}", connection_args)
        self._asked = address
        self.comm_handler = comm_handler
        self.deserialize = deserialize
        self._access: handshaking.Access | None = None
        self._listening: ConnectionListener | None = None
        self._welcoming: dict[asyncio.Task[None], None] = {}

    def __repr__(self) -> str:
        where = self.listen_address if self._listening is not None else "not started"
        return f"<{type(self).__name__} {where}>"

    @abstractmethod
    async def _bind(self) -> dict[str, Any]:
        """What `shoal.comms.listen` is given beside keys and callbacks."""

    async def start(self) -> None:
        """See `Listener.start`.

        Raises:
            ListenError: the address is taken, or not ours.
        """
        if self._listening is not None:
            return
        self._access = handshaking.Access()
        self._listening = await listen_for_connections(
            keyring=self._access.keyring,
            decoder_for_role=lambda role: _DECODER,
            on_connection=self._on_connection,
            limits=LIMITS,
            **await self._bind(),
        )
        try:
            self._access.publish(self._listening.address)
        except BaseException:
            self._listening.close()
            raise

    def stop(self) -> None:
        """See `Listener.stop`; who is just getting acquainted is dropped."""
        if self._listening is not None:
            self._listening.close()
        if self._access is not None:
            self._access.withdraw()
        self.abort_handshaking_comms()

    def _on_connection(self, connection: Connection) -> None:
        comm = self.comm_class(
            connection, connection.local_address, connection.peer_address, self.deserialize
        )
        welcoming = asyncio.get_running_loop().create_task(self._handle(comm))
        self._welcoming[welcoming] = None
        welcoming.add_done_callback(self._welcoming.pop)

    async def _handle(self, comm: Comm) -> None:
        """Get acquainted, then let the program have the comm."""
        try:
            await self.on_connection(comm)
        except CommClosedError as error:
            logger.info("Connection from %s closed before handshake completed: %s",
                        comm.peer_address, error)  # fmt: skip
            return
        await handled(self, self.comm_handler, comm)

    def _started(self) -> ConnectionListener:
        if self._listening is None:
            raise ValueError("invalid operation on non-started listener: await it first")
        return self._listening

    @property
    def contact_address(self) -> str:
        """See `Listener.contact_address`."""
        return self._started().address

    @property
    def listen_address(self) -> str:
        """See `Listener.listen_address`."""
        return self.contact_address
