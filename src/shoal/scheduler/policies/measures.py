"""How much of a worker's memory is taken, for who compares workers?"""

from collections.abc import Callable, Mapping
from typing import Final

from shoal.scheduler.model.entities import Worker

Measure = Callable[[Worker], int]
"""Bytes of a worker's memory."""


def managed(worker: Worker) -> int:
    """Results in memory: as the scheduler counts them, less what is on disk as last heard."""
    return max(0, worker.nbytes - worker.spilled_bytes)


def optimistic(worker: Worker) -> int:
    """Results in memory, and what has been there for long without being one.

    What has come lately and is no result may go by itself.
    """
    return managed(worker) + worker.unmanaged_old_bytes


def process(worker: Worker) -> int:
    """All of its process; its results at least, before it was heard."""
    return max(worker.memory_bytes, managed(worker))


def unmanaged(worker: Worker) -> int:
    """What is no result."""
    return process(worker) - managed(worker)


def managed_total(worker: Worker) -> int:
    """Results, in memory and on disk."""
    return worker.nbytes


def spilled(worker: Worker) -> int:
    """Results on disk."""
    return worker.spilled_bytes


def unmanaged_old(worker: Worker) -> int:
    """What is no result and has been there for long."""
    return worker.unmanaged_old_bytes


def unmanaged_recent(worker: Worker) -> int:
    """What is no result and has come lately."""
    return max(0, unmanaged(worker) - worker.unmanaged_old_bytes)


MEASURES: Final[Mapping[str, Measure]] = {
    measure.__name__: measure
    for measure in (
        optimistic,
        managed,
        process,
        unmanaged,
        managed_total,
        spilled,
        unmanaged_old,
        unmanaged_recent,
    )
}
"""By the names that settings have for them."""
