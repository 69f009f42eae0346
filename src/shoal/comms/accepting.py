"""A listener on stream sockets: accepts, has each peer prove itself, hands it on."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Callable, Sequence
from typing import Final

from shoal.comms import forks, tcp, unix
from shoal.comms.addresses import UNIX, Address
from shoal.comms.admission import Admission, AdmissionLimits, RateLimitedLog
from shoal.comms.errors import ProtocolError
from shoal.comms.greeting import admit
from shoal.comms.sockets import SocketConnection
from shoal.comms.transport import OnConnection
from shoal.protocol.codec import Decoder
from shoal.protocol.framing import FrameLimits
from shoal.protocol.handshake import Keyring

logger = logging.getLogger("shoal.comms")

ACCEPTS_MAX: Final = 64
"""Peers accepted per readiness callback."""
BACK_OFF_SECONDS: Final = 0.2
"""Pause after the system ran out of descriptors or memory: an accept would only fail again."""
_EXHAUSTED: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

DecoderForRole = Callable[[str], Decoder]


class SocketListener:
    """See `Listener`.  Owns its listening sockets; the first is the one it is known by."""

    def __init__(
        self,
        socks: Sequence[socket.socket],
        address: Address,
        keyring: Keyring,
        decoder_for_role: DecoderForRole,
        on_connection: OnConnection,
        *,
        limits: FrameLimits,
        admission: AdmissionLimits,
        silence_seconds: float,
    ) -> None:
        self.address = str(address)
        self._loop = asyncio.get_running_loop()
        self._parsed = address
        self._socks = list(socks)
        self._keyring = keyring
        self._decoder_for_role = decoder_for_role
        self._on_connection = on_connection
        self._limits = limits
        self._silence_seconds = silence_seconds
        self._admission = Admission(admission)
        self._log = RateLimitedLog()
        self._handshakes: dict[asyncio.Task[None], None] = {}
        self._closed = False
        for sock in self._socks:
            self._loop.add_reader(sock.fileno(), self._accept_from, sock)
        forks.belongs_to_this_process(self)

    def disown(self) -> None:
        """See `forks.Disowned`."""
        self._closed = True
        for sock in self._socks:
            sock.close()

    def __repr__(self) -> str:
        return f"<Listener at {self.address}, {'closed' if self._closed else 'open'}>"

    def _accept_from(self, listening: socket.socket) -> None:
        for _ in range(ACCEPTS_MAX):
            try:
                sock, where = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._back_off(listening, error)
                return
            self._welcome(sock, where)

    def _back_off(self, listening: socket.socket, error: OSError) -> None:
        why = error.strerror or str(error)
        hint = "Raise the limit of open files (ulimit -n)" if error.errno in _EXHAUSTED else ""
        self._log.warning(
            self._loop.time(), "accept", "Cannot accept at %s: %s. %s", self.address, why, hint
        )
        self._loop.remove_reader(listening.fileno())
        self._loop.call_later(BACK_OFF_SECONDS, self._resume, listening)

    def _resume(self, listening: socket.socket) -> None:
        if not self._closed:
            self._loop.add_reader(listening.fileno(), self._accept_from, listening)

    def _welcome(self, sock: socket.socket, where: tuple[str, int] | str | bytes) -> None:
        """Begin the handshake with a peer, if there is room for one more."""
        try:
            scheme, host, peer = self._identify(sock, where)
        except OSError:
            sock.close()  # it is gone already
            return
        if not self._admission.enter(host):
            sock.close()
            self._log.warning(
                self._loop.time(),
                host or peer,
                "Too many unauthenticated connections at %s: one from %s was closed",
                self.address,
                host or peer,
            )
            return
        handshake = self._loop.create_task(self._let_in(sock, scheme, host, peer))
        self._handshakes[handshake] = None
        handshake.add_done_callback(self._handshakes.pop)

    def _identify(
        self, sock: socket.socket, where: tuple[str, int] | str | bytes
    ) -> tuple[str, str, str]:
        """Set the socket up; its scheme, the host it is counted by, the peer's address."""
        if sock.family == socket.AF_UNIX:
            unix.set_up(sock)
            pid, uid = unix.peer_process(sock)
            host = "" if uid == os.geteuid() else f"uid {uid}"
            return UNIX, host, f"unix://@pid/{pid}/{sock.fileno()}"
        tcp.set_up(sock, self._silence_seconds)
        assert isinstance(where, tuple)
        return "tcp", where[0], tcp.peer_address(where)

    async def _let_in(self, sock: socket.socket, scheme: str, host: str, peer: str) -> None:
        """Have a peer prove itself, then hand it on; or close it, with one line in the log.

        One that goes away meanwhile is no reason for a warning.
        """
        why = ""
        try:
            async with asyncio.timeout(self._admission.limits.handshake_seconds):
                greeted = await admit(sock, self._keyring)
        except TimeoutError:
            why = "its handshake took too long"
        except ConnectionError as error:  # nobody is there to be refused: processes end like this
            logger.info("%s went away before it was let in at %s: %s", peer, self.address, error)
            sock.close()
            return
        except (ProtocolError, OSError) as error:
            why = str(error)
        except BaseException:
            sock.close()
            raise
        finally:
            self._admission.leave(host)
        if why:
            sock.close()
            self._log.warning(
                self._loop.time(),
                host or peer.rpartition("/")[0],
                "Not let in at %s: %s, because %s",
                self.address,
                peer,
                why,
            )
            return
        try:
            decoder = self._decoder_for_role(greeted.role)
            connection = SocketConnection(
                sock,
                scheme=scheme,
                role=greeted.role,
                peer_address=peer,
                local_address=self.address,
                decoder=decoder,
                limits=self._limits,
                leftover=greeted.leftover,
            )
            self._on_connection(connection)
        except Exception as error:
            sock.close()
            self._loop.call_exception_handler(
                {"message": f"{self!r} could not hand on {peer}", "exception": error}
            )

    def close(self) -> None:
        """See `Listener.close`."""
        if self._closed:
            return
        self._closed = True
        for sock in self._socks:
            self._loop.remove_reader(sock.fileno())
            sock.close()
        if self._parsed.scheme == UNIX:
            unix.unlink(self._parsed)
        for handshake in list(self._handshakes):
            handshake.cancel()

    async def wait_closed(self) -> None:
        """See `Listener.wait_closed`."""
        while self._handshakes:
            await asyncio.wait(list(self._handshakes))
