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
"""Of all orders together so many are looked at; some ms."""

NEIGHBOURS_LOOKED_AT: Final = 64
"""Of those that go before a task, the nearest, to find out whose turns there are."""

DEPENDENTS_LOOKED_AT: Final = 32
"""Of a task that no client wants itself, until one is found that somebody wants."""

OWNERS_LOOKED_FOR: Final = 10_000
"""Tasks that are looked at for that, for all that is asked about at once."""

WEIGHTS_NAMED: Final = 4
"""Clients that are named with their weights; of more, how many there are."""

_by_priority = attrgetter("priority")


class Lines:
    """The orders as they are at one moment, made as they are asked for."""

    __slots__ = ("_nleft", "_nowners_left", "_orders", "_owners", "_state")

    def __init__(self, state: SchedulerState, nlooks_max: int = QUEUED_LOOKED_AT) -> None:
        """
        Args:
            nlooks_max: queued tasks that are looked at, in whatever orders they may be.
        """
        self._state = state
        self._nleft = nlooks_max
        self._nowners_left = OWNERS_LOOKED_FOR
        self._owners: dict[Task, Client | None] = {}
        self._orders: dict[
            DemandKey | None, tuple[list[Task], bool]
        ] = {}  # and whether that is all of it

    def ahead(self, task: Task) -> Iterator[str]:
        """How many go before this queued task; if others' turns are among them, by which weights.

        Cost: O(queued tasks) for the first of each order, then O(log of them).
        """
        key = demand_key(task.options) if is_demanding(task.options) else None
        alike, is_all = self._order(key)
        place = bisect_left(alike, task.priority, key=_by_priority)
        which = "" if key is None else " that need the same"
        if place or (is_all and key is None):
            at_least = "" if is_all else "at least "
            yield f"{at_least}{place} queued tasks{which} go before it"
        elif not is_all:
            nmost = sum(queue.nentries for queue in self._queues(key))
            yield f"some of up to {nmost} queued tasks{which} may go before it"
        yield from self._turns(task, alike[max(0, place - NEIGHBOURS_LOOKED_AT) : place])

    def _queues(self, key: DemandKey | None) -> Iterable[TaskQueue]:
        """Where the tasks of a demand wait, or, for None, all that need nothing but room."""
        state = self._state
        if key is None:
            return chain((state.queue,), state.footprints.queues.values())
        demand = state.demands.get(key)
        return () if demand is None else (demand.queue,)

    def _order(self, key: DemandKey | None) -> tuple[list[Task], bool]:
        """Those tasks in their order, and whether that is all of them."""
        found = self._orders.get(key)
        if found is not None:
            return found
        entries = (task for queue in self._queues(key) for _, _, run in queue.runs for task in run)
        some = list(islice(entries, self._nleft))
        self._nleft -= len(some)
        is_all = next(entries, None) is None
        queued = dict.fromkeys(task for task in some if task.state == QUEUED)
        tasks = sorted(queued, key=_by_priority)
        self._orders[key] = tasks, is_all
        return tasks, is_all

    def _turns(self, task: Task, neighbours: list[Task]) -> Iterator[str]:
        """While several clients submit: whose tasks are before it, and by which weights."""
        shares = self._state.shares
        if not (shares.is_shared and neighbours):
            return
        own, urgency = self._owner(task), task.priority >> SEQUENCE_BITS
        alike = [other for other in neighbours if other.priority >> SEQUENCE_BITS == urgency]
        owners = [self._owner(other) for other in alike]
        others = [owner for owner in owners if owner is not None and owner is not own]
        if own is None or not others or self._nowners_left <= 0:
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

    def _owner(self, task: Task) -> Client | None:
        """Whose it is; None if that is not found, as nobody's is, or too many were looked at."""
        if task in self._owners:
            return self._owners[task]
        if self._nowners_left <= 0:
            return None
        owner, nlooks = _client_of(task)
        self._nowners_left -= nlooks
        self._owners[task] = owner
        return owner


def _client_of(task: Task) -> tuple[Client | None, int]:
    """Who wants the task, or what is the nearest to depend on it, and how many were looked at.

    Cost: O(dependents), as long as they are few.
    """
    due = [task]
    seen = {task: None}
    while due:
        nearer, due = due, []
        for candidate in nearer:
            if candidate.wants:
                return candidate.wants[0][0], len(seen)
            for dependent in islice(candidate.dependents or (), DEPENDENTS_LOOKED_AT):
                if len(seen) < DEPENDENTS_LOOKED_AT and dependent not in seen:
                    seen[dependent] = None
                    due.append(dependent)
    return None, len(seen)
