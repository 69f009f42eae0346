"""Were only copies dropped that nobody needs?  Asked as a step of the scheduler drops some."""

from collections.abc import Iterator

from shoal.protocol.messages import FreeReplicas
from shoal.scheduler.model.entities import MEMORY, NO_RUN, Task, Worker
from shoal.scheduler.model.state import SchedulerState


def dropped_too_much(state: SchedulerState) -> Iterator[str]:
    """A sentence for each copy that is about to be dropped, and that somebody needs there."""
    for worker in state.workers.values():
        for message in worker.outbox:
            if isinstance(message, FreeReplicas):
                for number in message.tasks:
                    task = state.task_by_id.get(number)
                    if task is not None and task.state == MEMORY:
                        yield from _why_needed(state, task, worker)


def _why_needed(state: SchedulerState, task: Task, worker: Worker) -> Iterator[str]:
    holders = [holder for holder in task.who_has or () if not holder.is_leaving]
    if not holders:
        yield f"{worker} drops the last copy of {task!r}"
    goal = state.copies.goals.get(task)
    if goal is not None:
        named = state.workers_named(goal.workers) if goal.workers else state.workers
        counting = [holder for holder in holders if holder in named or not goal.workers]
        counts = not goal.workers or worker in named
        if counts and (goal.ncopies == 0 or len(counting) < goal.ncopies):
            yield f"{worker} drops a copy of {task!r}, of which {goal} asks for {goal.ncopies}"
    for dependent in task.dependents or ():
        if dependent.worker is worker and dependent.run != NO_RUN:
            yield f"{worker} drops {task!r}, which {dependent!r} reads there"
