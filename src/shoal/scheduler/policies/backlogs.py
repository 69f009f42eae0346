"""How many of the tasks that were placed on a worker go before one, and how long they take."""

from bisect import bisect_left
from collections.abc import Callable, Iterable
from itertools import accumulate, islice
from typing import Final

from shoal.scheduler.model.entities import NO_RUN, Task, Worker

PLACED_LOOKED_AT: Final = 10_000
"""Placed tasks that are looked at for all that is asked about at once; some ms."""


class Work:
    """Tasks, and what they take together as far as that is known."""

    __slots__ = ("known_us", "nknown", "ntasks")

    def __init__(self, ntasks: int, nknown: int, known_us: int) -> None:
        self.ntasks = ntasks
        self.nknown = nknown  # of them, those of which it is known
        self.known_us = known_us


class Backlog:
    """What was placed on one worker, in the order in which it goes."""

    __slots__ = ("_known_us", "_nknown", "_priorities", "_runs", "is_all")

    def __init__(self, tasks: list[Task], known_us: Callable[[Task], int], *, is_all: bool) -> None:
        """
        Args:
            known_us: what a task is expected to run; -1: nobody knows.
            is_all: whether `tasks` are all that were placed there.
        """
        self.is_all = is_all
        rows = sorted((task.priority, known_us(task)) for task in tasks)
        self._priorities = [priority for priority, _ in rows]
        self._known_us = list(accumulate((max(0, us) for _, us in rows), initial=0))
        self._nknown = list(accumulate((us >= 0 for _, us in rows), initial=0))
        self._runs = sorted(task.run for task in tasks if task.run != NO_RUN)

    def before(self, task: Task) -> Work:
        """What goes before `task`, which was not sent.  Cost: O(log tasks)."""
        place = bisect_left(self._priorities, task.priority)
        return Work(place, self._nknown[place], self._known_us[place])

    def nsent_before(self, task: Task) -> int:
        """How many that have not ended were sent before `task`.  Cost: O(log tasks)."""
        return bisect_left(self._runs, task.run)


class Backlogs:
    """Those of all workers, made as they are asked for; together they are bounded."""

    __slots__ = ("_found", "_nleft")

    def __init__(self, nlooks_max: int = PLACED_LOOKED_AT) -> None:
        self._found: dict[Worker, Backlog] = {}
        self._nleft = nlooks_max

    def of(self, worker: Worker, known_us: Callable[[Task], int]) -> Backlog:
        """What is placed on `worker`.  Cost: O(tasks placed there), the first time."""
        found = self._found.get(worker)
        if found is None:
            tasks = list(islice(worker.processing, self._nleft))
            self._nleft -= len(tasks)
            is_all = len(tasks) == len(worker.processing)
            found = self._found[worker] = Backlog(tasks, known_us, is_all=is_all)
        return found


def work_of(expected_us: Iterable[int]) -> Work:
    """Of tasks that are expected to run so long; -1: nobody knows."""
    us = list(expected_us)
    known = [one for one in us if one >= 0]
    return Work(len(us), len(known), sum(known))
