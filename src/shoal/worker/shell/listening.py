"""Where a worker listens, and where its scheduler is, if nobody says it."""

from __future__ import annotations

import os

import dask.config

from shoal.comms.addresses import INPROC, TCP, is_own_host, parse_address
from shoal.worker.shell.errors import NoSchedulerGiven


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


def address_of_scheduler(given: str | None) -> str:
    """Where the scheduler is, in its canonical form; None: as the settings say.

    Raises:
        NoSchedulerGiven: they don't (a ValueError).
        AddressError: it can't be one.
    """
    address = given or dask.config.get("scheduler-address", None)
    if not address:
        raise NoSchedulerGiven
    return str(parse_address(str(address)))
