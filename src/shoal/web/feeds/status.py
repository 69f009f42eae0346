"""What the status page shows: totals, workers, prefixes, locks and shuffles, in columns.

Everything comes from counters that the machine keeps, and no row is about one task, so a look at a
million tasks costs what a look at ten does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import Any, Final

from shoal.ids import Key
from shoal.protocol.keys import to_text
from shoal.scheduler.model.entities import (
    ERRED,
    MEMORY,
    NO_RUN,
    NO_WORKER,
    PROCESSING,
    QUEUED,
    RELEASED,
    WAITING,
    Prefix,
    Worker,
)
from shoal.scheduler.model.locks import Lock
from shoal.scheduler.model.state import SchedulerState
from shoal.web.feeds.shuffles import shuffle_columns

WORKERS_MAX: Final = 200
"""Workers that have a row; the others are in the totals."""

PREFIXES_MAX: Final = 40
"""Prefixes that have a row: those with work left, then the newest."""

PREFIXES_LOOKED_AT_MAX: Final = 2_000
"""The newest; so a program that names each task differently makes no look expensive."""

RUNS_LOOKED_AT_MAX: Final = 64
"""Of one worker's tasks, to find what its threads run."""


LOCKS_MAX: Final = 20
"""Locks that have a row: only those for which somebody waits."""

LOCKS_LOOKED_AT_MAX: Final = 2_000


def status(state: SchedulerState) -> dict[str, Any]:
    """Everything that the page shows.  Cost: O(workers + prefixes), within the limits above."""
    workers = list(state.workers.values())
    return {
        "tasks": {name: state.ntasks[name] for name in SHOWN_STATES},
        "totals": {
            "clients": len(state.clients),
            "workers": len(workers),
            "nthreads": sum(worker.nthreads for worker in workers),
            "nbusy": sum(nbusy_of(worker) for worker in workers),
            "memory_bytes": sum(worker.memory_bytes for worker in workers),
            "memory_limit": sum(worker.memory_limit for worker in workers),
            "nbytes": sum(worker.nbytes for worker in workers),
            "spilled_bytes": sum(worker.spilled_bytes for worker in workers),
            "received_bytes": state.received_bytes,
            "finished": state.nfinished,
        },
        "workers": worker_columns(workers[:WORKERS_MAX]),
        "prefixes": prefix_columns(state.prefixes),
        "locks": lock_columns(state.locks),
        "shuffles": shuffle_columns(state.shuffles),
    }


SHOWN_STATES: Final = (WAITING, QUEUED, NO_WORKER, PROCESSING, MEMORY, RELEASED, ERRED)


def worker_columns(workers: Iterable[Worker]) -> dict[str, list[Any]]:
    """One entry of each column for each worker."""
    rows = list(workers)
    return {
        "name": [worker.name for worker in rows],
        "address": [worker.address for worker in rows],
        "leaving": [worker.is_leaving for worker in rows],
        "paused": [worker.is_paused for worker in rows],
        "nthreads": [worker.nthreads for worker in rows],
        "memory_bytes": [worker.memory_bytes for worker in rows],
        "memory_limit": [worker.memory_limit for worker in rows],
        "nbytes": [worker.nbytes for worker in rows],
        "spilled_bytes": [worker.spilled_bytes for worker in rows],
        "unmanaged_old_bytes": [worker.unmanaged_old_bytes for worker in rows],
        "container_bytes": [worker.container[0] for worker in rows],
        "container_limit": [worker.container[1] for worker in rows],
        "received_bytes": [worker.received_bytes for worker in rows],
        "nprocessing": [len(worker.processing) for worker in rows],
        "runs": [runs_of(worker) for worker in rows],
    }


def nbusy_of(worker: Worker) -> int:
    """Threads of the worker that execute something; a task that waits for others has none."""
    return min(max(0, worker.nsent - worker.nwaiting), worker.nthreads)


def runs_of(worker: Worker) -> dict[str, int]:
    """Prefix -> how many of its tasks the worker's threads run now, as far as we know.

    It starts what it was sent in that order, so the oldest runs are those that its threads have,
    substitutes for those that wait included.
    """
    looked_at = islice(worker.processing, RUNS_LOOKED_AT_MAX)
    sent = [task.prefix.name for task in looked_at if task.run != NO_RUN]
    return dict(Counter(sent[: worker.nbegun_max]))


def prefix_columns(prefixes: dict[str, Prefix]) -> dict[str, list[Any]]:
    """One entry of each column for each prefix; those with work left first, then the newest."""
    newest = list(islice(reversed(prefixes.values()), PREFIXES_LOOKED_AT_MAX))
    rows = sorted(newest, key=lambda prefix: not nleft(prefix))[:PREFIXES_MAX]
    return {
        "name": [prefix.name for prefix in rows],
        "done": [prefix.nfinished - prefix.nfinished_before for prefix in rows],
        "processing": [prefix.ntasks[PROCESSING] for prefix in rows],
        "left": [nleft(prefix) - prefix.ntasks[PROCESSING] for prefix in rows],
        "erred": [prefix.ntasks[ERRED] for prefix in rows],
        "memory": [prefix.ntasks[MEMORY] for prefix in rows],
        "duration_us": [prefix.duration_us for prefix in rows],
    }


def lock_columns(locks: dict[str, Lock]) -> dict[str, list[Any]]:
    """One entry of each column for each lock that is waited for: what keeps tasks from going on."""
    looked_at = islice(locks.items(), LOCKS_LOOKED_AT_MAX)
    rows = list(islice(((name, lock) for name, lock in looked_at if lock.waiting), LOCKS_MAX))
    return {
        "name": [to_text(Key(name)) for name, _ in rows],
        "holder": [_holder_of(lock) for _, lock in rows],
        "nwaiting": [len(lock.waiting) for _, lock in rows],
    }


def _holder_of(lock: Lock) -> str:
    """The task that holds it for longest, or else the client."""
    claim = lock.holder
    return to_text(Key(lock.held[claim].by)) or claim.client.name


def nleft(prefix: Prefix) -> int:
    """Tasks that are still to be finished."""
    ntasks = prefix.ntasks
    return ntasks[WAITING] + ntasks[QUEUED] + ntasks[NO_WORKER] + ntasks[PROCESSING]
