"""How a task of a shuffle finds the worker that it runs on, and what that does for shuffles."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from shoal.ids import RunId, TaskId
from shoal.observe.inside import current_task
from shoal.protocol.shuffles import ShardsJoined, ShardsMade
from shoal.shuffle.budget import ShardBudget
from shoal.shuffle.counters import ShuffleCounters
from shoal.shuffle.disk import ShardFiles
from shoal.shuffle.errors import NotInShuffle
from shoal.shuffle.exchange import Buffer


class Fetched(NamedTuple):
    """The shards of one output partition."""

    buffers: list[Buffer]
    """In the order of input partitions, empty ones left out."""
    nrows: int


class ShuffleHost(Protocol):
    """What a worker does for tasks that take part in shuffles.  From any thread."""

    @property
    def address(self) -> str:
        """Of the worker."""

    @property
    def budget(self) -> ShardBudget:
        """Of shards in memory."""

    @property
    def files(self) -> ShardFiles:
        """Of shards on disk."""

    @property
    def counters(self) -> ShuffleCounters:
        """What was done."""

    @property
    def may_write(self) -> bool:
        """Whether shards may be on disk at all, by the settings."""

    def refuse(self, id: str, input_partition: int) -> int:
        """There is no room for this input partition; how often that was so before."""

    def accept(self) -> None:
        """There was room for one: what was refused before says nothing any more."""

    def tell(self, message: ShardsMade | ShardsJoined) -> None:
        """Tell the scheduler, before it hears that the run has ended."""

    def fetch(self, id: str, output: int, epoch: int) -> Fetched:
        """The shards of an output partition, from wherever they are; waits for them.

        Raises:
            ShuffleStale: they are not to be had any more as of this epoch.
            ShardsUnavailable: some holders could not give theirs.
        """


class ShuffleRun(NamedTuple):
    """The calling run."""

    host: ShuffleHost
    task: TaskId
    number: RunId


def shuffle_run(id: str) -> ShuffleRun:
    """The run that calls, which takes part in the shuffle `id`.

    Raises:
        NotInShuffle: the code that calls is no part of a task on a worker (a RuntimeError).
    """
    running: Any = current_task.get()
    if running is None or getattr(running, "run", None) is None:
        raise NotInShuffle(id)
    return ShuffleRun(running.worker.shuffles, running.run.task, running.run.number)
