"""Which workers shall get copies of a result, and which copies are too many?"""

from collections.abc import Iterable
from typing import Final

from shoal.scheduler.model.copies import Goal
from shoal.scheduler.model.entities import Task, Worker

MEMORY_ASSUMED: Final = 4e9
"""Bytes of a worker without a limit, so that it can be compared with others."""


def fullness(worker: Worker, coming_nbytes: int = 0) -> float:
    """How much of its memory results take, those that are on their way included."""
    return (worker.nbytes + coming_nbytes) / (worker.memory_limit or MEMORY_ASSUMED)


def recipients(
    goal: Goal,
    task: Task,
    workers: Iterable[Worker],
    coming: Iterable[Worker],
    refused: Iterable[Worker],
) -> tuple[list[Worker], int]:
    """Who shall be told now to get a copy, and how many more are lacking after those.

    The emptiest first; only so many at once that each holder serves `branching` of them.

    Args:
        workers: that count for the goal and stay.
        coming: those that are getting a copy.
        refused: those that could not get one.
    """
    there = list(workers)
    on_way = dict.fromkeys(coming)
    excluded = dict.fromkeys(refused)
    nthere = sum(task in worker.has_what or worker in on_way for worker in there)
    wanted = len(there) if goal.ncopies == 0 else min(goal.ncopies, len(there))
    lacking = [
        worker
        for worker in there
        if task not in worker.has_what and worker not in on_way and worker not in excluded
    ]
    nlacking = max(0, min(wanted - nthere, len(lacking)))
    nholders = len(task.who_has or ()) or 1
    ncoming = sum(task not in worker.has_what for worker in on_way)
    at_once = max(0, max(1, goal.branching) * nholders - ncoming)
    lacking.sort(key=fullness)
    chosen = lacking[: min(nlacking, at_once)]
    return chosen, nlacking - len(chosen)


def surplus(goal: Goal, task: Task, workers: Iterable[Worker]) -> list[Worker]:
    """Who shall drop a copy that is more than the goal asks for: the fullest; never the last."""
    if goal.ncopies == 0:
        return []
    holders = [worker for worker in workers if task in worker.has_what]
    holders.sort(key=fullness, reverse=True)
    return holders[: max(0, len(holders) - goal.ncopies)]
