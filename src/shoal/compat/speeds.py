"""`distributed.worker.benchmark_*`: how fast disks, memory and the network are."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from time import perf_counter
from typing import Any

from dask.utils import parse_bytes, parse_timedelta

from shoal.worker.shell.speeds import DISK_SIZES, MEMORY_SIZES, NETWORK_SIZES, speeds_of


def benchmark_disk(
    rootdir: str | None = None, sizes: Iterable[str] = DISK_SIZES, duration: Any = "1 s"
) -> dict[str, float]:
    """Size -> bytes per second, written to new files in `rootdir`; `duration` for each size."""

    def write(content: bytes) -> None:
        with tempfile.TemporaryFile(dir=rootdir) as opened:
            opened.write(content)
            opened.flush()

    return speeds_of(sizes, write, seconds=parse_timedelta(duration))


def benchmark_memory(
    sizes: Iterable[str] = MEMORY_SIZES, duration: Any = "200 ms"
) -> dict[str, float]:
    """Size -> bytes per second, copied; `duration` for each size."""
    return speeds_of(sizes, lambda content: content[1:], seconds=parse_timedelta(duration))


async def benchmark_network(
    address: str, rpc: Any, sizes: Iterable[str] = NETWORK_SIZES, duration: Any = "1 s"
) -> dict[str, float]:
    """Size -> bytes per second to the server at `address` and back; `duration` for each size.

    Args:
        rpc: a ConnectionPool, or `rpc` itself.
    """
    seconds, found = parse_timedelta(duration), {}
    remote = rpc(address)
    try:
        for size in sizes:
            content = os.urandom(parse_bytes(size))
            ntimes, started = 0, perf_counter()
            while not ntimes or perf_counter() - started < seconds:
                await remote.echo(data=content)
                ntimes += 1
            found[size] = 2 * len(content) * ntimes / max(perf_counter() - started, 1e-9)
    finally:
        await remote.close_rpc()
    return found
