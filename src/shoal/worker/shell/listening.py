"""Where a worker listens, if nobody says it."""

from __future__ import annotations

import os

from shoal.comms.addresses import INPROC, TCP, is_own_host, parse_address


def listen_address(scheduler_address: str, host: str | None, port: int) -> str:
    """An address to listen on, going by how the scheduler is reached.

    Args:
        host: None: loopback if the scheduler is there, else all.
        port: 0: any that is free.
    """
    scheduler = parse_address(scheduler_address)
    if scheduler.scheme == INPROC:
        return "inproc://"
    if scheduler.scheme != TCP:
        return f"unix://@shoal-worker/{os.getpid()}/{os.urandom(4).hex()}"
    if host is None:
        is_local = scheduler.host == "localhost" or (
            scheduler.host[:4] in ("127.", "::1") and is_own_host(scheduler.host)
        )
        host = "127.0.0.1" if is_local else "0.0.0.0"
    return f"tcp://[{host}]:{port}" if ":" in host else f"tcp://{host}:{port}"
