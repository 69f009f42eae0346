"""Some workers could not get a result: who may run what needs it?

It may be nobody's to have, such as one with an open socket, or just not theirs, as they lack what
it takes to read it.  Whoever holds it may in any case.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from shoal.scheduler.model.entities import Task, Worker
from shoal.scheduler.policies.placement import HOLDERS_LOOKED_AT, begins_at_once, first

WITNESSES_MIN: Final = 2
"""So many could not get a result, and nobody else has: it is taken to stay where it is."""

Witnesses = Mapping[Task, Mapping[Worker, None]]
"""Result → the workers that could not get it."""


def inputs_in_doubt(task: Task, witnesses: Witnesses) -> list[Task]:
    """Those that somebody could not get, and that don't travel along.  Cost: O(inputs)."""
    return [each for each in task.dependencies if each in witnesses and each.value is None]


def stays(task: Task, result: Task, witnesses: Witnesses) -> bool:
    """Whether `task`, which needs `result`, is for its holders only.

    So it is with what several could not get, and with a task that was sent in vain before, whatever
    it lacked: it is not to try them all.
    """
    if task.nfetch_failures:
        return True
    return len(witnesses[result]) >= WITNESSES_MIN and len(result.who_has or ()) == 1


def may_have(task: Task, inputs: Sequence[Task], worker: Worker, witnesses: Witnesses) -> bool:
    """Whether `worker` holds each of these inputs of `task`, or may get it, as far as is known."""
    for result in inputs:
        if result in worker.has_what:
            continue
        if worker in witnesses[result] or stays(task, result, witnesses):
            return False
    return True


def candidates(
    task: Task, inputs: Sequence[Task], least_loaded: Worker | None, witnesses: Witnesses
) -> list[Worker]:
    """Holders of `inputs` that may have them all, and the least loaded worker if it may as well and
    would begin at once.  Cost: O(inputs x holders), the latter bounded."""
    found: dict[Worker, None] = {}
    for result in inputs:
        for holder in first(result.who_has or [], HOLDERS_LOOKED_AT):
            if holder.takes_work:
                found[holder] = None
    if least_loaded is not None and (not found or begins_at_once(least_loaded)):
        found[least_loaded] = None
    return [worker for worker in found if may_have(task, inputs, worker, witnesses)]


def holders_to_wait_for(task: Task, inputs: Sequence[Task], witnesses: Witnesses) -> list[Worker]:
    """Those that take work, of the inputs of `task` that stay where they are: who has all of them,
    or if nobody has, any."""
    staying = [result for result in inputs if stays(task, result, witnesses)]
    holders = [each for result in staying for each in result.who_has or () if each.takes_work]
    holders = list(dict.fromkeys(holders))
    return [each for each in holders if may_have(task, staying, each, witnesses)] or holders
