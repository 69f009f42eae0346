"""`distributed.comm.addressing`: addresses taken apart and put together."""

from __future__ import annotations

import itertools
import os
import socket
from typing import Any, Final

from shoal.comms import addresses
from shoal.comms.backends import backend_of
from shoal.comms.errors import AddressError
from shoal.compat.functions import get_ip, get_ip_interface, get_ipv6

_numbers: Final = itertools.count(1)
_NO_PORTS = (addresses.INPROC, addresses.UNIX)
_WITH_PORTS = ("tcp", "tls", "ws", "wss")


def parse_address(addr: str, strict: bool = False) -> tuple[str, str]:
    """`"tcp://host:1"` → `("tcp", "host:1")`; tcp if there is no scheme and not `strict`."""
    if not isinstance(addr, str):
        raise TypeError(f"an address is a text, not {type(addr).__name__}")
    scheme, separator, location = addr.rpartition("://")
    if strict and not separator:
        raise AddressError(addr, "it has no scheme. Must include protocol like tcp://host:8000")
    return scheme or "tcp", location


def unparse_address(scheme: str, loc: str) -> str:
    """The opposite of `parse_address`."""
    return f"{scheme}://{loc}"


def normalize_address(addr: str) -> str:
    """With its scheme."""
    return unparse_address(*parse_address(addr))


def parse_host_port(
    address: str | tuple[str, int], default_port: str | int | None = None
) -> tuple[str, int]:
    """`"host:1"`, with or without a scheme → `("host", 1)`; a pair is as good as it is."""
    if isinstance(address, tuple):
        return address
    port = None if default_port is None else int(default_port)
    found = addresses.parse_address("tcp://" + parse_address(address)[1], port)
    return found.host, found.port


def unparse_host_port(host: str, port: int | None = None) -> str:
    """`"host:1"`; IPv6 hosts get their brackets."""
    bracketed = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return f"{bracketed}:{port}" if port else bracketed


def get_address_host_port(addr: str, strict: bool = False) -> tuple[str, int]:
    """Host and port of a TCP address, or of one whose scheme has ports as well."""
    scheme, location = parse_address(addr, strict)
    if scheme in _NO_PORTS:
        raise AddressError(addr, "it has no port")
    if scheme not in _WITH_PORTS:
        try:
            host, port = backend_of(scheme).get_address_host_port(location)
        except NotImplementedError:
            raise AddressError(addr, "it has no port") from None
        return str(host), int(port)
    return parse_host_port(location)


def get_address_host(addr: str) -> str:
    """The host of an address; ours, if it is one of this machine alone."""
    scheme, location = parse_address(addr)
    if scheme in _NO_PORTS:
        return addresses.outward_ip()
    if scheme not in _WITH_PORTS:
        return str(backend_of(scheme).get_address_host(location))
    return parse_host_port(location, 0)[0]


def resolve_address(addr: str) -> str:
    """With numbers for a TCP address's host name."""
    scheme, location = parse_address(addr)
    if scheme in _NO_PORTS:
        return addr
    if scheme not in _WITH_PORTS:
        return unparse_address(scheme, backend_of(scheme).resolve_address(location))
    host, port = parse_host_port(location)
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][4]
    return unparse_address(scheme, unparse_host_port(str(found[0]), port))


def new_inproc_location() -> str:
    """Where nobody in this process has listened yet."""
    return f"{get_ip()}/{os.getpid()}/{next(_numbers)}"


def get_local_address_for(addr: str) -> str:
    """Where to listen, on this host, to be reached from whoever is at `addr`; without a port."""
    scheme, location = parse_address(addr)
    if scheme == addresses.INPROC:
        return unparse_address(scheme, new_inproc_location())
    if scheme not in _WITH_PORTS:
        return unparse_address(scheme, backend_of(scheme).get_local_address_for(location))
    return unparse_address(scheme, local_host_for(location))


def local_host_for(location: str) -> str:
    """The address of this host from which ``host:port`` is reached.  Sends nothing."""
    host, port = parse_host_port(location)
    family, _, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(where)
            return unparse_host_port(str(probe.getsockname()[0]))
    except OSError:
        return unparse_host_port(addresses.outward_ip(family))


def uri_from_host_port(host_arg: str | None, port_arg: str | None, default_port: int) -> str:
    """The address that a host and a port of a command line mean.

    Raises:
        ValueError: there are two ports, or one is no number.
    """
    scheme, location = parse_address(host_arg or "")
    host, port = parse_host_port(location, 0)
    if port and port_arg:
        raise ValueError(f"port number given twice in options: host {host_arg} and port {port_arg}")
    if not port:
        port = int(port_arg) if port_arg else default_port
    # 0 is a port as well, namely any that is free
    return unparse_address(scheme, f"{unparse_host_port(host)}:{port}")


def address_from_user_args(
    host: str | None = None,
    port: int | str | None = None,
    interface: str | None = None,
    protocol: str | None = None,
    peer: str | None = None,
    security: Any = None,
    default_port: int = 0,
) -> str:
    """The address to listen on that these say; empty if they say nothing.

    Args:
        interface: the name of a network interface, instead of a host.
        peer: means nothing.
        security: one that requires encryption means tls where there is no protocol.

    Raises:
        ValueError: an interface and a host, or two ports.
    """
    if protocol is None and security is not None and getattr(security, "require_encryption", False):
        protocol = "tls"
    if protocol and protocol.rstrip("/").endswith("inproc") and not host:
        return "inproc://"
    if interface:
        if host:
            raise ValueError("Can not specify both interface and host", interface, host)
        host = get_ip_interface(interface)
    scheme = protocol.split("://")[0] if protocol else ""
    if not host and port is None:
        return f"{scheme}://" if scheme else ""
    address = uri_from_host_port(host, None if port is None else str(port), default_port)
    return unparse_address(scheme, parse_address(address)[1]) if scheme else address


def addresses_from_user_args(
    host: Any = None,
    port: Any = None,
    interface: Any = None,
    protocol: Any = None,
    peer: str | None = None,
    security: Any = None,
    default_port: int = 0,
) -> list[str]:
    """As `address_from_user_args`, for lists: one address for each of a row of arguments."""
    given = (host, port, interface, protocol)
    lists = [value for value in given if isinstance(value, list)]
    if not lists:
        return [address_from_user_args(*given, peer, security, default_port)]
    hosts, ports, interfaces, protocols = (_row(value, lists) for value in given)
    return [
        address_from_user_args(*each, peer, security, default_port)
        for each in zip(hosts, ports, interfaces, protocols, strict=True)
    ]


def _row(value: Any, lists: list[list[Any]]) -> list[Any]:
    """One argument as a list as long as the shortest of those that are lists."""
    length = min(map(len, lists))
    return value[:length] if isinstance(value, list) else [value] * length


def ensure_concrete_host(host: Any, default_host: str | None = None) -> Any:
    """`host`, or this one's address in place of "all interfaces"."""
    if host in ("0.0.0.0", ""):
        return default_host or get_ip()
    if host == "::":
        return default_host or get_ipv6()
    return host


def get_tcp_server_addresses(tcp_server: Any) -> list[Any]:
    """What the sockets of a tornado server are bound to.

    Raises:
        RuntimeError: it listens on none.
    """
    socks = list(getattr(tcp_server, "_sockets", {}).values())
    if not socks:
        raise RuntimeError(f"TCP Server {tcp_server!r} not started yet? It listens on no socket.")
    socks.sort(key=lambda sock: sock.family != socket.AF_INET)  # IPv4 is what most others have
    return [sock.getsockname() for sock in socks]


def get_tcp_server_address(tcp_server: Any) -> Any:
    """What a tornado server is bound to, on IPv4 if it is."""
    return get_tcp_server_addresses(tcp_server)[0]
