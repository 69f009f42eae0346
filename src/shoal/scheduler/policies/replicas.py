"""Which workers shall get copies of a result, and which copies are too many?"""

from collections.abc import Iterable, Mapping
from typing import Final

from shoal.scheduler.model.copies import Goal
from shoal.scheduler.model.entities import Task, Worker
from shoal.scheduler.policies.measures import optimistic

MEMORY_ASSUMED: Final = 4e9
"""Bytes of a worker without a limit, so that it can be compared with others."""

SOURCES_MAX: Final = 8
"""Holders that a worker is told to get a copy from; with so many, one will do."""


def fullness(worker: Worker, coming_nbytes: int = 0) -> float:
    """How much of its memory is taken, by what stays, results on their way included."""
    return (optimistic(worker) + coming_nbytes) / (worker.memory_limit or MEMORY_ASSUMED)


def recipients(
    goal: Goal,
    task: Task,
    workers: Iterable[Worker],
    coming: Iterable[Worker],
    refused: Iterable[Worker],
    coming_nbytes: Mapping[Worker, int],
) -> tuple[list[Worker], int]:
    """Who shall be told now to get a copy, and how many more are lacking after those.

    The emptiest first, and no paused ones; only so many at once that each holder serves `branching`
    of them.

    Args:
        workers: that count for the goal and stay.
        coming: those that are getting a copy.
        refused: those that could not get one.
        coming_nbytes: what is on its way to each worker already, of any results.
    """
    there = list(workers)
    on_way = dict.fromkeys(coming)
    excluded = dict.fromkeys(refused)
    nthere = sum(task in worker.has_what or worker in on_way for worker in there)
    wanted = len(there) if goal.ncopies == 0 else min(goal.ncopies, len(there))
    lacking = [
        worker
        for worker in there
        if worker.takes_work
        and task not in worker.has_what
        and worker not in on_way
        and worker not in excluded
    ]
    nlacking = max(0, min(wanted - nthere, len(lacking)))
    nholders = len(task.who_has or ()) or 1
    ncoming = sum(task not in worker.has_what for worker in on_way)
    at_once = max(0, max(1, goal.branching) * nholders - ncoming)
    lacking.sort(key=lambda worker: fullness(worker, coming_nbytes.get(worker, 0)))
    chosen = lacking[: min(nlacking, at_once)]
    return chosen, nlacking - len(chosen)


def sources(task: Task, recipient: Worker, nbegun: int) -> list[Worker]:
    """Whom to ask for a copy, one after the other: not the same ones first each time.

    Those that stay before those that leave; no more than will be asked.

    Args:
        nbegun: how many copies were begun before this one.
    """
    holders = task.who_has or []
    staying: list[Worker] = []
    leaving: list[Worker] = []
    for index in range(nbegun, nbegun + len(holders)):
        holder = holders[index % len(holders)]
        if holder is not recipient:
            (leaving if holder.is_leaving else staying).append(holder)
        if len(staying) == SOURCES_MAX:
            break
    return (staying + leaving)[:SOURCES_MAX]


def surplus(goal: Goal, task: Task, workers: Iterable[Worker]) -> list[Worker]:
    """Who shall drop a copy that is more than the goal asks for: the fullest; never the last."""
    if goal.ncopies == 0:
        return []
    holders = [worker for worker in workers if task in worker.has_what]
    holders.sort(key=fullness, reverse=True)
    return holders[: max(0, len(holders) - goal.ncopies)]
