"""Shards in memory and on disk: whole, found by output partition, gone when nobody needs them."""

from __future__ import annotations

import errno
import gc
import os
import pickle
import stat
from pathlib import Path
from typing import Any

import pytest

from shoal.protocol.payload import dump, load, nbytes_of
from shoal.shuffle.budget import ShardBudget
from shoal.shuffle.disk import RETRY_SECONDS, ShardFiles
from shoal.shuffle.exchange import Buffer, Cut, Shard
from shoal.shuffle.keeping import BLOCK_NBYTES, NoRoom, keep
from shoal.shuffle.kept import NBYTES_MIN, KeptShards
from shoal.storage.disk import Disk, NewFile
from shoal.storage.errors import FileLost
from tests.unit.shuffle.byte_exchange import ByteExchange

VALUE = bytes([3, 0, 3, 5, 3])


def files_in(folder: Path, disk_type: type[Disk] = Disk, **options: Any) -> ShardFiles:
    return ShardFiles(lambda: str(folder), disk_type, **options)


def kept_of(
    budget: ShardBudget, files: ShardFiles, factor: int = 1, *, may_write: bool = True
) -> KeptShards:
    return keep(ByteExchange("x", 7, factor).cut(VALUE, 0), budget, files, may_write=may_write)


def path_of(folder: Path) -> Path:
    [path] = (folder / "shards").iterdir()
    return path


@pytest.mark.parametrize("nbytes_max", [1 << 30, 0], ids=["memory", "disk"])
@pytest.mark.parametrize("factor", [1, 1000, BLOCK_NBYTES // 2, BLOCK_NBYTES + 1])
def test_each_output_partition_finds_what_was_cut_for_it(
    tmp_path: Path, nbytes_max: int, factor: int
) -> None:
    files = files_in(tmp_path)
    kept = kept_of(ShardBudget(nbytes_max, nbytes_max), files, factor)
    assert kept.is_on_disk is (nbytes_max == 0)
    for output in range(7):
        shard = kept.shard(output)
        nrows = VALUE.count(output)
        found = (0, b"") if shard is None else (shard.nrows, bytes(shard.content))
        assert found == (nrows, bytes([output]) * (nrows * factor))
        assert kept.nbytes_of(output) == nrows * factor
    files.close()


def test_what_each_output_partition_gets_is_told_as_columns_of_64_bits(tmp_path: Path) -> None:
    kept = kept_of(ShardBudget(100, 100), files_in(tmp_path))
    lanes = kept.index.nbytes_by_output(7)
    found = [int.from_bytes(lanes[at : at + 8], "little") for at in range(0, 56, 8)]
    assert found == [1, 0, 0, 3, 0, 1, 0]


def test_nothing_is_written_while_memory_has_room(tmp_path: Path) -> None:
    kept = kept_of(ShardBudget(5, 5), files_in(tmp_path))
    assert not kept.is_on_disk
    assert list(tmp_path.iterdir()) == []


def test_what_was_in_memory_goes_to_the_file_with_the_rest(tmp_path: Path) -> None:
    budget = ShardBudget(BLOCK_NBYTES, BLOCK_NBYTES)
    files = files_in(tmp_path)
    kept = kept_of(budget, files, BLOCK_NBYTES)
    assert kept.is_on_disk
    assert budget.nbytes == 0
    assert path_of(tmp_path).stat().st_size == kept.index.nbytes == files.nbytes
    assert stat.S_IMODE(path_of(tmp_path).stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "shards").stat().st_mode) == 0o700
    files.close()


def test_a_large_shard_in_several_pieces_goes_to_disk_as_they_are(tmp_path: Path) -> None:
    """Empty shards before and after it, and small ones; each is found and checked on its own."""
    large: list[Buffer] = [
        b"head",
        memoryview(bytes(range(256)) * (BLOCK_NBYTES // 128)),
        b"",
        b"foot",
    ]
    shards = [
        Shard(0, 0, []), Shard(1, 2, [b"ab", b"c"]), Shard(2, 0, []), Shard(3, 9, large),
        Shard(4, 0, []), Shard(5, 9, large[::-1]), Shard(6, 1, [b"z"]), Shard(7, 0, [b""]),
    ]  # fmt: skip
    written: list[int] = []

    class Watched(Disk):
        def append(self, file: NewFile, piece: Any) -> None:
            written.append(memoryview(piece).nbytes)
            super().append(file, piece)

    files = files_in(tmp_path, Watched)
    kept = keep(Cut(21, 0, shards), ShardBudget(0, 0), files, may_write=True)
    for output, nrows, pieces in shards:
        found = kept.shard(output)
        assert found is not None
        assert (found.nrows, bytes(found.content)) == (nrows, b"".join(pieces))
    assert max(written) == memoryview(large[1]).nbytes  # never head and body in one piece
    files.close()


def test_memory_is_given_back_with_the_last_reference(tmp_path: Path) -> None:
    budget = ShardBudget(100, 100)
    kept = kept_of(budget, files_in(tmp_path))
    assert budget.nbytes == 5
    shard = kept.shard(3)
    del kept
    gc.collect()
    assert budget.nbytes == 0
    assert shard is not None
    assert bytes(shard.content) == b"\3\3\3"  # whoever sends it has it still


def test_a_file_goes_with_the_last_reference(tmp_path: Path) -> None:
    files = files_in(tmp_path)
    kept = kept_of(ShardBudget(0, 0), files)
    path = path_of(tmp_path)
    del kept
    gc.collect()
    files.close()  # which waits for the thread that removes
    assert not path.exists()
    assert files.nbytes == 0


def damage(path: Path, how: str) -> None:
    content = bytearray(path.read_bytes())
    if how == "deleted":
        path.unlink()
    elif how == "torn":
        path.write_bytes(content[:-1])
    else:
        content[-1] ^= 1
        path.write_bytes(content)


@pytest.mark.parametrize("how", ["deleted", "torn", "flipped"])
def test_a_damaged_file_gives_no_rows_but_an_error(tmp_path: Path, how: str) -> None:
    files = files_in(tmp_path)
    kept = kept_of(ShardBudget(0, 0), files)
    damage(path_of(tmp_path), how)
    with pytest.raises(FileLost, match="is lost"):
        kept.shard(5)
    with pytest.raises(FileLost):
        pickle.dumps(kept)
    if how != "deleted":
        intact = kept.shard(3)
        assert intact is not None
        assert bytes(intact.content) == b"\3\3\3"
    files.close()


class FullDisk(Disk):
    """Takes `room` bytes in all."""

    room = 0

    def _write(self, descriptor: int, view: memoryview) -> int:
        if self.nbytes > self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super()._write(descriptor, view)


def test_a_full_disk_is_told_and_leaves_nothing_behind(tmp_path: Path) -> None:
    now = 100.0
    files = files_in(tmp_path, FullDisk, clock=lambda: now)
    budget = ShardBudget(BLOCK_NBYTES, BLOCK_NBYTES)
    with pytest.raises(OSError, match="No space left"):
        kept_of(budget, files, BLOCK_NBYTES)
    assert budget.nbytes == 0
    assert files.nbytes == 0
    assert list((tmp_path / "shards").iterdir()) == []
    assert not files.may_be_tried
    now += RETRY_SECONDS
    assert files.may_be_tried
    files.close()


def test_what_may_not_be_written_stays_in_memory_up_to_the_hard_limit(tmp_path: Path) -> None:
    budget = ShardBudget(0, 8)
    files = files_in(tmp_path)
    kept = kept_of(budget, files, may_write=False)
    assert not kept.is_on_disk
    with pytest.raises(NoRoom):
        kept_of(budget, files, may_write=False)
    assert budget.nbytes == 5


@pytest.mark.parametrize("nbytes_max", [1 << 30, 0], ids=["memory", "disk"])
@pytest.mark.parametrize("factor", [1, 100_000])
def test_a_copy_has_all_of_it_in_memory(tmp_path: Path, nbytes_max: int, factor: int) -> None:
    files = files_in(tmp_path)
    kept = kept_of(ShardBudget(nbytes_max, nbytes_max), files, factor)
    header, buffers = dump(kept)
    copy = load(header, [bytes(buffer) for buffer in buffers])
    assert isinstance(copy, KeptShards)
    assert not copy.is_on_disk
    assert copy.nrows == 5
    for output in range(7):
        one, other = copy.shard(output), kept.shard(output)
        assert (one is None) is (other is None)
        if one is not None and other is not None:
            assert one.nrows == other.nrows
            assert bytes(one.content) == bytes(other.content)
    files.close()


def test_they_are_never_so_small_that_they_travel_with_an_answer(tmp_path: Path) -> None:
    files = files_in(tmp_path)
    assert nbytes_of(kept_of(ShardBudget(100, 100), files)) >= NBYTES_MIN
    on_disk = kept_of(ShardBudget(0, 0), files, BLOCK_NBYTES)
    assert NBYTES_MIN <= nbytes_of(on_disk) < 2 * NBYTES_MIN
    in_memory = kept_of(ShardBudget(1 << 30, 1 << 30), files, BLOCK_NBYTES)
    assert nbytes_of(in_memory) >= 5 * BLOCK_NBYTES
    files.close()


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    files = files_in(tmp_path)
    nbefore = len(os.listdir("/proc/self/fd"))
    kept = kept_of(ShardBudget(0, 0), files)
    for output in range(7):
        kept.shard(output)
    assert len(os.listdir("/proc/self/fd")) == nbefore
    files.close()
