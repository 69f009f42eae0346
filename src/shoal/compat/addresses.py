"""`distributed.comm.addressing`: addresses taken apart and put together."""

from __future__ import annotations

import socket

from shoal.comms import addresses
from shoal.comms.errors import AddressError


def parse_address(addr: str, strict: bool = False) -> tuple[str, str]:
    """`"tcp://host:1"` → `("tcp", "host:1")`; tcp if there is no scheme and not `strict`."""
    if not isinstance(addr, str):
        raise TypeError(f"an address is a text, not {type(addr).__name__}")
    scheme, separator, location = addr.rpartition("://")
    if strict and not separator:
        raise AddressError(addr, "it has no scheme")
    return scheme or "tcp", location


def unparse_address(scheme: str, loc: str) -> str:
    """The opposite of `parse_address`."""
    return f"{scheme}://{loc}"


def normalize_address(addr: str) -> str:
    """With its scheme."""
    return unparse_address(*parse_address(addr))


def parse_host_port(address: str, default_port: int | None = None) -> tuple[str, int]:
    """`"host:1"`, with or without a scheme → `("host", 1)`."""
    found = addresses.parse_address("tcp://" + parse_address(address)[1], default_port)
    return found.host, found.port


def unparse_host_port(host: str, port: int | None = None) -> str:
    """`"host:1"`; IPv6 hosts get their brackets."""
    bracketed = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return f"{bracketed}:{port}" if port else bracketed


def get_address_host_port(addr: str, strict: bool = False) -> tuple[str, int]:
    """Host and port of a TCP address."""
    scheme, location = parse_address(addr, strict)
    if scheme in (addresses.INPROC, addresses.UNIX):
        raise AddressError(addr, "it has no port")
    return parse_host_port(location)


def get_address_host(addr: str) -> str:
    """The host of an address; ours, if it is one of this machine alone."""
    scheme, location = parse_address(addr)
    if scheme in (addresses.INPROC, addresses.UNIX):
        return addresses.outward_ip()
    return parse_host_port(location, 0)[0]


def resolve_address(addr: str) -> str:
    """With numbers for a TCP address's host name."""
    scheme, location = parse_address(addr)
    if scheme in (addresses.INPROC, addresses.UNIX):
        return addr
    host, port = parse_host_port(location)
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][4]
    return unparse_address(scheme, unparse_host_port(str(found[0]), port))
