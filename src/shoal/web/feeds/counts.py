"""The scheduler in sixteen numbers, under the names that scripts know from upstream."""

from __future__ import annotations

from collections.abc import Iterable

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
from shoal.scheduler.policies.scaling import deserved, target_of


def counts(state: SchedulerState, nawaited: int, target_seconds: float) -> dict[str, int]:
    """All counts.

    Args:
        nawaited: see `nawaited_in`.
        target_seconds: how long the work at hand may take.

    Cost: O(workers x log workers + prefixes).
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
        "desired_workers": target_of(deserved(state, target_seconds)),
    }


def nawaited_in(tasks: Iterable[Task]) -> int:
    """How many inputs these wait for, each counted for every task that waits for it."""
    return sum(task.nwaiting for task in tasks if task.state == WAITING)
