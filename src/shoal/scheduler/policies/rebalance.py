"""Which results shall move so that memory evens out?"""

from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from shoal.scheduler.model.entities import Task, Worker
from shoal.scheduler.model.settings import SchedulerSettings
from shoal.scheduler.policies.measures import MEASURES

OVERSHOOT_MAX = 1.5
"""How much larger than what is to be evened out a result may be that moves for that."""


RECIPIENTS_LOOKED_AT = 8
"""Workers that a result is offered to, as others have no memory for it."""


class Move(NamedTuple):
    """One result, from where to where."""

    task: Task
    sender: Worker
    recipient: Worker


class EvenOut:
    """Move from workers above the mean to workers below it, what they have had for longest first.

    Only results that one worker has alone, since of others nothing would be gained.  Workers within
    the gap around the mean are left alone, and so are those that are nearly empty; those that are
    nearly full, or paused, get nothing.
    """

    __slots__ = ("gap_ratio", "memory_of", "recipient_ratio", "sender_ratio")

    def __init__(self, settings: SchedulerSettings) -> None:
        self.memory_of = MEASURES[settings.rebalance_measure]
        self.gap_ratio = settings.rebalance_gap_ratio
        self.recipient_ratio = settings.rebalance_recipient_ratio
        self.sender_ratio = settings.rebalance_sender_ratio

    def moves(
        self,
        workers: Sequence[Worker],
        movable: Mapping[Worker, Iterable[Task]],
        coming_nbytes: Mapping[Worker, int],
    ) -> list[Move]:
        """What to move.  Cost: O(results looked at x log workers).

        Args:
            workers: among which; those that leave are left alone.
            movable: what may be moved away from each; asked for only as far as it is looked at.
            coming_nbytes: what is on its way to each worker already.
        """
        there = [worker for worker in workers if not worker.is_leaving]
        if len(there) < 2:
            return []
        taken = {worker: self.memory_of(worker) for worker in there}
        mean = sum(taken.values()) / len(there)
        senders: list[tuple[float, int, Worker]] = []
        recipients: list[tuple[float, int, Worker]] = []
        for worker in there:
            half_gap = self.gap_ratio / 2 * worker.memory_limit
            above = taken[worker] - mean - half_gap
            coming = coming_nbytes.get(worker, 0)
            below = mean - half_gap - taken[worker] - coming
            if above > 0 and taken[worker] >= self.sender_ratio * worker.memory_limit:
                senders.append((-above, worker.id, worker))
            elif below > 0 and worker.takes_work and self._may_take(worker, coming):
                recipients.append((-below, worker.id, worker))
        return self._pair(senders, recipients, movable, coming_nbytes)

    def _may_take(self, worker: Worker, nbytes: int) -> bool:
        limit = worker.memory_limit
        return limit == 0 or self.memory_of(worker) + nbytes < self.recipient_ratio * limit

    def _pair(
        self,
        senders: list[tuple[float, int, Worker]],
        recipients: list[tuple[float, int, Worker]],
        movable: Mapping[Worker, Iterable[Task]],
        coming_nbytes: Mapping[Worker, int],
    ) -> list[Move]:
        """Two heaps: who is furthest above the mean gives to who is furthest below.

        Of those that may take it still; of a few, as most can.
        """
        heapify(senders)
        heapify(recipients)
        left = {worker: iter(movable.get(worker, ())) for _, _, worker in senders}
        found: list[Move] = []
        coming = dict(coming_nbytes)  # and what is planned here
        while senders and recipients:
            above, _, sender = senders[0]
            task = next(left[sender], None)
            if task is None:
                heappop(senders)
                continue
            nbytes = task.nbytes
            if nbytes > OVERSHOOT_MAX * -above or nbytes <= 0:
                continue  # memory would be about as uneven as before, the other way round
            entry = self._first_that_takes(recipients, nbytes, coming)
            if entry is None:
                continue
            below, _, recipient = entry
            coming[recipient] = coming.get(recipient, 0) + nbytes
            heappop(senders)
            found.append(Move(task, sender, recipient))
            if above + nbytes < 0:
                heappush(senders, (above + nbytes, sender.id, sender))
            if below + nbytes < 0:
                heappush(recipients, (below + nbytes, recipient.id, recipient))
        return found

    def _first_that_takes(
        self, recipients: list[tuple[float, int, Worker]], nbytes: int, coming: dict[Worker, int]
    ) -> tuple[float, int, Worker] | None:
        """Taken out of the heap: the furthest below the mean that has memory for so much more.

        None also if nobody is far enough below it.  Who has no memory for a single byte is taken
        out for good.
        """
        passed: list[tuple[float, int, Worker]] = []
        chosen: tuple[float, int, Worker] | None = None
        while recipients and chosen is None and len(passed) < RECIPIENTS_LOOKED_AT:
            entry = heappop(recipients)
            if nbytes > OVERSHOOT_MAX * -entry[0]:
                passed.append(entry)  # and those that follow are nearer to it
                break
            planned = coming.get(entry[2], 0)
            if self._may_take(entry[2], planned + nbytes):
                chosen = entry
            elif self._may_take(entry[2], planned + 1):
                passed.append(entry)
        for entry in passed:
            heappush(recipients, entry)
        return chosen
