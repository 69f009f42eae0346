"""What is said for the sake of shuffles: what they are, what was cut, and where its shards are.

A shuffle that a client defined has transfers, which cut one input partition each and keep the
shards; a barrier, which the scheduler completes by itself; and unpacks, which fetch the shards of
one output partition from whoever holds them.  Free tags: 406 to 419.
"""

from shoal.ids import Epoch, Key, RunId, TaskId
from shoal.protocol.messages import Message, Part
from shoal.protocol.subject import UNANSWERED, Subject

# --- client -> scheduler ---------------------------------------------------------------------


class ShuffleDefinition(Part, frozen=True):
    """One barrier of a graph that is about to come."""

    id: str
    barrier: Key
    ninputs: int  # transfers: the barrier depends on each, and on nothing else
    noutputs: int  # partitions
    kind: str = "table"  # or "array"
    outputs: dict[Key, int] = {}
    """Unpack -> its output partition, where that is known; for what its run takes, and views."""
    peak_ratio: float = 2.0  # bytes that a join takes at its peak for each byte of its shards


class DefineShuffles(Message, frozen=True, tag=400):
    """Barriers of tasks that follow; said before any slice that has one of their transfers.

    A barrier that was not defined is a task like any other, which fetches all that it depends on.
    """

    shuffles: list[ShuffleDefinition]


# --- worker -> scheduler ---------------------------------------------------------------------


class ShardsMade(Message, frozen=True, tag=401):
    """A run has cut its input partition and keeps the shards; said before its TaskFinished."""

    task: TaskId
    run: RunId
    shuffle: str
    input_partition: int
    rows: int  # or elements of an array
    digest: int  # unsigned, 64 bit: which row went where
    nbytes: int  # of all shards
    nbytes_by_output: bytes = b""
    """Of the shards of each output partition: unsigned, 64 bit, little-endian, one after the other;
    b"" if they are too many to be told."""
    disk_nbytes: int = 0  # of these that were written to disk


class LocateShards(Message, frozen=True, tag=402):
    """Who holds the shards of each input partition?  Answered by ShardsLocated at once.

    Refused (see `scheduler/machine/errors.py`) if the shuffle is in another epoch, or not complete.
    """

    request: int
    shuffle: str
    epoch: int  # the value of the barrier, as the run got it


class ShardHolder(Part, frozen=True):
    """A worker, and the transfers whose shards it keeps: parallel columns."""

    address: str
    transfers: list[TaskId]
    keys: list[Key]  # of the transfers, for errors
    input_partitions: list[int]
    digests: list[int]  # of the cuts that are meant; shards of another cut are missing


class ShardsLocated(Part, frozen=True):
    """Where the shards of all input partitions are; each partition is named once."""

    epoch: int
    ninputs: int
    holders: list[ShardHolder]
    rows: int = 0  # of all input partitions together


class ShardsJoined(Message, frozen=True, tag=405):
    """A run has fetched and joined all shards of its output partition; before its TaskFinished."""

    task: TaskId
    run: RunId
    shuffle: str
    output: int
    epoch: int
    rows: int
    nbytes: int  # of the shards


# --- worker -> worker ------------------------------------------------------------------------


class FetchShards(Message, frozen=True, tag=403):
    """Send what these transfers kept for an output partition; answered by ShardsFetched."""

    request: int
    shuffle: str
    transfers: list[TaskId]
    output: int
    epoch: Epoch = Epoch(0)  # of the scheduler, in which the numbers mean something
    digests: list[int] = []  # of the cuts that are meant, by transfer; a copy of another is missing


class ShardsFetched(Message, frozen=True, tag=404):
    """The shards asked for.  Their bytes follow as buffers, in the order of the transfers, one for
    each whose length is not 0."""

    request: int
    rows: list[int]  # by transfer; 0 if it is missing
    lengths: list[int]  # bytes, by transfer
    missing: list[TaskId] = []  # that this worker does not hold


SUBJECT = Subject(
    from_client={DefineShuffles: UNANSWERED},
    from_worker={
        ShardsMade: UNANSWERED,
        LocateShards: ShardsLocated,
        ShardsJoined: UNANSWERED,
    },
    from_peer={FetchShards: ShardsFetched},
    to_peer={ShardsFetched: UNANSWERED},
)
