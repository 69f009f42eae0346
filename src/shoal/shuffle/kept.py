"""The result of a transfer: the shards of one input partition, sorted by output partition.

They are in memory, or in one file; either way the shard of an output is found by an index, and
nothing else is read.  As a result of a task they can be copied to other workers, and written to
disk with others that have to make room: they are pickled with their bytes.
"""

from __future__ import annotations

import pickle
import weakref
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from shoal.shuffle.budget import ShardBudget
    from shoal.shuffle.disk import ShardFiles
    from shoal.shuffle.exchange import Buffer

NBYTES_MIN: Final = 17 * 1024
"""What they say they take at the least: what is smaller might travel with the task's answer instead
of being kept."""


class KeptShard(NamedTuple):
    """What was kept for one output partition."""

    nrows: int
    content: Buffer


class Index:
    """Where the shard of an output partition begins and ends: parallel columns, by output."""

    __slots__ = ("checksums", "nrows", "offsets", "outputs")

    def __init__(self) -> None:
        self.outputs = array("Q")
        self.offsets = array("Q", [0])  # one more than outputs
        self.nrows = array("Q")
        self.checksums = array("Q")  # of what is on disk

    def add(self, output: int, nrows: int, nbytes: int) -> None:
        """The next shard; outputs ascend.

        Raises:
            ValueError: this one does not.
        """
        if self.outputs and output <= self.outputs[-1]:
            raise ValueError(f"output partition {output} comes after {self.outputs[-1]}")
        self.outputs.append(output)
        self.nrows.append(nrows)
        self.offsets.append(self.offsets[-1] + nbytes)

    def find(self, output: int) -> int | None:
        """The place of an output partition; None: nothing was kept for it.  Cost: O(log n)."""
        place = bisect_left(self.outputs, output)
        return place if place < len(self.outputs) and self.outputs[place] == output else None

    @property
    def nbytes(self) -> int:
        """Of all shards."""
        return self.offsets[-1]

    def nbytes_by_output(self, noutputs: int) -> bytes:
        """Of each output partition: unsigned, 64 bits, little-endian, one after the other."""
        offsets = self.offsets
        lanes = bytearray(8 * noutputs)
        for place, output in enumerate(self.outputs):
            nbytes = offsets[place + 1] - offsets[place]
            lanes[8 * output : 8 * output + 8] = nbytes.to_bytes(8, "little")
        return bytes(lanes)


class KeptShards:
    """All shards of one input partition.  For any thread."""

    __slots__ = (
        "__weakref__", "_blocks", "_counted", "_files", "_path", "_starts", "digest", "index",
        "may_be_written", "nrows",
    )  # fmt: skip

    def __init__(self, nrows: int, digest: int, index: Index, blocks: Sequence[Buffer]) -> None:
        """`nrows`, `digest`: see `Cut`; `blocks`: the bytes of all shards; none is in two."""
        self.nrows = nrows
        self.digest = digest
        self.index = index
        self._blocks: list[Buffer] | None = list(blocks)
        self._starts = array("Q")
        start = 0
        for block in self._blocks:
            self._starts.append(start)
            start += len(block)
        self._files: ShardFiles | None = None
        self._path = ""
        self._counted: weakref.finalize[Any, Any] | None = None
        self.may_be_written = True
        """Whether they may be moved to disk."""

    @classmethod
    def in_memory(
        cls, nrows: int, digest: int, index: Index, blocks: Sequence[Buffer], budget: ShardBudget
    ) -> KeptShards:
        """`blocks` are counted by `budget`, to which they are given back at the end."""
        kept = cls(nrows, digest, index, blocks)
        kept._count(budget)
        return kept

    def count(self, budget: ShardBudget) -> None:
        """They have come from elsewhere, and take of this budget as long as they are in memory."""
        if self._counted is None and not self.is_on_disk:
            budget.force(self.index.nbytes)
            self._count(budget)

    def _count(self, budget: ShardBudget) -> None:
        self._counted = weakref.finalize(self, budget.give_back, self.index.nbytes)
        self._counted.atexit = False

    @classmethod
    def on_disk(
        cls, nrows: int, digest: int, index: Index, path: str, files: ShardFiles
    ) -> KeptShards:
        """All of it is in a file, which goes with the last reference to this."""
        kept = cls(nrows, digest, index, ())
        kept._blocks, kept._files, kept._path = None, files, path
        weakref.finalize(kept, files.discard, path, index.nbytes).atexit = False
        return kept

    def move_to(self, files: ShardFiles) -> None:
        """Write what is in memory to a file, from which it is read from then on.

        Whoever reads meanwhile gets it from where it was.  To be called once.

        Raises:
            OSError: the disk does not take it; it stays in memory.
        """
        from shoal.shuffle.disk import checksum_of

        blocks = self._blocks
        if blocks is None:
            return
        places = range(len(self.index.outputs))
        checksums = array("Q", [checksum_of(self._bytes_at(place)) for place in places])
        file = files.create()
        try:
            for block in blocks:
                files.append(file, memoryview(block))
        except BaseException:
            files.abandon(file)
            raise
        path = files.publish(file)
        weakref.finalize(self, files.discard, path, self.index.nbytes).atexit = False
        self.index.checksums = checksums
        self._files, self._path = files, path
        self._blocks = None  # last, since others may read
        if self._counted is not None:
            self._counted()

    @property
    def is_on_disk(self) -> bool:
        """Whether reading waits for a disk."""
        return self._blocks is None

    @property
    def memory_nbytes(self) -> int:
        """What it has in memory."""
        return 0 if self._blocks is None else self.index.nbytes

    def __sizeof__(self) -> int:
        return max(NBYTES_MIN, self.memory_nbytes + 32 * len(self.index.outputs))

    def __repr__(self) -> str:
        where = f"in {self._path}" if self.is_on_disk else "in memory"
        nshards = len(self.index.outputs)
        return f"<KeptShards: {self.nrows:,} rows in {nshards} shards {where}>"

    def shard(self, output: int) -> KeptShard | None:
        """What was kept for an output partition; None: nothing was.

        Raises:
            FileLost: its file is missing, torn, or not what was written.
            OSError: it can't be read.
        """
        place = self.index.find(output)
        return None if place is None else KeptShard(self.index.nrows[place], self._bytes_at(place))

    def nbytes_of(self, output: int) -> int:
        """Of what was kept for an output partition."""
        place = self.index.find(output)
        offsets = self.index.offsets
        return 0 if place is None else offsets[place + 1] - offsets[place]

    def _bytes_at(self, place: int) -> Buffer:
        start, stop = self.index.offsets[place], self.index.offsets[place + 1]
        if start == stop:
            return b""
        blocks = self._blocks
        if blocks is not None:
            number = bisect_right(self._starts, start) - 1
            first = self._starts[number]
            return memoryview(blocks[number])[start - first : stop - first]
        assert self._files is not None
        return self._files.read(self._path, start, stop - start, self.index.checksums[place])

    def blocks(self) -> list[Buffer]:
        """The bytes of all shards, in pieces.

        Raises:
            FileLost, OSError: as `shard`.
        """
        blocks = self._blocks  # which another thread may be moving to disk
        if blocks is not None:
            return blocks
        return [self._bytes_at(place) for place in range(len(self.index.outputs))]

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        index = self.index
        columns = index.outputs, index.offsets, index.nrows
        pieces = [pickle.PickleBuffer(block) for block in self.blocks() if len(block)]
        return _restored, (self.nrows, self.digest, *[c.tobytes() for c in columns], *pieces)


def _restored(
    nrows: int, digest: int, outputs: bytes, offsets: bytes, rows: bytes, *pieces: Any
) -> KeptShards:
    """What was pickled, in memory; the budget does not know of it."""
    index = Index()
    index.outputs.frombytes(outputs)
    index.offsets = array("Q")
    index.offsets.frombytes(offsets)
    index.nrows.frombytes(rows)
    return KeptShards(nrows, digest, index, [memoryview(piece).cast("B") for piece in pieces])
