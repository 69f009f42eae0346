"""Holders that the scheduler has to believe no more, once it was told what they lack."""

from collections.abc import Iterator, Sequence

from shoal.protocol.messages import InputsUnavailable, Message
from shoal.scheduler.model.entities import Task, Worker
from shoal.scheduler.model.state import SchedulerState

Claims = list[tuple[Task, Worker]]
"""A result, and a worker that is said not to have it."""


def claims_of(state: SchedulerState, asker: Worker, batch: Sequence[Message], now: float) -> Claims:
    """What a frame says that counts, if it says nothing else: who lacks what for runs that are out.

    Of those out of reach, what others could not have of them either, if it is of a shuffle.
    """
    claims: Claims = []
    for message in batch:
        if not isinstance(message, InputsUnavailable):
            return []
        task = state.task_by_id.get(message.task)
        if task is None or task.run != message.run or task.worker is not asker:
            continue
        there = [peer for name in message.unreachable if (peer := state.workers.get(name))]
        others = [worker for worker in state.workers.values() if worker is not asker]
        lacking = [peer for name in message.lacking if (peer := state.workers.get(name))]
        lacking += [
            holder
            for holder in there
            if any(worker.cannot_reach.get(holder.id, 0.0) > now for worker in others)
        ]
        for number in message.missing:
            missing = state.task_by_id.get(number)
            if missing and any(each in state.barriers for each in missing.dependents or ()):
                claims += [(missing, holder) for holder in lacking]
    return claims


def still_believed(state: SchedulerState, claims: Claims) -> Iterator[str]:
    """Of these, in the step after, what the scheduler believes to be there all the same."""
    for task, holder in claims:
        is_there = state.tasks.get(task.key) is task and state.workers.get(holder.address) is holder
        if is_there and holder in (task.who_has or ()):
            yield f"{holder} lacks {task!r}, or is out of reach, and is believed to have it"
