"""Which worker is least, which is most loaded?  Both in O(1), however many there are."""

from collections import OrderedDict
from collections.abc import Iterator

from shoal.scheduler.model.entities import Worker


class LoadIndex:
    """Workers in buckets by the logarithm of their load, so that few changes of load move one.

    Loads within a bucket differ by less than a factor of two; among those, the worker that came
    into the bucket first is first.  Every operation is O(1).  A bucket is an `OrderedDict`: in a
    `dict` from which the first was taken over and over, the next is found behind all their places.
    """

    __slots__ = ("bucket_of", "buckets", "occupied")

    def __init__(self) -> None:
        self.buckets: list[OrderedDict[Worker, None]] = [OrderedDict() for _ in range(64)]
        self.bucket_of: dict[Worker, int] = {}
        self.occupied = 0  # bit i: bucket i has workers

    def __contains__(self, worker: Worker) -> bool:
        return worker in self.bucket_of

    def __len__(self) -> int:
        return len(self.bucket_of)

    def put(self, worker: Worker, load: int) -> None:
        """Add `worker`, or move it to where its load (from 0, below 2**63) belongs."""
        bucket = load.bit_length()
        old = self.bucket_of.get(worker)
        if old == bucket:
            return
        if old is not None:
            workers = self.buckets[old]
            del workers[worker]
            if not workers:
                self.occupied &= ~(1 << old)
        self.buckets[bucket][worker] = None
        self.bucket_of[worker] = bucket
        self.occupied |= 1 << bucket

    def discard(self, worker: Worker) -> None:
        """Remove `worker` if it is here."""
        bucket = self.bucket_of.pop(worker, None)
        if bucket is not None:
            workers = self.buckets[bucket]
            del workers[worker]
            if not workers:
                self.occupied &= ~(1 << bucket)

    def put_last(self, worker: Worker) -> None:
        """Have others of about the same load come before `worker`, if it is here."""
        bucket = self.bucket_of.get(worker)
        if bucket is not None:
            self.buckets[bucket].move_to_end(worker)

    def lowest(self) -> Worker | None:
        """A worker with the least load, give or take a factor of two; None if there is none."""
        if not self.occupied:
            return None
        bucket = (self.occupied & -self.occupied).bit_length() - 1
        return next(iter(self.buckets[bucket]))

    def highest(self) -> Worker | None:
        """A worker with the most load, give or take a factor of two; None if there is none."""
        if not self.occupied:
            return None
        return next(iter(self.buckets[self.occupied.bit_length() - 1]))

    def from_highest(self) -> Iterator[Worker]:
        """Workers by falling load, give or take a factor of two; nothing may change meanwhile."""
        occupied = self.occupied
        while occupied:
            bucket = occupied.bit_length() - 1
            yield from self.buckets[bucket]
            occupied &= ~(1 << bucket)

    def from_lowest(self) -> Iterator[Worker]:
        """Workers by rising load, give or take a factor of two; nothing may change meanwhile."""
        occupied = self.occupied
        while occupied:
            bucket = (occupied & -occupied).bit_length() - 1
            yield from self.buckets[bucket]
            occupied &= ~(1 << bucket)
