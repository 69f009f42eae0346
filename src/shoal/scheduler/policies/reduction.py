"""Which copies of a result does nobody need, and which of those goes first?"""

from collections.abc import Iterable, Mapping
from heapq import nlargest
from typing import Final, NamedTuple

from shoal.scheduler.model.copies import Goal
from shoal.scheduler.model.entities import NEEDS_INPUTS, NO_RUN, Task, Worker
from shoal.scheduler.policies.measures import Measure

DEPENDENTS_MAX: Final = 1000
"""Dependents that are looked at; a result with more of them that still wait keeps its copies."""

DROPS_MAX: Final = 100
"""Copies of one result that are chosen at once; a result with more of no use is looked at again."""


class Uses(NamedTuple):
    """What waits for a result, and where."""

    workers: Mapping[Worker, None]
    """Where dependents are placed or run."""
    nunplaced: int
    """Dependents that may still go anywhere."""
    is_read_from_afar: bool
    """A dependent was sent to a worker without a copy, which may ask any holder for it."""

    @property
    def ncopies(self) -> int:
        """How many copies are of use; the last one always is."""
        return max(1, len(self.workers) + self.nunplaced)


NO_USES: Final = Uses({}, 0, False)


def uses_of(task: Task) -> Uses | None:
    """Where the result is needed; None if so many need it that all copies are of use.

    Cost: O(dependents), of which it looks at no more than DEPENDENTS_MAX.
    """
    dependents = task.dependents
    if dependents is None or not task.nwaiters:
        return NO_USES
    if len(dependents) > DEPENDENTS_MAX:
        return None
    workers: dict[Worker, None] = {}
    nunplaced = 0
    is_read_from_afar = False
    for dependent in dependents:
        if dependent.state not in NEEDS_INPUTS:
            continue
        worker = dependent.worker
        if worker is None:
            nunplaced += 1
        else:
            workers[worker] = None
            if dependent.run != NO_RUN and task not in worker.has_what:
                is_read_from_afar = True
    return Uses(workers, nunplaced, is_read_from_afar)


def copies_too_many(
    task: Task,
    uses: Uses,
    goal: Goal | None,
    counting: Mapping[Worker, object] | None,
    memory_of: Measure,
) -> list[Worker]:
    """Who shall drop a copy: where memory is fullest, and never where the result is in use.

    Paused workers first, and so that one stays that takes work, if there is one.  Copies with
    workers that leave are neither counted nor dropped: they go by themselves.  No more than
    DROPS_MAX.

    Args:
        goal: how many copies there shall be whoever needs them; None: nobody has said.
        counting: workers whose copies count for the goal; None: all.

    Cost: O(holders).
    """
    holders = [worker for worker in task.who_has or () if not worker.is_leaving]
    nleft = len(holders)
    if nleft <= uses.ncopies:
        return []
    for_goal: dict[Worker, None] = {}
    nspare = 0
    if goal is not None:
        for_goal, nspare = _for_goal(holders, goal, counting)
    nworking = sum(worker.takes_work for worker in holders)
    able = [w for w in holders if w not in uses.workers and (nspare > 0 or w not in for_goal)]
    chosen: list[Worker] = []
    for worker in nlargest(DROPS_MAX, able, lambda w: (not w.takes_work, memory_of(w))):
        if nleft <= uses.ncopies:
            break
        if worker.takes_work and nworking == 1:
            continue
        if worker in for_goal:
            if nspare == 0:
                continue
            nspare -= 1
        nleft -= 1
        nworking -= worker.takes_work
        chosen.append(worker)
    return chosen


def choose_dropper(
    task: Task,
    uses: Uses,
    candidates: Iterable[Worker],
    gone: Mapping[Worker, object],
    memory_of: Measure,
) -> Worker | None:
    """Which of the candidates drops a copy, as somebody suggests; None if none may.

    The last copy stays, also the last with a worker that takes work, and so do those in use.

    Args:
        gone: who is about to drop a copy already.
    """
    holders = [worker for worker in task.who_has or () if worker not in gone]
    if len(holders) < 2 or uses.is_read_from_afar:
        return None
    is_last = sum(worker.takes_work for worker in holders) == 1
    able = [
        worker
        for worker in candidates
        if task in worker.has_what
        and worker not in gone
        and worker not in uses.workers
        and not (is_last and worker.takes_work)
    ]
    return max(able, key=lambda w: (not w.takes_work, memory_of(w)), default=None)


def _for_goal(
    holders: Iterable[Worker], goal: Goal, counting: Mapping[Worker, object] | None
) -> tuple[dict[Worker, None], int]:
    """Whose copies count for the goal, and how many of those are more than it asks for."""
    there = {worker: None for worker in holders if counting is None or worker in counting}
    return there, max(0, len(there) - goal.ncopies) if goal.ncopies else 0


def choose_recipient(
    task: Task,
    candidates: Iterable[Worker],
    coming: Mapping[Worker, object],
    refused: Mapping[Worker, object],
    memory_of: Measure,
) -> Worker | None:
    """Who gets a copy, as somebody suggests: whoever has least in memory; None if nobody can.

    Args:
        coming: who gets one already.
        refused: who could not get one before, and is asked if there is nobody else.
    """
    able = [
        worker
        for worker in candidates
        if worker.takes_work and task not in worker.has_what and worker not in coming
    ]
    return min(able, key=lambda w: (w in refused, memory_of(w)), default=None)
