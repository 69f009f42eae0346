"""Shards as they are cut become kept ones: in memory while that has room, else in one file.

Blocks are gathered, then kept or written at once; what is in memory goes to the file as well when
there is one.  A disk that takes nothing is no error as long as memory has room.
"""

from __future__ import annotations

from typing import Final

from shoal.shuffle.budget import ShardBudget
from shoal.shuffle.disk import ShardFiles, checksum_of
from shoal.shuffle.exchange import Buffer, Cut, Shard
from shoal.shuffle.kept import Index, KeptShards
from shoal.storage.disk import NewFile

BLOCK_NBYTES: Final = 1 << 22
"""Gathered before they are kept, or written at once; larger shards are blocks of their own."""


class NoRoom(Exception):
    """Shards fit neither in memory nor on disk; `nbytes`: as far as they were cut."""

    def __init__(self, nbytes: int, why: str) -> None:
        """`why`: the disk takes nothing, as a clause."""
        super().__init__(nbytes, why)
        self.nbytes, self.why = nbytes, why


def keep(
    cut: Cut,
    budget: ShardBudget,
    files: ShardFiles,
    *,
    may_write: bool,
    must_fit: bool = False,
) -> KeptShards:
    """Keep all shards of a cut.

    Args:
        may_write: False: they stay in memory, as far as `budget` allows at the most.
        must_fit: they stay in memory whatever that takes.

    Raises:
        OSError: they don't fit in memory, and the disk does not take them.
        NoRoom: they don't fit in memory, and may not be written.

    Cost: one copy of the bytes, none of large shards that go to disk; at most a block beside what
    is kept.
    """
    keeping = _Keeping(budget, files, may_write=may_write, must_fit=must_fit)
    try:
        for shard in cut.shards:
            keeping.add(shard)
        return keeping.finish(cut.nrows, cut.digest)
    except BaseException:
        keeping.give_up()
        raise


class _Keeping:
    """One input partition that is being kept."""

    def __init__(
        self, budget: ShardBudget, files: ShardFiles, *, may_write: bool, must_fit: bool
    ) -> None:
        self._budget = budget
        self._files = files
        self._may_write = may_write
        self._must_fit = must_fit
        self._index = Index()
        self._pieces: list[Buffer] = []  # of the next block
        self._gathered_nbytes = 0
        self._blocks: list[bytes] = []  # in memory
        self._taken_nbytes = 0  # of these
        self._file: NewFile | None = None

    def add(self, shard: Shard) -> None:
        views = [memoryview(buffer).cast("B") for buffer in shard.buffers]
        nbytes = sum([view.nbytes for view in views])
        if self._pieces and self._gathered_nbytes + nbytes > BLOCK_NBYTES:
            self._end_block()
        self._index.add(shard.output, shard.nrows, nbytes)
        self._pieces += views
        self._gathered_nbytes += nbytes

    def finish(self, nrows: int, digest: int) -> KeptShards:
        if self._pieces:
            self._end_block()
        file = self._file
        if file is None:
            self._taken_nbytes = 0  # is the kept shards' from here on
            kept = KeptShards.in_memory(nrows, digest, self._index, self._blocks, self._budget)
            kept.may_be_written = not self._must_fit
            return kept
        self._file = None
        path = self._files.publish(file)
        return KeptShards.on_disk(nrows, digest, self._index, path, self._files)

    def give_up(self) -> None:
        self._budget.give_back(self._taken_nbytes)
        if self._file is not None:
            self._files.abandon(self._file)
            self._file = None

    def _end_block(self) -> None:
        pieces, nbytes = self._pieces, self._gathered_nbytes
        self._pieces, self._gathered_nbytes = [], 0
        if self._file is None and not self._takes(nbytes):
            self._begin_file()
        if self._file is None:
            self._taken_nbytes += nbytes
            self._blocks.append(b"".join(pieces))
        elif nbytes > BLOCK_NBYTES:
            self._write_large(pieces)
        else:
            self._write(b"".join(pieces))

    def _begin_file(self) -> None:
        """What is in memory goes to the file first."""
        if not self._may_write:
            raise NoRoom(self._index.nbytes, self._files.trouble or "they may not be written")
        self._file = self._files.create()
        for earlier in self._blocks:
            self._write(earlier)
        self._blocks.clear()
        self._budget.give_back(self._taken_nbytes)
        self._taken_nbytes = 0

    def _takes(self, nbytes: int) -> bool:
        if self._must_fit:
            self._budget.force(nbytes)
            return True
        return self._budget.take(nbytes, is_hard=not self._may_write)

    def _write(self, block: bytes) -> None:
        """Append it, with a checksum of each of the shards that it consists of."""
        assert self._file is not None
        index = self._index
        view, place = memoryview(block), len(index.checksums)
        origin = index.offsets[place]
        while place < len(index.outputs) and index.offsets[place + 1] - origin <= len(block):
            start, stop = index.offsets[place] - origin, index.offsets[place + 1] - origin
            index.checksums.append(checksum_of(view[start:stop]))
            place += 1
        self._files.append(self._file, block)

    def _write_large(self, pieces: list[Buffer]) -> None:
        """Append one shard, and empty ones before it, without making it one piece in memory."""
        assert self._file is not None
        checksums = self._index.checksums
        checksums.extend([checksum_of(b"")] * (len(self._index.outputs) - 1 - len(checksums)))
        checksum = checksum_of(b"")
        for piece in pieces:
            checksum = checksum_of(piece, checksum)
            self._files.append(self._file, piece)
        checksums.append(checksum)
