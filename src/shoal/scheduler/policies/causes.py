"""Of all that an unfinished task depends on, which one is it that keeps it waiting?

The one that weighs most, not the first that is found: what no worker may run goes before what waits
for its turn, and that before what runs, as all others end by themselves.
"""

from collections import deque
from collections.abc import Callable
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

LOOKED_AT_MAX: Final = 20_000
"""Inputs, and inputs of those, that are looked at for all that is asked about at once; 10 ms."""

NOBODY, FAILED, NOT_BROUGHT, KEPT, RUNS, READY, WAITS = range(7)
"""What a task waits for, the worst first: no worker may run it, it has failed, a client is to bring
it, something keeps it though it is ready; it is placed, it is queued, it waits for others."""


class Cause:
    """What a task waits for in the end, and the way from there."""

    __slots__ = ("path", "weight")

    def __init__(self, weight: int, path: list[Task]) -> None:
        self.weight = weight
        self.path = path  # from the task in question, which is not in it, to the cause

    @property
    def task(self) -> Task:
        """The one that keeps the others waiting."""
        return self.path[-1]

    @property
    def ends_by_itself(self) -> bool:
        """Whether it is a matter of time."""
        return self.weight > KEPT


class Causes:
    """Looks for causes; all looks together are bounded."""

    __slots__ = ("_is_kept", "_nleft", "_state")

    def __init__(
        self,
        state: SchedulerState,
        is_kept: Callable[[Task], bool],
        nlooks_max: int = LOOKED_AT_MAX,
    ) -> None:
        """
        Args:
            is_kept: whether a ready task waits for something else than its turn.
            nlooks_max: tasks that are looked at, whoever's causes they may be.
        """
        self._state = state
        self._is_kept = is_kept
        self._nleft = nlooks_max

    def of(self, task: Task) -> tuple[Cause | None, bool]:
        """What `task` waits for, the nearest of those that weigh as much, and whether all that it
        depends on was looked at.

        Cost: O(inputs of what is unfinished), as long as those are not too many.
        """
        due = deque((task,))
        before: dict[Task, Task | None] = {task: None}  # what depends on it, of those looked at
        worst, found = WAITS + 1, None
        while due and worst > NOBODY:
            following = due.popleft()
            for dependency in following.dependencies:
                if self._nleft <= 0:
                    return _traced(found, worst, before), False
                self._nleft -= 1
                if dependency.state == MEMORY or dependency in before:
                    continue
                before[dependency] = following
                due.append(dependency)
                weight = self._weight(dependency)
                if weight < worst:
                    worst, found = weight, dependency
        return _traced(found, worst, before), True

    def _weight(self, task: Task) -> int:
        state = task.state
        if state == WAITING:
            if task.code is None:
                return NOT_BROUGHT
            return WAITS if task.nwaiting else READY
        if state == NO_WORKER:
            return NOBODY
        if state == ERRED:
            return FAILED
        if state == QUEUED:
            if not self._state.workers:
                return NOBODY
            return KEPT if self._is_kept(task) else READY
        if state == PROCESSING:
            return KEPT if self._is_kept(task) else RUNS
        if state == RELEASED and task.key in self._state.orphans.by_key:
            return RUNS  # or is there, and about to be told so
        return WAITS


def _traced(found: Task | None, weight: int, before: dict[Task, Task | None]) -> Cause | None:
    """The way back to the task in question."""
    if found is None:
        return None
    path = []
    task: Task | None = found
    while task is not None:
        path.append(task)
        task = before[task]
    return Cause(weight, path[-2::-1])
