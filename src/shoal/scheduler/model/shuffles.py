"""What is known of each shuffle: what its transfers cut, in which epoch it is, how far it is.

Bytes by output partition are kept as one large integer of 64-bit lanes, so that what a transfer
says is added in one go, however many output partitions there are.
"""

from struct import unpack
from typing import Final

from msgspec import Raw

from shoal.ids import Key
from shoal.protocol.shuffles import ShuffleDefinition
from shoal.scheduler.model.entities import MEMORY, WAITING, Task

LANE_BYTES: Final = 8
"""Of one output partition, in `Shuffle.lanes` and on the wire."""

NO_OUTPUTS: Final[dict[Key, int]] = {}


class Made:
    """What the latest run of a transfer has cut."""

    __slots__ = ("delivered_digest", "digest", "input_partition", "rows")

    def __init__(self, input_partition: int, rows: int, digest: int) -> None:
        self.input_partition = input_partition
        self.rows = rows
        self.digest = digest  # which row went where
        self.delivered_digest: int | None = None  # that of the epoch before, if there was one

    @property
    def has_changed(self) -> bool:
        """Whether rows go elsewhere than they went in the epoch before."""
        return self.delivered_digest not in (None, self.digest)


class Shuffle:
    """One barrier, what comes before and what comes after it."""

    __slots__ = (
        "adopted",
        "asked_again",
        "barrier",
        "begun_at",
        "disk_nbytes",
        "epoch",
        "has_changed",
        "heard_at",
        "hinted",
        "id",
        "joined_nbytes",
        "keeps_inputs",
        "kind",
        "lanes",
        "located",
        "lost",
        "made",
        "made_nbytes",
        "nepochs",
        "ninputs",
        "njoined",
        "noutputs",
        "outputs",
        "peak_ratio",
    )

    def __init__(self, definition: ShuffleDefinition, barrier: Task) -> None:
        self.id = definition.id
        self.kind = definition.kind
        self.barrier = barrier
        self.ninputs = definition.ninputs
        self.noutputs = definition.noutputs
        self.outputs = definition.outputs or NO_OUTPUTS  # unpack -> output partition
        self.peak_ratio = definition.peak_ratio
        self.epoch = 0  # value of the barrier; no two shuffles or times have the same one
        self.nepochs = 0  # times that it was complete
        self.has_changed = False  # a transfer gave other rows again, before any output had begun
        self.keeps_inputs = False  # the barrier is in memory, so the transfers' results are needed
        self.made: dict[Task, Made] = {}  # by transfer
        self.adopted: dict[Task, None] = {}  # unpacks whose results are of a cut from before
        self.located: Raw | None = None  # where its shards are, if that is the same for all who ask
        self.lost: dict[Task, str] = {}  # transfers to be run again -> name of the worker that went
        self.asked_again: dict[Task, int] = {}  # transfers whose cut was not heard of -> how often
        self.hinted: dict[Task, None] = {}  # unpacks of which it was said what they take
        self.lanes = 0  # bytes by output partition
        self.made_nbytes = 0  # of all shards, each transfer's counted once
        self.disk_nbytes = 0  # of these on disk
        self.joined_nbytes = 0  # of shards that were fetched and joined, each time
        self.njoined = 0  # runs that have done so
        self.begun_at = -1.0  # when the first shards were made (s, monotonic)
        self.heard_at = -1.0  # when something was last heard of it

    def add_nbytes(self, nbytes: int, by_output: bytes) -> None:
        """A transfer has cut so much, for the first time."""
        self.made_nbytes += nbytes
        if by_output:
            self.lanes += int.from_bytes(by_output, "little")

    def output_nbytes(self) -> list[int]:
        """Bytes of the shards of each output partition; [] if that is not known.

        Cost: O(output partitions).
        """
        if not self.lanes:
            return []
        spilling_over = LANE_BYTES  # more than anybody has; but no sum may be too large to be read
        raw = self.lanes.to_bytes(self.noutputs * LANE_BYTES + spilling_over, "little")
        return list(unpack(f"<{self.noutputs}Q", raw[: self.noutputs * LANE_BYTES]))

    @property
    def is_active(self) -> bool:
        """Whether any output is still to be made."""
        return self.barrier.state in (WAITING, MEMORY)

    @property
    def nmade(self) -> int:
        """Transfers whose shards are there, as far as is known."""
        return sum(transfer not in self.lost for transfer in self.made)

    @property
    def skew(self) -> float:
        """How many times the mean the largest output partition is; 0.0 if that is not known."""
        nbytes = self.output_nbytes()
        return max(nbytes) * len(nbytes) / sum(nbytes) if nbytes else 0.0

    @property
    def bytes_per_second(self) -> float:
        """Made and joined, in the mean since it began; 0.0 if that was just now."""
        seconds = self.heard_at - self.begun_at
        return (self.made_nbytes + self.joined_nbytes) / seconds if seconds > 0 else 0.0

    def __repr__(self) -> str:
        return f"<Shuffle {self.id!r}: epoch {self.epoch}, {len(self.made)} of {self.ninputs} made>"
