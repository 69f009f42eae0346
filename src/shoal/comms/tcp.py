"""TCP sockets: how they are bound, dialled and set up."""

from __future__ import annotations

import asyncio
import errno
import socket
from typing import Final

from shoal.comms.addresses import Address, outward_ip
from shoal.comms.errors import ListenError

BACKLOG: Final = 1024
SILENCE_SECONDS_MAX: Final = 86_400.0
"""Beyond this, systems take no number."""
_NPROBES: Final = 5


def set_up(sock: socket.socket, silence_seconds: float) -> None:
    """Send small frames at once, and notice a peer that vanished without a word.

    Args:
        silence_seconds: without an acknowledgement, until the system gives the connection up: a
            third of it is waited before the first probe, and the rest is for five of those.
    """
    silence_seconds = min(silence_seconds, SILENCE_SECONDS_MAX)
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, amount in (
        ("TCP_KEEPIDLE", max(1, round(silence_seconds / 3))),
        ("TCP_KEEPINTVL", max(1, round(silence_seconds * 2 / 3 / _NPROBES))),
        ("TCP_KEEPCNT", _NPROBES),
        ("TCP_USER_TIMEOUT", max(1, round(silence_seconds * 1000))),  # 0: the system's
    ):
        option = getattr(socket, name, None)
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, amount)


async def resolve(host: str, port: int) -> list[tuple[socket.AddressFamily, tuple[str, int]]]:
    """The IP addresses of `host`, in the system's order.  Raises OSError if it has none."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except OSError:
            continue
        return [(family, (host, port))]
    if host in ("localhost", ""):
        return [(socket.AF_INET, ("127.0.0.1", port)), (socket.AF_INET6, ("::1", port))]
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [(family, (str(where[0]), port)) for family, _, _, _, where in found]


async def dial(
    family: socket.AddressFamily, where: tuple[str, int], silence_seconds: float
) -> socket.socket:
    """A connected socket.  Raises OSError; the deadline is the caller's."""
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        set_up(sock, silence_seconds)
        await connect_to_another(sock, where)
    except BaseException:
        sock.close()
        raise
    return sock


async def connect_to_another(sock: socket.socket, where: tuple[str, int]) -> None:
    """Connect `sock`, and not to itself.

    Where nobody listens on a port from which the system takes those of outgoing connections, it may
    give that very port to one that dials it, which then meets itself in the middle.

    Raises:
        ConnectionRefusedError: nobody listens there, or nobody but us.
        OSError: it could not be reached.
    """
    await asyncio.get_running_loop().sock_connect(sock, where)
    if sock.getsockname() == sock.getpeername():
        raise ConnectionRefusedError(errno.ECONNREFUSED, "nobody listens there but who dialled")


async def bind(address: Address) -> socket.socket:
    """A listening socket.  An empty host means all IPv4 interfaces, ``[::]`` really all.

    Raises:
        ListenError: the port is taken, or the host is not ours.
    """
    try:
        if address.host in ("", "*"):
            return listen_at("0.0.0.0", address.port)
        _, where = (await resolve(address.host, address.port))[0]
        return listen_at(*where)
    except OSError as error:
        raise ListenError.failed(str(address), error.strerror or str(error)) from error


def listen_at(host: str, port: int, backlog: int = BACKLOG) -> socket.socket:
    """A socket that listens, and does not block.  Raises OSError."""
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if sock.family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(host != "::"))
        sock.bind((host, port))
        sock.listen(backlog)
    except BaseException:
        sock.close()
        raise
    return sock


def bound_address(sock: socket.socket) -> Address:
    """What a listening or connected socket is bound to."""
    ip, port = sock.getsockname()[:2]
    return Address("tcp", host=ip, port=port)


def contact_address(bound: Address, known_as: str = "") -> Address:
    """Where others reach what is `bound`; `known_as`: a host name or address to give instead."""
    if known_as:
        return Address("tcp", host=known_as, port=bound.port)
    if not bound.is_wildcard:
        return bound
    family = socket.AF_INET6 if ":" in bound.host else socket.AF_INET
    return Address("tcp", host=outward_ip(family), port=bound.port)


def peer_address(where: tuple[str, int]) -> str:
    """The address of a peer that was accepted."""
    return str(Address("tcp", host=where[0], port=where[1]))
