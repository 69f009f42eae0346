"""Tasks that wait for what those that submitted them have: their limit's places, or resources.

A run keeps both until it ends.  If all places are had by runs that have submitted tasks which need
one, and these runs wait for those tasks, nobody ever goes on.  Nothing is changed about that, as
they may as well not wait; but whoever wants their results is told.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from shoal.protocol.limits import PlacesHeld
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.machine.unmet import is_news, who_waits
from shoal.scheduler.model.demands import Demand, able_workers
from shoal.scheduler.model.entities import QUEUED, Task
from shoal.scheduler.model.state import SchedulerState
from shoal.scheduler.policies.explain import holders_outside

TASKS_LOOKED_AT: Final = 1000
"""Queued tasks of which it is asked who has submitted them, to find those that may wait."""


def look_for_circles(core: Core) -> None:
    """Some tasks within tasks have waited for long: is there anybody else who can make room?

    Cost: for each demand with such tasks, O(runs + those tasks).
    """
    state, seconds = core.state, core.settings.stranded_warning_seconds
    if seconds is None or not state.nested_since:
        return
    for key, since in list(state.nested_since.items()):
        if since + seconds > core.now:
            core.wake_by(since + seconds)
            break
        del state.nested_since[key]
        demand = state.demands.get(key)
        if demand is not None:
            _tell_of_circle(core, demand, core.now - since)


def _tell_of_circle(core: Core, demand: Demand, seconds: float) -> None:
    state = core.state
    holders: dict[Task, Task] = {}  # task that has submitted others -> one of those, that waits
    for task in _waiting_for(state, demand):
        for holder in holders_outside(state, task):
            holders.setdefault(holder, task)
    if not holders:
        return
    names = list(_names_held(state, demand, holders))
    if not names:
        return
    for holder, task in holders.items():
        for client in who_waits(state, holder):
            if is_news(core, client, demand.key, task):
                core.to_client(
                    client, PlacesHeld(task.key, holder.key, len(holders), names, seconds)
                )


def _waiting_for(state: SchedulerState, demand: Demand) -> Iterator[Task]:
    """Queued tasks within others that need any of what this demand does."""
    alike = [d for d in state.demands.values() if not d.limits.keys().isdisjoint(demand.limits)]
    queues = [each.queue for each in alike or [demand]]
    tasks = (task for queue in queues for _, _, run in queue.runs for task in run)
    for task in islice(tasks, TASKS_LOOKED_AT):
        if task.state == QUEUED and task.options.inside:
            yield task


def _names_held(state: SchedulerState, demand: Demand, holders: dict[Task, Task]) -> Iterator[str]:
    """Limits and resources that nobody has but those holders, and that are used up."""
    reached = state.limits.reached(demand.limits) if demand.limits else ""
    if reached:
        nruns = sum(reached in holder.options.limits for holder in holders)
        if nruns >= state.limits.nruns.get(reached, 0):
            yield reached
    if not demand.resources:
        return
    held = {(holder.worker, holder.run) for holder in holders}
    named = state.workers_named(demand.workers)
    able = able_workers(demand, state.workers.values(), named)
    for name, amount in demand.resources.items():
        if able and all(
            worker.available.get(name, 0.0) < amount
            and all(
                (worker, run) in held
                for run, options in worker.claims.items()
                if name in options.resources
            )
            for worker in able
        ):
            yield name


HANDLERS = Handlers(woken=look_for_circles)
