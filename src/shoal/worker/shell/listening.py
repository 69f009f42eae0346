"""Where a worker listens, if nobody says it, and what it may be asked for."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from shoal.comms.addresses import INPROC, TCP, UNIX, is_own_host, parse_address
from shoal.comms.backends import local_address_for
from shoal.observe.asked import refuse_encryption

HARMLESS_OPTIONS: Final = frozenset(
    (
        "dashboard",
        "dashboard_address",
        "heartbeat_interval",
        "nanny",
        "profile_cycle_interval",
        "services",
        "silence_logs",
    )
)
"""Options of upstream's workers that only tune what ours do by themselves, or ask for a page."""


def refuse_unusable(options: Mapping[str, Any], security: Any) -> None:
    """Raise TypeError for what nobody knows, UnsupportedOption if certificates are asked for."""
    refuse_encryption(security)
    for name in options:
        if name not in HARMLESS_OPTIONS:
            raise TypeError(f"Worker() got an unexpected keyword argument {name!r}")


def listen_address(scheduler_address: str, host: str | None, port: int) -> str:
    """An address to listen on, going by how the scheduler is reached.

    Args:
        host: None: loopback if the scheduler is there, else all; may have a scheme before it.
        port: 0: any that is free.
    """
    scheduler = parse_address(scheduler_address)
    if host is not None:
        host = host.partition("://")[2] or host
    if scheduler.scheme == INPROC:
        return "inproc://"
    if scheduler.scheme not in (TCP, UNIX):
        if host is None and not port:
            return local_address_for(scheduler.scheme, scheduler.name)
        return f"{scheduler.scheme}://{host or ''}:{port}"
    if scheduler.scheme != TCP:
        return f"unix://@shoal-worker/{os.getpid()}/{os.urandom(4).hex()}"
    if host is None:
        is_local = scheduler.host == "localhost" or (
            scheduler.host[:4] in ("127.", "::1") and is_own_host(scheduler.host)
        )
        host = "127.0.0.1" if is_local else "0.0.0.0"
    return f"tcp://[{host}]:{port}" if ":" in host else f"tcp://{host}:{port}"


def ports_asked(port: int | str | Sequence[int] | None) -> list[int]:
    """The ports that may be listened on, in the order in which they are tried; 0: any free one.

    Args:
        port: one, several, or a range such as "9000:9009"; None: 0.

    Raises:
        ValueError: a text that is none of these.
    """
    if port is None:
        return [0]
    if isinstance(port, int):
        return [port]
    if isinstance(port, str):
        first, separator, last = port.partition(":")
        try:
            ports = list(range(int(first), int(last if separator else first) + 1))
        except ValueError:
            raise ValueError(f"{port!r} is no port: write a number, or first:last") from None
    else:
        ports = list(port)
    if not ports:
        raise ValueError(f"there is no port in {port!r}: a range is first:last")
    return ports
