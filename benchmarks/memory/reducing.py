"""Load, then reduce: how many loaded partitions a worker has at once."""

from __future__ import annotations

import threading
import time
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.memory.programs import Found, Ground

SPLIT = 8
LOAD_SECONDS = 0.02
PARTITION_NBYTES_MIN = 200_000
"""Less may travel with messages, as a copy that is counted too."""


class Living:
    """How many partitions this process has, and the most that it has had."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now = 0
        self._most = 0

    def count(self, more: int) -> None:
        """One more, or one less."""
        with self._lock:
            self._now += more
            self._most = max(self._most, self._now)

    def take_most(self) -> int:
        """The most at once, since this was last asked."""
        with self._lock:
            most, self._most = self._most, self._now
        return most


LIVING = Living()


class Partition:
    """A block of bytes that is counted as long as it is in a process."""

    def __init__(self, values: Any) -> None:
        self.values = values
        LIVING.count(1)
        weakref.finalize(self, LIVING.count, -1)

    def __reduce__(self) -> Any:
        return Partition, (self.values,)

    def __sizeof__(self) -> int:
        return int(self.values.nbytes)


def most_alive() -> int:
    """The most partitions that this process has had at once, since it was last asked."""
    return LIVING.take_most()


def resident_bytes() -> int:
    """What this process has in memory now."""
    import psutil

    return int(psutil.Process().memory_info().rss)


def load(number: int, nbytes: int, *shared: Any) -> Partition:
    """As from a file."""
    import numpy as np

    values = np.empty(nbytes, "u1")
    values[:] = number % 251
    time.sleep(LOAD_SECONDS)
    return Partition(values)


def reduce_one(partition: Partition) -> int:
    """The first step of a reduction."""
    time.sleep(LOAD_SECONDS)
    return int(partition.values.sum(dtype="u8"))


def describe(number: int) -> bytes:
    """A small input that all loads share."""
    return bytes(100 + number)


def reducing(
    ground: Ground, nworkers: int, threads: int, nroots: int, nshared: int, nbytes: int
) -> Found:
    """The sum of all partitions, and the most that a worker had of them, counted and resident."""
    with ground.client(nworkers, threads, "4GiB") as client:
        client.run(most_alive)
        warm = client.map(load, range(threads * nworkers), nbytes=1 << 20, pure=False)
        client.gather(client.map(reduce_one, warm, pure=False))
        del warm
        before = client.run(resident_bytes)
        client.run(most_alive)
        graph = reduction(nroots, nshared, nbytes)
        started_at = time.monotonic()
        total = client.get(graph, "total", optimize_graph=False)
        yield {
            "compute_seconds": time.monotonic() - started_at,
            "right": total == sum(n % 251 for n in range(nroots)) * nbytes,
            "most": max(client.run(most_alive).values()),
            "rest_bytes": min(before.values()),
        }


def reduction(nroots: int, nshared: int, nbytes: int) -> dict[Any, Any]:
    """Loads that may share small inputs, each reduced by itself, then eight by eight."""
    shared: dict[Any, Any] = {("describe", n): (describe, n) for n in range(nshared)}
    graph = dict(shared)
    for n in range(nroots):
        graph["load", n] = (load, n, nbytes, *shared)
        graph["reduce", 0, n] = (reduce_one, ("load", n))
    level = [("reduce", 0, n) for n in range(nroots)]
    depth = 0
    while len(level) > 1:
        depth += 1
        groups = [level[at : at + SPLIT] for at in range(0, len(level), SPLIT)]
        level = [("reduce", depth, n) for n in range(len(groups))]
        graph.update({key: (sum, group) for key, group in zip(level, groups, strict=True)})
    graph["total"] = (sum, level)
    return graph
