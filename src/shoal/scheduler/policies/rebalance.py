"""Which results shall move so that memory evens out?"""

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from shoal.scheduler.model.entities import Task, Worker
from shoal.scheduler.model.settings import SchedulerSettings

OVERSHOOT_MAX = 1.5
"""How much larger than what is to be evened out a result may be that moves for that."""


class Move(NamedTuple):
    """One result, from where to where."""

    task: Task
    sender: Worker
    recipient: Worker


class EvenOut:
    """Move from workers above the mean to workers below it, what they have had for longest first.

    Only results that one worker has alone, since of others nothing would be gained.  Workers within
    the gap around the mean are left alone, and so are those that are nearly empty, or nearly full.
    """

    __slots__ = ("gap_ratio", "recipient_ratio", "sender_ratio")

    def __init__(self, settings: SchedulerSettings) -> None:
        self.gap_ratio = settings.rebalance_gap_ratio
        self.recipient_ratio = settings.rebalance_recipient_ratio
        self.sender_ratio = settings.rebalance_sender_ratio

    def moves(
        self, workers: Sequence[Worker], movable: Mapping[Worker, Sequence[Task]]
    ) -> list[Move]:
        """What to move.  Cost: O(results looked at x log workers).

        Args:
            workers: among which; those that leave are left alone.
            movable: what may be moved away from each.
        """
        there = [worker for worker in workers if not worker.is_leaving]
        if len(there) < 2:
            return []
        mean = sum(worker.nbytes for worker in there) / len(there)
        senders: list[tuple[float, int, Worker]] = []
        recipients: list[tuple[float, int, Worker]] = []
        for worker in there:
            half_gap = self.gap_ratio / 2 * worker.memory_limit
            above = worker.nbytes - mean - half_gap
            below = mean - half_gap - worker.nbytes
            if above > 0 and worker.nbytes >= self.sender_ratio * worker.memory_limit:
                senders.append((-above, worker.id, worker))
            elif below > 0 and self._may_take(worker, 0):
                recipients.append((-below, worker.id, worker))
        return self._pair(senders, recipients, movable)

    def _may_take(self, worker: Worker, nbytes: int) -> bool:
        limit = worker.memory_limit
        return limit == 0 or worker.nbytes + nbytes < self.recipient_ratio * limit

    def _pair(
        self,
        senders: list[tuple[float, int, Worker]],
        recipients: list[tuple[float, int, Worker]],
        movable: Mapping[Worker, Sequence[Task]],
    ) -> list[Move]:
        """Two heaps: who is furthest above the mean gives to who is furthest below."""
        heapify(senders)
        heapify(recipients)
        left = {worker: iter(movable.get(worker, ())) for _, _, worker in senders}
        found: list[Move] = []
        while senders and recipients:
            above, _, sender = senders[0]
            task = next(left[sender], None)
            if task is None:
                heappop(senders)
                continue
            below, _, recipient = recipients[0]
            nbytes = task.nbytes
            if nbytes > OVERSHOOT_MAX * min(-above, -below) or nbytes <= 0:
                continue  # memory would be about as uneven as before, the other way round
            heappop(senders)
            heappop(recipients)
            found.append(Move(task, sender, recipient))
            if above + nbytes < 0:
                heappush(senders, (above + nbytes, sender.id, sender))
            if below + nbytes < 0:
                heappush(recipients, (below + nbytes, recipient.id, recipient))
        return found
