"""How many queued tasks go before one, and whose they are.

Tasks that may take much memory, and those that need resources or have limits, wait in queues of
their own.  All are in one order, but what waits for something else than its turn is passed.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from operator import attrgetter
from typing import Final

from shoal.scheduler.model.demands import DemandKey, demand_key, is_demanding
from shoal.scheduler.model.entities import QUEUED, Client, Task
from shoal.scheduler.model.queue import TaskQueue
from shoal.scheduler.model.shares import SEQUENCE_BITS
from shoal.scheduler.model.state import SchedulerState

QUEUED_LOOKED_AT: Final = 10_000
"""Of each order so many are looked at."""

NEIGHBOURS_LOOKED_AT: Final = 64
"""Of those that go before a task, the nearest, to find out whose turns there are."""

DEPENDENTS_LOOKED_AT: Final = 32
"""Of a task that no client wants itself, until one is found that somebody wants."""

WEIGHTS_NAMED: Final = 4
"""Clients that are named with their weights; of more, how many there are."""

_by_priority = attrgetter("priority")


class Lines:
    """The orders as they are at one moment, made as they are asked for."""

    __slots__ = ("_orders", "_state")

    def __init__(self, state: SchedulerState) -> None:
        self._state = state
        self._orders: dict[
            DemandKey | None, tuple[list[Task], bool]
        ] = {}  # and whether that is all of it

    def ahead(self, task: Task) -> Iterator[str]:
        """How many go before this queued task; if others' turns are among them, by which weights.

        Cost: O(queued tasks) for the first of each order, then O(log of them).
        """
        if is_demanding(task.options):
            alike, is_all = self._order(demand_key(task.options))
            place = bisect_left(alike, task.priority, key=_by_priority)
            if place:
                yield f"{_counted(place, is_all)} that need the same go before it"
        else:
            alike, is_all = self._order(None)
            place = bisect_left(alike, task.priority, key=_by_priority)
            yield f"{_counted(place, is_all)} go before it"
        yield from self._turns(task, alike[max(0, place - NEIGHBOURS_LOOKED_AT) : place])

    def _order(self, key: DemandKey | None) -> tuple[list[Task], bool]:
        """The tasks of a demand, or, for None, all that need nothing but room; in their order."""
        found = self._orders.get(key)
        if found is not None:
            return found
        state = self._state
        queues: Iterable[TaskQueue]
        if key is None:
            queues = chain((state.queue,), state.footprints.queues.values())
        else:
            demand = state.demands.get(key)
            queues = () if demand is None else (demand.queue,)
        entries = (task for queue in queues for _, _, run in queue.runs for task in run)
        some = dict.fromkeys(islice(entries, QUEUED_LOOKED_AT + 1))
        is_all = len(some) <= QUEUED_LOOKED_AT
        tasks = sorted((t for t in some if t.state == QUEUED), key=_by_priority)
        self._orders[key] = tasks, is_all
        return tasks, is_all

    def _turns(self, task: Task, neighbours: list[Task]) -> Iterator[str]:
        """While several clients submit: whose tasks are before it, and by which weights."""
        shares = self._state.shares
        if not (shares.is_shared and neighbours):
            return
        own, urgency = _client_of(task), task.priority >> SEQUENCE_BITS
        alike = [other for other in neighbours if other.priority >> SEQUENCE_BITS == urgency]
        owners = [_client_of(other) for other in alike]
        others = [owner for owner in owners if owner is not None and owner is not own]
        if own is None or not others:
            return
        weights = {
            client: shares.flows[client] for client in (own, *others) if client in shares.flows
        }
        named = ", ".join(f"{c.name} {w:g}" for c, w in islice(weights.items(), WEIGHTS_NAMED))
        more = len(weights) - WEIGHTS_NAMED
        named += f" and {more} more" if more > 0 else ""
        which = f"{len(alike)} next before it" if len(alike) > 1 else "one next before it"
        yield (
            f"clients take turns, and of the {which} {len(others)} are other clients'; their "
            f"weights: {named}"
        )


def _counted(ntasks: int, is_all: bool) -> str:
    return f"{'' if is_all else 'at least '}{ntasks} queued tasks"


def _client_of(task: Task) -> Client | None:
    """Who wants the task, or what is the nearest to depend on it.

    Cost: O(dependents), as long as they are few.
    """
    due = [task]
    seen = {task: None}
    while due:
        nearer, due = due, []
        for candidate in nearer:
            if candidate.wants:
                return candidate.wants[0][0]
            for dependent in islice(candidate.dependents or (), DEPENDENTS_LOOKED_AT):
                if len(seen) < DEPENDENTS_LOOKED_AT and dependent not in seen:
                    seen[dependent] = None
                    due.append(dependent)
    return None
