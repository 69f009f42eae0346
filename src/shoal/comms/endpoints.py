"""`connect` and `listen`: one face for every scheme."""

from __future__ import annotations

import asyncio
import os
import socket
from typing import Final

from shoal import config
from shoal.comms import inproc, tcp, unix
from shoal.comms.accepting import DecoderForRole, SocketListener
from shoal.comms.addresses import (
    INPROC,
    TCP,
    UNIX,
    Address,
    is_own_host,
    parse_address,
    shortcut_names,
)
from shoal.comms.admission import AdmissionLimits
from shoal.comms.backends import carrier
from shoal.comms.errors import AuthenticationError, ConnectError, ListenError
from shoal.comms.greeting import NotGreeted, greet
from shoal.comms.sockets import SocketConnection
from shoal.comms.transport import Connection, Listener, OnConnection
from shoal.protocol.codec import Decoder
from shoal.protocol.framing import FrameLimits
from shoal.protocol.handshake import Keyring

RETRY_SECONDS_MIN: Final = 0.02
RETRY_SECONDS_MAX: Final = 1.0


async def connect(
    address: str,
    keyring: Keyring,
    role: str,
    decoder: Decoder,
    *,
    timeout_seconds: float,
    keep_trying: bool = False,
    limits: FrameLimits | None = None,
) -> Connection:
    """Dial `address`, prove `role`, and have the service prove that it holds our token.

    A TCP address of this host is reached by its Unix shortcut if it has one.  A service that is
    too busy for a handshake is tried again until the deadline.

    Args:
        timeout_seconds: deadline for name lookup, connection and handshake together.
        keep_trying: also try again where nobody listens (yet).

    Raises:
        AddressError: `address` can't be dialled.
        ConnectError: nobody answers there, or not in time.
        AuthenticationError: the two don't hold the same token.

    Cost: 0.3 ms on one host.
    """
    parsed = parse_address(address)
    last = ""
    try:
        async with asyncio.timeout(timeout_seconds):
            if parsed.scheme == INPROC:
                return await inproc.dial(parsed, keyring, role)
            pause_seconds = RETRY_SECONDS_MIN
            while True:
                try:
                    return await _dial(parsed, keyring, role, decoder, limits)
                except (AuthenticationError, ConnectError):
                    raise
                except OSError as error:
                    last = error.strerror or str(error) or type(error).__name__
                    if not (keep_trying or isinstance(error, NotGreeted)):
                        raise ConnectError.refused(str(parsed), last) from error
                await asyncio.sleep(pause_seconds)
                pause_seconds = min(2 * pause_seconds, RETRY_SECONDS_MAX)
    except TimeoutError as error:
        raise ConnectError.slow(str(parsed), timeout_seconds, last) from error


async def _dial(
    address: Address, keyring: Keyring, role: str, decoder: Decoder, limits: FrameLimits | None
) -> Connection:
    """One attempt: every way to the address, the shortest first."""
    if address.scheme == UNIX:
        sock = await unix.dial(address.name)
        return await _greeted(sock, UNIX, address, keyring, role, decoder, limits)
    if address.scheme != TCP:
        carried: Connection = await carrier().dial(address, keyring, role, decoder, limits)
        return carried
    failure: OSError | None = None
    for family, where in await tcp.resolve(address.host, address.port):
        if is_own_host(where[0]):
            short = await _dial_shortcut(where, address, keyring, role, decoder, limits)
            if short is not None:
                return short
        try:
            sock = await tcp.dial(family, where, config.read(config.Comm).silence_seconds)
        except OSError as error:
            failure = failure or error
            continue
        return await _greeted(sock, TCP, address, keyring, role, decoder, limits)
    raise failure or OSError("its host has no address")


async def _dial_shortcut(
    where: tuple[str, int],
    address: Address,
    keyring: Keyring,
    role: str,
    decoder: Decoder,
    limits: FrameLimits | None,
) -> Connection | None:
    """The Unix way to a TCP address of this host; None where there is none, or none for us.

    Anybody on this host may have taken the name: it must be a process of our own user, and
    whatever goes wrong here only means TCP.
    """
    for name in shortcut_names(*where):
        try:
            sock = await unix.dial(name)
        except OSError:
            continue
        if unix.peer_process(sock)[1] != os.geteuid():
            sock.close()
            continue
        try:
            return await _greeted(sock, UNIX, address, keyring, role, decoder, limits)
        except OSError:
            continue
    return None


async def _greeted(
    sock: socket.socket,
    scheme: str,
    address: Address,
    keyring: Keyring,
    role: str,
    decoder: Decoder,
    limits: FrameLimits | None,
) -> Connection:
    try:
        greeted = await greet(sock, keyring, role, str(address))
        local = (
            str(tcp.bound_address(sock))
            if scheme == TCP
            else f"unix://@pid/{os.getpid()}/{sock.fileno()}"
        )
    except BaseException:
        sock.close()
        raise
    return SocketConnection(
        sock,
        scheme=scheme,
        role=greeted.role,
        peer_address=str(address),
        local_address=local,
        decoder=decoder,
        limits=limits,
        leftover=greeted.leftover,
    )


async def listen(
    address: str,
    keyring: Keyring,
    decoder_for_role: DecoderForRole,
    on_connection: OnConnection,
    *,
    limits: FrameLimits | None = None,
    admission: AdmissionLimits | None = None,
    sock: socket.socket | None = None,
    shortcut: bool = True,
) -> Listener:
    """Accept whoever proves a role that `keyring` knows, until the listener is closed.

    A TCP listener on Linux also listens on an abstract Unix socket, for processes of its host.

    Args:
        decoder_for_role: what a peer of this role may say.
        on_connection: called with each peer let in.
        sock: a listening TCP or Unix socket to adopt; `address` then only gives the host to be
            known by, and may be empty.
        shortcut: False for TCP alone.

    Raises:
        AddressError: `address` makes no sense.
        ListenError: it is taken, or not ours.
    """
    asked = parse_address(address, default_port=0) if address else None
    if asked is not None and asked.scheme == INPROC:
        return inproc.InprocListener(asked, keyring, on_connection)
    if asked is not None and asked.scheme not in (TCP, UNIX):
        carried: Listener = await carrier().listen(
            asked, keyring, decoder_for_role, on_connection, limits or FrameLimits()
        )
        return carried
    settings = config.read(config.Comm)  # before there is a socket to be closed
    known_as = ""
    if sock is not None:
        sock.setblocking(False)
        if asked is not None and not asked.is_wildcard:
            known_as = asked.host
    elif asked is None:
        raise ListenError.failed("''", "neither an address nor a socket was given")
    elif asked.scheme == UNIX:
        sock = unix.bind(asked)
    else:
        sock = await tcp.bind(asked)
    socks = [sock]
    if sock.family == socket.AF_UNIX:
        contact = unix.bound_address(sock)
    else:
        bound = tcp.bound_address(sock)
        contact = tcp.contact_address(bound, known_as)
        if shortcut:
            socks += _bind_shortcut(bound)
    for each in socks:
        each.listen(settings.backlog)
    return SocketListener(
        socks,
        contact,
        keyring,
        decoder_for_role,
        on_connection,
        limits=limits or FrameLimits(body_bytes_max=settings.frame_bytes_max),
        admission=admission or AdmissionLimits(handshake_seconds=settings.handshake_seconds),
        silence_seconds=settings.silence_seconds,
    )


def _bind_shortcut(bound: Address) -> list[socket.socket]:
    """The Unix way to a TCP listener; none where the system or another process objects."""
    exact, everywhere = shortcut_names(bound.host, bound.port)
    name = everywhere if bound.is_wildcard else exact
    try:
        return [unix.bind(Address(UNIX, name=name))]
    except OSError:
        return []  # it is only a shortcut
