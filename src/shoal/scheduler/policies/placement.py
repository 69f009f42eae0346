"""Which worker shall run this ready task?  And which shall hold this scattered value?"""

from collections.abc import Iterable

from shoal.scheduler.model.demands import has_left
from shoal.scheduler.model.entities import Task, Worker, aliases_of
from shoal.scheduler.model.settings import SchedulerSettings

INPUTS_LOOKED_AT = 32
"""Inputs weighed per task: more cost time and hardly change the choice."""

HOLDERS_LOOKED_AT = 8
"""Holders of one input that are candidates: of something held everywhere, any will do."""

OUT_OF_REACH_US = 10**12
"""Delay of a fetch from a peer that could not be reached lately: any other way is better."""


class EarliestStart:
    """Place a task where it is expected to start first.

    It starts once the worker's queue has drained and its missing inputs have arrived.  The two
    overlap in practice; adding them is pessimistic, but equally so for every candidate.
    """

    __slots__ = ("bytes_per_us", "latency_us")

    def __init__(self, settings: SchedulerSettings) -> None:
        self.bytes_per_us = settings.bandwidth_bytes_per_second / 1e6
        self.latency_us = settings.fetch_latency_seconds * 1e6

    def choose(self, task: Task, least_loaded: Worker | None, now: float) -> Worker | None:
        """The best among the holders of its inputs and the least loaded worker; None if no worker.

        Ties go to the candidate that was met first.  Cost: O(inputs x holders), both bounded.
        """
        candidates: dict[Worker, None] = {}
        for dependency in task.dependencies[:INPUTS_LOOKED_AT]:
            if dependency.who_has is not None:
                for worker in first(dependency.who_has, HOLDERS_LOOKED_AT):
                    if not worker.is_leaving:
                        candidates[worker] = None
        if least_loaded is not None:
            candidates[least_loaded] = None
        if len(candidates) == 1:
            return next(iter(candidates))
        return self.best(task, candidates, now)

    def best(self, task: Task, candidates: Iterable[Worker], now: float) -> Worker | None:
        """The candidate where `task` would start first; None if there are none."""
        best: Worker | None = None
        least = 0.0
        for worker in candidates:
            queue_us = (worker.sent_us + worker.backlog_us) / worker.nthreads
            delay = queue_us + self.fetch_us(task, worker, now)
            if best is None or delay < least:
                best, least = worker, delay
        return best

    def fewest_actors(self, task: Task, candidates: Iterable[Worker], now: float) -> Worker | None:
        """The candidate with the fewest actors, and of those, where `task` would start first."""
        workers = list(candidates)
        least = min([len(worker.actors) for worker in workers], default=0)
        return self.best(task, [w for w in workers if len(w.actors) == least], now)

    def fetch_us(self, task: Task, worker: Worker, now: float) -> float:
        """Microseconds until the inputs that `worker` lacks have arrived there."""
        total = 0.0
        for dependency in task.dependencies[:INPUTS_LOOKED_AT]:
            if dependency.value is None and dependency not in worker.has_what:
                holders = dependency.who_has
                if holders is None:
                    continue  # it is lost, and the task will not run before it is back
                total += self.latency_us + dependency.nbytes / self.bytes_per_us
                if worker.cannot_reach and all(
                    worker.cannot_reach.get(holder.id, now) > now
                    for holder in first(holders, HOLDERS_LOOKED_AT)
                ):
                    total += OUT_OF_REACH_US
        return total


def has_inputs_to_move(task: Task) -> bool:
    """Whether it matters for `task`'s inputs where it runs: is any too large to travel along?"""
    for dependency in task.dependencies:  # noqa: SIM110
        if dependency.value is None:
            return True
    return False


def idle_holder(task: Task) -> Worker | None:
    """A holder of the first input with a thread to spare; None if there is none.

    For tasks whose inputs are all small: they may run anywhere, but the links of a chain had better
    follow each other on one worker, which then hears of nothing else.
    """
    holders = task.dependencies[0].who_has if task.dependencies else None
    if holders is None:
        return None
    for worker in first(holders, HOLDERS_LOOKED_AT):
        if worker.nsent < worker.nthreads and not worker.backlog and not worker.is_leaving:
            return worker
    return None


def may_run_on(task: Task, worker: Worker) -> bool:
    """Whether the task's restrictions name `worker`, or nobody.

    Other workers are for when none of those named is connected, so nothing is moved to them: it
    would be placed where it came from.
    """
    if task.options.resources and not has_left(worker, task.options.resources):
        return False
    if task.options.actor:  # it was placed with regard to all other actors
        return False
    names = task.options.workers
    return not names or any(name in names for name in aliases_of(worker))


def choose_scatter(workers: list[Worker], cursor: int) -> Worker:
    """The worker for the next scattered value: in turns, each as often as it has threads.

    `cursor`: how many values were placed before.  Cost: O(workers).
    """
    turn = cursor % sum(worker.nthreads for worker in workers)
    for worker in workers:
        turn -= worker.nthreads
        if turn < 0:
            return worker
    raise AssertionError("a turn is less than the number of threads")


def first(workers: list[Worker], n: int) -> list[Worker]:
    """The first `n` of `workers`, without a copy when there are no more."""
    return workers if len(workers) <= n else workers[:n]
