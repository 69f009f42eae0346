"""The handshake over a socket: nothing else is read from a peer before it is done."""

from __future__ import annotations

import asyncio
import dataclasses
import secrets
import socket

from shoal.comms.errors import AuthenticationError, ProtocolError
from shoal.protocol.handshake import (
    HANDSHAKE_BYTES_MAX,
    NONCE_NBYTES,
    ClientHandshake,
    Keyring,
    ServerHandshake,
)


@dataclasses.dataclass(frozen=True, slots=True)
class Greeted:
    """How a handshake went well: what the peer proved, and the first bytes after it."""

    role: str
    leftover: bytes


class NotGreeted(OSError):
    """The peer went away before it said anything: it may be busy, and worth another try."""


async def greet(sock: socket.socket, keyring: Keyring, role: str, address: str) -> Greeted:
    """Prove `role` to the service that was dialled, and have it prove itself.

    The caller keeps the deadline and closes the socket if this raises.

    Raises:
        AuthenticationError: there is no key for the role, or one side refused the other.
        NotGreeted: the service closed at once.
        OSError: the connection broke.
    """
    loop = asyncio.get_running_loop()
    if keyring.key(role) is None:
        raise AuthenticationError.missing_key(address, role)
    handshake = ClientHandshake(keyring, role, secrets.token_bytes(NONCE_NBYTES))
    heard = False
    answer = handshake.start()
    while True:
        if answer:
            await loop.sock_sendall(sock, answer)
        if handshake.failure is not None:
            raise AuthenticationError.refused(address, handshake.failure)
        if handshake.done:
            return Greeted("server", handshake.leftover)
        try:
            received = await loop.sock_recv(sock, HANDSHAKE_BYTES_MAX)
        except ConnectionError as error:
            if heard:
                raise
            raise NotGreeted(str(error)) from error
        if not received:
            if heard:
                raise AuthenticationError.refused(
                    address, "it hung up during the handshake; its log may say why."
                )
            raise NotGreeted("it closed the connection before the handshake")
        heard = True
        answer = handshake.receive(received)


async def admit(sock: socket.socket, keyring: Keyring) -> Greeted:
    """Have a peer that was accepted prove who it is, and prove ourselves.

    The caller keeps the deadline and closes the socket if this raises.

    Raises:
        ProtocolError: it could not; the text is fit for a log.
        ConnectionError: it hung up.
        OSError: the connection broke.
    """
    loop = asyncio.get_running_loop()
    handshake = ServerHandshake(keyring, secrets.token_bytes(NONCE_NBYTES))
    while not handshake.ended:
        received = await loop.sock_recv(sock, HANDSHAKE_BYTES_MAX)
        if not received:
            raise ConnectionResetError("it hung up during the handshake")
        answer = handshake.receive(received)
        if answer:
            await loop.sock_sendall(sock, answer)
    if handshake.failure is not None:
        raise ProtocolError(f"it was told: {handshake.failure}")
    return Greeted(handshake.role, handshake.leftover)
