"""What a worker has of shuffles among its results: read by output, copied in, moved to disk."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from shoal.ids import TaskId
from shoal.shuffle.kept import KeptShard, KeptShards
from shoal.storage.waiting_threads import WaitingThreads

if TYPE_CHECKING:
    from shoal.shuffle.budget import ShardBudget
    from shoal.shuffle.counters import ShuffleCounters
    from shoal.shuffle.disk import ShardFiles
    from shoal.worker.shell.feed import Feed

NWRITERS: Final = 1


class HeldShards:
    """The shards that are here.  Reading is for any thread that may wait, all else for the loop."""

    def __init__(
        self,
        worker: Any,
        budget: ShardBudget,
        files: ShardFiles,
        counters: ShuffleCounters,
        *,
        may_write: bool,
    ) -> None:
        self._worker = worker
        self._budget = budget
        self._files = files
        self._counters = counters
        self._may_write = may_write
        self._writers: WaitingThreads | None = None
        self._is_closed = False

    @property
    def _feed(self) -> Feed:
        feed: Feed = self._worker.feed
        return feed

    def find(self, task: TaskId) -> KeptShards | None:
        """What a transfer has kept; None: it is not here."""
        entry = self._feed.results.entry(task)
        value = None if entry is None else entry[1]
        return value if isinstance(value, KeptShards) else None

    def read(self, task: TaskId, output: int, digest: int) -> KeptShard | None:
        """What a transfer has kept for an output partition; None: that is not here.

        `digest`: of the cut that is meant, since another run may have made another one.
        """
        kept = self.find(task)
        if kept is None or kept.digest != digest:
            return None
        try:
            return kept.shard(output) or KeptShard(0, b"")
        except OSError:
            self._counters.add(nlost=1)
            self._tell_gone(task)
            return None

    def _tell_gone(self, task: TaskId) -> None:
        def tell() -> None:
            feed = self._feed
            feed.on_disk(partial(feed.machine.value_gone, task, feed.now()))

        self._worker._tell_loop(tell)

    def adopt(self, task: TaskId, kept: KeptShards) -> None:
        """A copy has come from another worker: it counts, and goes to disk if it is too much."""
        if not kept.is_on_disk:
            kept.count(self._budget)
            if self._budget.nbytes > self._budget.nbytes_max:
                self.move_to_disk(task, kept)

    def move_to_disk(self, task: TaskId, kept: KeptShards) -> None:
        """Results have to make room: so do these, if they may and the disk takes them."""
        if kept.is_on_disk or self._is_closed or not (self._may_write and kept.may_be_written):
            return
        if not self._files.may_be_tried:
            return
        try:
            if self._writers is None:
                name = f"shoal-worker-{self._worker.name}-shards-writer"
                self._writers = WaitingThreads(name, NWRITERS)
            self._writers.begin(
                partial(kept.move_to, self._files), partial(self._on_moved, task, kept)
            )
        except RuntimeError:
            pass  # there is no thread for it: they stay where they are

    def _on_moved(self, task: TaskId, kept: KeptShards, value: Any, error: Any) -> None:
        """An error leaves them in memory; the disk's trouble is noted by its files."""
        if error is not None and not isinstance(error, OSError):
            asyncio.get_running_loop().call_exception_handler(
                {"message": "Moving shards to disk failed", "exception": error}
            )
        if kept.is_on_disk and self.find(task) is kept:
            self._feed.results.resize(task, kept.__sizeof__())

    def close(self) -> None:
        """Nothing is moved any more."""
        self._is_closed = True
        if self._writers is not None:
            self._writers.close()
