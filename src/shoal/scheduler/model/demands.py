"""Tasks that need amounts of something of their worker, while they wait for one that has it."""

from collections.abc import Iterable, Mapping

from shoal.scheduler.model.entities import Task, Worker
from shoal.scheduler.model.queue import TaskQueue

DemandKey = tuple[tuple[tuple[str, float], ...], tuple[str, ...], bool]

TOLERANCE = 1e-9
"""Amounts are summed up; ten times a tenth shall be no more than one."""


class Demand:
    """All queued tasks that need the same, the most urgent first."""

    __slots__ = ("allows_others", "key", "queue", "resources", "workers")

    def __init__(self, task: Task) -> None:
        options = task.options
        self.key = demand_key(task)
        self.resources = options.resources
        self.workers = options.workers  # addresses, names or hosts that may run them; [] = any
        self.allows_others = options.allow_other_workers
        self.queue = TaskQueue()

    def __repr__(self) -> str:
        return f"<Demand for {self.resources}, {self.queue.nentries} entries>"


def demand_key(task: Task) -> DemandKey:
    """What a task has in common with others of the same demand."""
    options = task.options
    return (
        tuple(sorted(options.resources.items())),
        tuple(options.workers),
        options.allow_other_workers,
    )


def offers(worker: Worker, resources: Mapping[str, float]) -> bool:
    """Whether `worker` has that much, if nothing else is run there."""
    own = worker.resources
    return all(own.get(name, 0.0) + TOLERANCE >= amount for name, amount in resources.items())


def has_left(worker: Worker, resources: Mapping[str, float]) -> bool:
    """Whether `worker` has that much beside what is run there."""
    left = worker.available
    return all(left.get(name, 0.0) + TOLERANCE >= amount for name, amount in resources.items())


def able_workers(
    demand: Demand, workers: Iterable[Worker], named: Mapping[Worker, None]
) -> list[Worker]:
    """Those of `workers` that may run tasks of this demand.

    Args:
        named: all workers that its `workers` mean.
    """
    able = [w for w in workers if not w.is_leaving and offers(w, demand.resources)]
    if not demand.workers:
        return able
    if demand.allows_others and not any(
        not w.is_leaving and offers(w, demand.resources) for w in named
    ):
        return able
    return [worker for worker in able if worker in named]
