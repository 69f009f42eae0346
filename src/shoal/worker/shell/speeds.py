"""How fast a worker's disk, memory and network are: a few samples of each size."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Final

from dask.utils import parse_bytes

from shoal.comms.exchange import ReplicaExchange

DISK_SIZES: Final = ("1 kiB", "100 kiB", "1 MiB", "10 MiB", "100 MiB")
MEMORY_SIZES: Final = ("2 kiB", "10 kiB", "100 kiB", "1 MiB", "10 MiB")
NETWORK_SIZES: Final = ("1 kiB", "10 kiB", "100 kiB", "1 MiB", "10 MiB", "50 MiB")

SECONDS_PER_SIZE: Final = 0.2
"""Samples are taken for so long; at least one of each size."""


def of_disk(folder: str) -> dict[str, float]:
    """Size → bytes per second, written to new files in `folder` and read again.

    It is what the system's cache makes of it, as for the files of tasks.
    """

    def write_and_read(content: bytes) -> None:
        with tempfile.TemporaryFile(dir=folder) as opened:
            opened.write(content)
            opened.flush()
            opened.seek(0)
            opened.read()

    return speeds_of(DISK_SIZES, write_and_read, npasses=2)


def of_memory() -> dict[str, float]:
    """Size → bytes per second, copied."""
    return speeds_of(MEMORY_SIZES, lambda content: content[1:])


async def of_network(exchange: ReplicaExchange, peer: str) -> dict[str, float]:
    """Size → bytes per second, fetched from a peer.

    Raises:
        OSError: it can't be reached.
    """
    await exchange.get_bytes(peer, 1)  # connects
    found = {}
    for size in NETWORK_SIZES:
        nbytes, ntimes, started = parse_bytes(size), 0, perf_counter()
        while not ntimes or perf_counter() - started < SECONDS_PER_SIZE:
            await exchange.get_bytes(peer, nbytes)
            ntimes += 1
        found[size] = nbytes * ntimes / max(perf_counter() - started, 1e-9)
    return found


def speeds_of(
    sizes: Iterable[str],
    use: Callable[[bytes], object],
    *,
    npasses: int = 1,
    seconds: float = SECONDS_PER_SIZE,
) -> dict[str, float]:
    """Size → bytes per second of `use`, which goes through its argument so many times.

    Args:
        seconds: for each size.
    """
    found = {}
    for size in sizes:
        content = os.urandom(parse_bytes(size))
        ntimes, started = 0, perf_counter()
        while not ntimes or perf_counter() - started < seconds:
            use(content)
            ntimes += 1
        found[size] = len(content) * npasses * ntimes / max(perf_counter() - started, 1e-9)
    return found
