"""Where a page is served, and under which names it may be asked for."""

from __future__ import annotations

import errno
import socket
from collections.abc import Sequence
from typing import Final

from shoal.comms.addresses import parse_address
from shoal.comms.errors import AddressError, ListenError
from shoal.comms.tcp import listen_at
from shoal.web.errors import OtherSite, PageAddressError, UnknownHost

DEFAULT_PORT: Final = 8787
PORT_MAX: Final = 65_535


def parse_page_address(given: object, default_host: str) -> tuple[str, int] | None:
    """Host and port of what a user gave as `dashboard_address`; None: there shall be no page.

    Args:
        given: ":8787", "host:8787", "host", 8787, or None.
        default_host: where there is none in it.

    Raises:
        PageAddressError: it is none of these.
    """
    if given is None or given is False or given == "":
        return None
    if isinstance(given, bool) or not isinstance(given, str | int):
        raise PageAddressError(given, "it is neither a text nor a port")
    text = str(given).removeprefix("http://").rstrip("/")
    try:
        address = parse_address(
            "tcp://" + (f":{text}" if text.isdecimal() else text), default_port=DEFAULT_PORT
        )
    except AddressError as error:
        raise PageAddressError(given, error.why) from error
    return address.host.replace("*", "0.0.0.0") or default_host, address.port


def bind_page(host: str, port: int) -> socket.socket:
    """A socket that listens on `port`, or, if that is taken, on the next that is free.

    Raises:
        ListenError: the host is not ours, or the port not for us.
    """
    while True:
        try:
            return listen_at(host, port)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or not port:
                raise ListenError.failed(f"http://{host}:{port}", error.strerror or "") from error
            port = port + 1 if port < PORT_MAX else 0


class Visitors:
    """Who may look.

    A page on loopback is for this machine.  A site whose name was made to lead to loopback could
    read it through a browser, so it answers to known names only; on other interfaces, any.
    """

    def __init__(self, host: str, hosts: Sequence[str]) -> None:
        """`host`: where the page listens; `hosts`: further names, of proxies."""
        self._checks_names = is_loopback_name(host)
        self._hosts = frozenset(name.lower() for name in hosts)

    def check_name(self, host_header: str) -> None:
        """Raises UnknownHost if the page may not be asked for under this name."""
        name = host_name(host_header)
        if self._checks_names and not is_loopback_name(name) and name not in self._hosts:
            raise UnknownHost(name)

    def check_origin(self, origin: str | None, host_header: str) -> None:
        """Raises OtherSite if a page of another site asks; programs send no origin."""
        if origin is None:
            return
        site = host_name(origin.partition("://")[2])
        if site != host_name(host_header) and site not in self._hosts:
            raise OtherSite(origin)


def host_name(host_header: str) -> str:
    """`[::1]:8787` → `::1`, `Example.org:80` → `example.org`."""
    text = host_header.strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0].rstrip(".")


def is_loopback_name(name: str) -> bool:
    """Whether a browser that is given this name asks its own machine."""
    if name in ("localhost", "::1") or name.endswith(".localhost"):
        return True
    parts = name.split(".")
    return len(parts) == 4 and parts[0] == "127" and all(part.isdecimal() for part in parts)
