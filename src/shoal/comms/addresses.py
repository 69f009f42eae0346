"""Addresses as text: what the schemes mean, and which host is this one."""

from __future__ import annotations

import dataclasses
import os
import socket
from typing import Final

from shoal.comms.backends import find_backend
from shoal.comms.errors import AddressError

TCP: Final = "tcp"
UNIX: Final = "unix"
INPROC: Final = "inproc"

_WILDCARDS: Final = ("", "0.0.0.0", "::", "*")


@dataclasses.dataclass(frozen=True, slots=True)
class Address:
    """One address, taken apart.  `str()` puts it together again, in canonical form."""

    scheme: str
    host: str = ""
    """Of TCP, and of a third party's scheme if it has one; without brackets."""
    port: int = 0
    """Likewise; 0 means any free one, and is good for listening only."""
    name: str = ""
    """Path or ``@abstract`` name of a Unix socket, or name of an in-process listener; of a third
    party's scheme all that follows it."""

    def __str__(self) -> str:
        if self.scheme != TCP:
            return f"{self.scheme}://{self.name}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"tcp://{host}:{self.port}"

    @property
    def is_wildcard(self) -> bool:
        """Whether it stands for every interface of this host."""
        return self.scheme == TCP and self.host in _WILDCARDS


def parse_address(text: str, default_port: int | None = None) -> Address:
    """Take `text` apart; ``host:port`` alone means TCP.

    Args:
        default_port: what a TCP address without a port means; None: it must have one.

    Raises:
        AddressError: the scheme is unknown, or the port missing or not a number.
    """
    scheme, separator, rest = text.strip().partition("://")
    if not separator:
        scheme, rest = TCP, scheme
    if scheme == INPROC:
        return Address(INPROC, name=rest)
    if scheme == UNIX:
        if not rest.startswith(("/", "@")) or rest == "@":
            raise AddressError(text, "a Unix socket has an absolute path, or a name after '@'")
        return Address(UNIX, name=rest)
    if scheme != TCP:
        return _of_third_party(text, scheme, rest, default_port)
    host, port = _split_port(text, rest.rstrip("/"))
    if port is None:
        port = default_port
    if port is None:
        raise AddressError(text, "it has no port")
    return Address(TCP, host=host, port=port)


def _of_third_party(text: str, scheme: str, rest: str, default_port: int | None) -> Address:
    """An address of a scheme that another package carries; its name is all of it.

    If that package carries it by one of our own schemes, it is an address of ours.
    """
    backend = find_backend(scheme)
    if backend is None:
        raise AddressError(text, f"the scheme {scheme!r} is unknown")
    ours = getattr(backend, "stands_on", "")
    if ours:
        return parse_address(f"{ours}://{rest}", default_port)
    try:
        host, port = _split_port(text, rest)
    except AddressError:
        host, port = "", None  # it is made of something else
    return Address(scheme, host=host, port=port or 0, name=rest)


def _split_port(text: str, rest: str) -> tuple[str, int | None]:
    if rest.startswith("["):
        host, bracket, tail = rest[1:].partition("]")
        if not bracket or (tail and not tail.startswith(":")):
            raise AddressError(text, "the brackets of its IPv6 host do not match")
        port_text = tail[1:]
    elif rest.count(":") > 1:
        raise AddressError(text, "an IPv6 host needs brackets")
    else:
        host, _, port_text = rest.partition(":")
    if not port_text:
        return host, None
    if not (port_text.isascii() and port_text.isdigit()) or int(port_text) > 65535:
        raise AddressError(text, f"{port_text!r} is not a port from 0 to 65535")
    return host, int(port_text)


def is_own_host(ip: str) -> bool:
    """Whether `ip`, in numbers, is loopback or an address of this host.  Cost: 10 us."""
    if ip.startswith("127.") or ip == "::1":
        return True
    family = socket.AF_INET6 if ":" in ip else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((ip, 0))  # only an address of our own can be bound
    except OSError:
        return False
    return True


def is_on_this_host(address: Address) -> bool:
    """Whether `address` is on this host, as far as can be told without asking a network."""
    if address.scheme != TCP or address.host == "localhost" or address.is_wildcard:
        return True
    if not address.host.replace(".", "").isdigit() and ":" not in address.host:
        return address.host == os.uname().nodename
    return is_own_host(address.host)


def outward_ip(family: int = socket.AF_INET) -> str:
    """This host's address as others see it; loopback if it has no network.  Sends nothing."""
    far, near = ("2001:db8::1", "::1") if family == socket.AF_INET6 else ("192.0.2.1", "127.0.0.1")
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((far, 9))
            return str(probe.getsockname()[0])
    except OSError:
        return near


def shortcut_names(ip: str, port: int) -> tuple[str, str]:
    """Abstract Unix names under which a TCP listener of this host may be found as well.

    The first is of a listener bound to `ip` alone, the second of one bound to all interfaces.
    They differ, because two services may share a port on different addresses.
    """
    return f"@shoal/{ip}/{port}", f"@shoal/{port}"
