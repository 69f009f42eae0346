"""Tasks that need amounts of something of their worker, or of which only so many may run at once,
while they wait."""

from collections.abc import Collection, Mapping
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from shoal.ids import TaskId
from shoal.protocol.messages import TaskOptions
from shoal.scheduler.model.entities import Task, Worker
from shoal.scheduler.model.queue import TaskQueue

DemandKey = tuple[tuple[tuple[str, float], ...], tuple[str, ...], bool, tuple[tuple[str, int], ...]]

LineKey = tuple[tuple[str, ...], tuple[str, ...], bool, tuple[str, ...]]

Entry = tuple[int, int, int, "Demand"]
"""Priority and number of a demand's most urgent task, what makes entries distinct, the demand."""


class Told(NamedTuple):
    """That a client was told of tasks that need the same, and how often."""

    at: float
    task: TaskId  # the first of them: once it waits no more, another that does is news
    ntimes: int


TOLERANCE = 1e-9
"""Amounts are summed up; ten times a tenth shall be no more than one."""

STALE_MAX = 256
"""Entries that hold no more which may be kept beside as many live ones."""


class Demand:
    """All queued tasks that need the same, the most urgent first."""

    __slots__ = (
        "allows_others",
        "entry",
        "key",
        "limits",
        "parked_at",
        "queue",
        "resources",
        "workers",
    )

    def __init__(self, task: Task) -> None:
        options = task.options
        self.key = demand_key(options)
        self.resources = options.resources
        self.workers = options.workers  # addresses, names or hosts that may run them; [] = any
        self.allows_others = options.allow_other_workers
        self.limits = options.limits
        self.queue = TaskQueue()
        self.entry: Entry | None = None  # the one that holds, of its line or of `Limits`
        self.parked_at: tuple[str, int] | None = None  # name, as said, that it waits for there

    @property
    def is_for_any(self) -> bool:
        """Whether any worker with room will do."""
        return not (self.resources or self.workers)

    def __repr__(self) -> str:
        needs = {**self.resources, **self.limits}
        return f"<Demand for {needs}, {self.queue.nentries} entries>"


class Line:
    """Demands that differ in amounts and numbers alone, the most urgent first.

    They need the same things of the same workers, so what the first waits for is kept from those
    behind it, and few of them have to be looked at, however many there are.
    """

    __slots__ = ("demands", "entries", "least", "serial")

    def __init__(self, demands: dict[DemandKey, Demand]) -> None:
        """
        Args:
            demands: all that there are; those without tasks go when they would be the first.
        """
        self.demands = demands
        self.least: dict[str, float] = {}  # no demand in it needs less of any of its resources
        self.entries: list[Entry] = []  # heap
        self.serial = 0

    def enter(self, demand: Demand) -> None:
        """Put a demand where its most urgent task belongs; one without tasks goes."""
        task = demand.queue.peek()
        if task is None:
            demand.entry = None
            if self.demands.get(demand.key) is demand:
                del self.demands[demand.key]
            return
        for name, amount in demand.resources.items():
            self.least[name] = min(amount, self.least.get(name, amount))
        self.serial += 1
        demand.entry = (task.priority, task.id, self.serial, demand)
        heappush(self.entries, demand.entry)
        if len(self.entries) > 2 * len(self.demands) + STALE_MAX:
            self.entries = [entry for entry in self.entries if entry[3].entry is entry]
            heapify(self.entries)

    def first(self) -> Entry | None:
        """That of the demand with the most urgent task; None if there is none left."""
        while self.entries:
            entry = self.entries[0]
            demand = entry[3]
            task = demand.queue.peek()
            if demand.entry is not entry:
                heappop(self.entries)
            elif task is None or task.id != entry[1]:
                heappop(self.entries)
                self.enter(demand)
            else:
                return entry
        return None


def line_key(demand: Demand) -> LineKey:
    """What a demand has in common with others of its line."""
    resources, workers, allows_others, limits = demand.key
    return (
        tuple(name for name, _ in resources),
        workers,
        allows_others,
        tuple(name for name, _ in limits),
    )


def is_demanding(options: TaskOptions) -> bool:
    """Whether such tasks wait as part of a demand."""
    return bool(options.resources or options.limits)


def demand_key(options: TaskOptions) -> DemandKey:
    """What a task has in common with others of the same demand."""
    return (
        tuple(sorted(options.resources.items())),
        tuple(options.workers),
        options.allow_other_workers,
        tuple(sorted(options.limits.items())),
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
    demand: Demand, workers: Collection[Worker], named: Mapping[Worker, None]
) -> list[Worker]:
    """Those of `workers` that may run tasks of this demand.

    Args:
        named: all workers that its `workers` mean.

    Cost: O(workers), or O(named) if none else may.
    """
    if demand.workers:
        able = [w for w in named if w.takes_work and offers(w, demand.resources)]
        if able or not demand.allows_others:
            return [worker for worker in able if worker in workers]
    return [w for w in workers if w.takes_work and offers(w, demand.resources)]


def may_be_met(demand: Demand, workers: Collection[Worker], named: Mapping[Worker, None]) -> bool:
    """Whether there is any able worker."""
    if demand.workers:
        if any(w.takes_work and offers(w, demand.resources) for w in named):
            return True
        if not demand.allows_others:
            return False
    return any(w.takes_work and offers(w, demand.resources) for w in workers)
