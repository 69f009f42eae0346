"""Values to files and back: whole and checked, or not at all."""

from __future__ import annotations

import errno
import gc
import os
import pickle
import resource
import stat
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from shoal.protocol.payload import load
from shoal.storage.disk import Disk
from shoal.storage.errors import FileLost, Unwritable
from shoal.storage.scratch import Scratch
from shoal.storage.spill import BLOCK_NBYTES, Spill

FRAME = pd.DataFrame({"x": range(1000), "y": [f"text {i}" for i in range(1000)]})
LONG_STREAM = [f"a longer text than most are {i}" for i in range(150_000)]
"""Several blocks of one stream, and no buffer."""


class Slot:
    """What pickle finds no state of, so that cloudpickle has to."""

    def __init__(self) -> None:
        self.function = lambda: 7


def spill_into(folder: Path, *, nbytes_max: int | None = None, ways: tuple[str, ...] = ()) -> Spill:
    return Spill(Disk(lambda: str(folder), nbytes_max), ways)


@pytest.mark.parametrize("ways", [(), ("zlib",)], ids=["plain", "compressed"])
@pytest.mark.parametrize(
    "value",
    [
        np.arange(BLOCK_NBYTES // 8 + 1, dtype=float),
        np.arange(10_000).reshape(100, 100)[:, ::2],
        FRAME,
        LONG_STREAM,
        b"x" * 100_000,
        {"nested": [np.ones(10_000), "text"]},
        None,
    ],
    ids=["array", "slice", "frame", "texts", "bytes", "nested", "none"],
)
def test_what_was_written_is_read_and_sent_as_it_was(
    tmp_path: Path, value: Any, ways: tuple[str, ...]
) -> None:
    """As a value, and as what travels to those who ask for it."""
    spill = spill_into(tmp_path, ways=ways)
    spilled = spill.write(value, 1)
    assert pickle.dumps(spill.load(spilled)) == pickle.dumps(value)
    assert pickle.dumps(load(*spill.message(spilled))) == pickle.dumps(value)
    assert spill.disk.nbytes == spilled.disk_nbytes
    assert spilled.disk_nbytes == os.path.getsize(spilled.path)


def test_what_only_cloudpickle_can_is_written_too(tmp_path: Path) -> None:
    spill = spill_into(tmp_path)
    loaded: Any = spill.load(spill.write(Slot(), 1))
    assert loaded.function() == 7


def test_what_is_read_may_be_written_to_like_what_was_fetched(tmp_path: Path) -> None:
    spill = spill_into(tmp_path)
    loaded: Any = spill.load(spill.write(np.zeros(100_000), 1))
    loaded[0] = 1.0
    assert loaded.sum() == 1.0


def test_what_repeats_itself_takes_little_room(tmp_path: Path) -> None:
    spill = spill_into(tmp_path, ways=("zlib",))
    array = np.zeros(1_000_000)
    assert spill.write(array, array.nbytes).disk_nbytes < array.nbytes / 100
    noise = np.random.default_rng(0).integers(0, 255, 1_000_000, dtype=np.uint8)
    assert noise.nbytes <= spill.write(noise, noise.nbytes).disk_nbytes < noise.nbytes + 1000


def test_a_value_that_somebody_still_has_is_not_read(tmp_path: Path) -> None:
    spill = spill_into(tmp_path)
    array = np.zeros(10)
    spilled = spill.write(array, 80)
    spilled.remember(array)
    assert spill.load(spilled) is array
    del array
    gc.collect()
    assert spill.load(spilled) is not None
    assert spilled.living() is None
    unhappy = spill.write([1], 80)
    unhappy.remember([1])  # nobody can refer to a list weakly
    assert spill.load(unhappy) == [1]


def test_files_are_for_the_worker_alone(tmp_path: Path) -> None:
    scratch = Scratch(str(tmp_path))
    spill = Spill(Disk(scratch.storage))
    spilled = spill.write(np.zeros(10_000), 1)
    folder = Path(spilled.path).parent
    assert stat.S_IMODE(os.stat(spilled.path).st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    assert tmp_path in folder.parents
    scratch.remove()
    assert list(tmp_path.iterdir()) == []


def test_two_workers_may_be_given_the_same_folder(tmp_path: Path) -> None:
    one, other = Scratch(str(tmp_path)), Scratch(str(tmp_path))
    assert one.storage() != other.storage()
    one.remove()
    assert Path(other.storage()).is_dir()


def truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def deleted(path: Path) -> None:
    path.unlink()


def emptied(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("ways", [(), ("zlib",)], ids=["plain", "compressed"])
@pytest.mark.parametrize("value", [np.zeros(100_000), LONG_STREAM], ids=["buffer", "stream"])
@pytest.mark.parametrize("damage", [truncated, flipped, deleted, emptied])
def test_a_file_that_is_not_what_was_written_is_lost(
    tmp_path: Path, damage: Any, value: Any, ways: tuple[str, ...]
) -> None:
    spill = spill_into(tmp_path, ways=ways)
    spilled = spill.write(value, 1)
    damage(Path(spilled.path))
    with pytest.raises(FileLost, match="is computed again"):
        spill.load(spilled)
    with pytest.raises(FileLost):
        spill.message(spilled)
    spill.remove(spilled)
    assert spill.disk.nbytes == 0


class FullDisk(Disk):
    """Has room for so many bytes."""

    room = 150_000

    def _write(self, descriptor: int, view: memoryview) -> int:
        if self.room == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        nbytes = super()._write(descriptor, view[: self.room])
        self.room -= nbytes
        return nbytes


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    """It fills in the middle of a file."""
    spill = Spill(FullDisk(lambda: str(tmp_path)))
    with pytest.raises(OSError, match="No space left") as raised:
        spill.write(np.zeros(100_000), 1)
    assert raised.value.errno == errno.ENOSPC
    assert spill.disk.nbytes == 0
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_really_takes_no_more_is_an_error_like_any(tmp_path: Path) -> None:
    """By a limit of the system's for the size of files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    spill = spill_into(tmp_path)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            spill.write(np.zeros(100_000), 1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (spill.disk.nbytes, list(tmp_path.iterdir())) == (0, [])


def test_results_take_no_more_than_they_may(tmp_path: Path) -> None:
    """What is removed makes room."""
    spill = spill_into(tmp_path, nbytes_max=1_000_000)
    first = spill.write(np.zeros(100_000), 1)
    with pytest.raises(OSError, match="max-spill"):
        spill.write(np.zeros(100_000), 1)
    assert spill.disk.nbytes == first.disk_nbytes
    spill.remove(first)
    spill.write(np.zeros(100_000), 1)


class Thorny:
    """Can't be pickled, and says so by an OSError, as a disk would."""

    def __reduce__(self) -> str:
        raise OSError("open files don't travel")


@pytest.mark.parametrize("value", [threading.Lock(), [np.zeros(10_000), Thorny()]])
def test_what_can_not_be_pickled_is_told_apart_from_a_bad_disk(tmp_path: Path, value: Any) -> None:
    spill = spill_into(tmp_path)
    with pytest.raises(Unwritable):
        spill.write(value, 1)
    assert (spill.disk.nbytes, list(tmp_path.iterdir())) == (0, [])


def test_a_folder_that_somebody_has_removed_is_made_again(tmp_path: Path) -> None:
    folder = tmp_path / "storage"
    folder.mkdir()
    spill = spill_into(folder)
    lost = spill.write("value", 1)
    os.unlink(lost.path)
    folder.rmdir()
    assert spill.load(spill.write("other", 1)) == "other"
    with pytest.raises(FileLost, match="no such file"):
        spill.load(lost)


def test_others_have_their_turns_while_a_long_stream_is_made_and_read(tmp_path: Path) -> None:
    """Pickle makes, and reads, these texts in one call that lets nobody else run."""
    texts = [f"a text of some length {i}" for i in range(400_000)]
    spill, stop, turns = spill_into(tmp_path), threading.Event(), list[None]()

    def take_turns() -> None:
        while not stop.wait(0.001):
            turns.append(None)

    watching = threading.Thread(target=take_turns)
    watching.start()
    gc.disable()  # it would stop everybody
    try:
        assert len(spill.load(spill.write(texts, 1))) == len(texts)  # type: ignore[arg-type]
    finally:
        gc.enable()
        stop.set()
        watching.join()
    assert len(turns) > 10
