"""The scheduler in sixteen numbers, under the names that scripts know from upstream."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil
from typing import Final

from shoal.scheduler.model.entities import (
    ERRED,
    MEMORY,
    NO_WORKER,
    PROCESSING,
    QUEUED,
    RELEASED,
    WAITING,
    Task,
)
from shoal.scheduler.model.state import SchedulerState

FULL_RATIO: Final = 0.6
"""Of all workers' memory: with more in use, twice the workers are asked for."""


def counts(state: SchedulerState, nawaited: int, target_seconds: float) -> dict[str, int]:
    """All counts.

    Args:
        nawaited: see `nawaited_in`.
        target_seconds: how long the work at hand may take.

    Cost: O(workers + prefixes).
    """
    workers = list(state.workers.values())
    return {
        "bytes": sum(worker.nbytes for worker in workers),
        "clients": len(state.clients),
        "cores": sum(worker.nthreads for worker in workers),
        "erred": state.ntasks[ERRED],
        "hosts": len({worker.host for worker in workers}),
        "idle": sum(len(worker.processing) < worker.nthreads for worker in workers),
        "memory": state.ntasks[MEMORY],
        "processing": state.ntasks[PROCESSING],
        "released": state.ntasks[RELEASED],
        "saturated": len(state.piped),
        "tasks": len(state.tasks),
        "unrunnable": state.ntasks[NO_WORKER] + (0 if workers else state.ntasks[QUEUED]),
        "waiting": state.ntasks[WAITING],
        "waiting_data": nawaited,
        "workers": len(workers),
        "desired_workers": nworkers_desired(state, target_seconds),
    }


def nawaited_in(tasks: Iterable[Task]) -> int:
    """How many inputs these wait for, each counted for every task that waits for it."""
    return sum(task.nwaiting for task in tasks if task.state == WAITING)


def nworkers_desired(state: SchedulerState, target_seconds: float) -> int:
    """Workers of the present kind that would end what is ready within `target_seconds`.

    Cost: O(workers + prefixes).
    """
    nready = work_us = 0
    unknown_us = round(state.settings.unknown_duration_seconds * 1e6)
    for prefix in state.prefixes.values():
        n = prefix.ntasks[QUEUED] + prefix.ntasks[NO_WORKER] + prefix.ntasks[PROCESSING]
        nready += n
        work_us += n * (prefix.duration_us if prefix.duration_us >= 0 else unknown_us)
    workers = list(state.workers.values())
    if not nready:
        return 0
    if not workers:
        return 1
    nthreads = min(nready, ceil(work_us / (target_seconds * 1e6)))
    nworkers = max(1, ceil(nthreads * len(workers) / sum(worker.nthreads for worker in workers)))
    limit = sum(worker.memory_limit for worker in workers)
    if limit and sum(worker.nbytes for worker in workers) > FULL_RATIO * limit:
        nworkers = max(nworkers, 2 * len(workers))
    return nworkers
