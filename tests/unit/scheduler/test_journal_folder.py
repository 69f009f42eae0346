"""A journal's folder: what is in it is there again, whatever became of the disk."""

import errno
import logging
import os
import stat
from pathlib import Path

import pytest

from shoal.ids import Epoch, JournalId, Key
from shoal.protocol.journal import (
    CodeWritten,
    DatasetGone,
    DatasetWritten,
    Entry,
    TasksForgotten,
    TasksKept,
    TasksWritten,
)
from shoal.protocol.messages import TaskOptions
from shoal.protocol.records import MAGIC, read_records, to_record
from shoal.scheduler.model.journaled import Journaled
from shoal.scheduler.shell.errors import (
    JournalInUse,
    JournalNotPrivate,
    JournalOfAnother,
    JournalUnreliable,
    JournalUnusable,
)
from shoal.scheduler.shell.journal_folder import JournalFolder


class BadDisk(JournalFolder):
    """Has room for so many bytes more."""

    room = 1 << 40
    syncs = True

    def _write(self, file: int, piece: bytes) -> None:
        if len(piece) > self.room:
            super()._write(file, piece[: self.room])
            self.room = 0
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.room -= len(piece)
        super()._write(file, piece)

    def _sync(self, file: int) -> None:
        if not self.syncs:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super()._sync(file)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "of" / "mine")


def begin(path: str, kind: type[JournalFolder] = JournalFolder) -> tuple[JournalFolder, Journaled]:
    """A scheduler starts; the folder, and what it finds."""
    folder = kind(path)
    journaled, _ = folder.open()
    return folder, journaled


def published(*names: str) -> list[Entry]:
    return [DatasetWritten(Key(name), name.encode() * 10) for name in names]


def found(path: str) -> list[str]:
    """What the next scheduler finds, that ends at once."""
    folder, journaled = begin(path)
    folder.close()
    return list(journaled.datasets)


def file_of(path: str) -> Path:
    return Path(path, "journal")


def test_what_was_appended_is_found_again(path: str) -> None:
    folder, journaled = begin(path)
    assert not journaled.datasets
    folder.append(published("a", "b"))
    folder.append([DatasetGone(Key("a")), *published("c")])
    folder.close()
    assert found(path) == found(path) == ["b", "c"]


def test_each_life_has_a_greater_epoch_that_is_on_disk_before_it_begins(path: str) -> None:
    epochs = []
    for _ in range(5):
        folder = JournalFolder(path)
        journaled, epoch = folder.open()
        folder.close()
        assert journaled.epoch == (epochs[-1] if epochs else Epoch(0))
        epochs.append(epoch)
    assert epochs == sorted(set(epochs))
    assert epochs[-1] < 1 << 63


def test_nobody_else_may_read_or_write_it(path: str) -> None:
    mask = os.umask(0)
    try:
        folder, _ = begin(path)
        folder.append(published("a"))
        folder.close()
    finally:
        os.umask(mask)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o700
    for name in os.listdir(path):
        assert stat.S_IMODE(os.stat(f"{path}/{name}").st_mode) == 0o600
    os.chmod(path, 0o750)
    with pytest.raises(JournalNotPrivate, match="its mode is 750"):
        begin(path)


def test_a_link_in_place_of_a_file_is_not_followed(path: str, tmp_path: Path) -> None:
    os.makedirs(path, mode=0o700)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(MAGIC)
    file_of(path).symlink_to(elsewhere)
    with pytest.raises(JournalUnusable):
        begin(path)
    assert elsewhere.read_bytes() == MAGIC


def test_one_scheduler_has_it_at_a_time(path: str) -> None:
    folder, _ = begin(path)
    folder.append(published("a"))
    with pytest.raises(JournalInUse, match=f"process {os.getpid()} on "):
        begin(path)
    folder.append(published("b"))
    folder.close()
    assert found(path) == ["a", "b"]


def test_a_torn_end_is_cut_and_told_once(path: str, caplog) -> None:
    folder, _ = begin(path)
    folder.append(published("a"))
    nbytes = file_of(path).stat().st_size
    folder.append(published("b"))
    folder.close()
    with open(file_of(path), "r+b") as file:
        file.truncate(nbytes + 7)
    assert found(path) == ["a"]
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "there were 7 bytes" in record.getMessage()
    caplog.clear()
    assert found(path) == ["a"]
    assert not caplog.records


def test_damage_in_its_midst_ends_what_is_read_and_the_file_is_kept(path: str, caplog) -> None:
    folder, _ = begin(path)
    folder.append(published("a"))
    nbytes = file_of(path).stat().st_size
    folder.append(published("b"))
    folder.append(published("c"))
    folder.close()
    whole = bytearray(file_of(path).read_bytes())
    whole[nbytes + 25] ^= 1
    file_of(path).write_bytes(whole)
    assert found(path) == ["a"]
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert f"{len(whole) - nbytes:,} bytes, with 1 record that" in record.getMessage()
    assert Path(path, "journal.damaged-1").read_bytes() == whole
    assert found(path) == ["a"]
    assert not Path(path, "journal.damaged-2").exists()


def test_what_another_version_has_written_is_refused_and_left_alone(path: str) -> None:
    found(path)
    of_format_9 = MAGIC.replace(b"   1", b"   9") + b"whatever"
    unknown = MAGIC + to_record(0, b"\x91\x92\x63\x01")
    for content, match in (
        (of_format_9, "is of format 9"),
        (b"PK something else", "is no journal of shoal"),
        (unknown, "is of shoal unknown"),
    ):
        file_of(path).write_bytes(content)
        with pytest.raises(JournalOfAnother, match=match):
            begin(path)
        assert file_of(path).read_bytes() == content


def test_a_file_that_was_about_to_be_made_is_begun_anew(path: str) -> None:
    found(path)
    file_of(path).write_bytes(b"")
    Path(path, "journal.new").write_bytes(b"left over")
    assert found(path) == []


def test_a_disk_that_fails_leaves_what_was_there(path: str) -> None:
    folder, _ = begin(path, BadDisk)
    folder.append(published("a"))
    nbytes = file_of(path).stat().st_size
    folder.room = 10
    with pytest.raises(OSError, match="No space"):
        folder.append(published("b"))
    assert file_of(path).stat().st_size == nbytes
    folder.close()
    assert found(path) == ["a"]


def test_nothing_follows_what_could_not_be_written(path: str) -> None:
    """It may refer to that, and would be all that the next scheduler has of it."""
    folder, _ = begin(path, BadDisk)
    folder.append(published("a"))
    folder.syncs = False
    with pytest.raises(OSError, match="Input/output"):
        folder.append(published("b"))
    folder.syncs = True
    with pytest.raises(OSError, match="Input/output"):
        folder.append(published("c"))
    assert isinstance(folder.failure, OSError)
    folder.close()
    assert found(path) == ["a"]


def test_a_file_that_is_not_as_it_was_written_is_not_written_anew(path: str) -> None:
    folder, _ = begin(path)
    folder.append(published("a"))
    at = file_of(path).stat().st_size
    folder.append(published("b"))
    with file_of(path).open("r+b") as file:
        file.seek(at + 30)
        file.write(b"!")
    with pytest.raises(JournalUnreliable, match=f"behind its first {at:,} bytes"):
        folder.compact()
    folder.close()
    assert sorted(os.listdir(path)) == ["journal", "journal.damaged-1", "lock"]
    assert found(path) == ["a"]


def test_a_name_that_the_disk_may_not_keep_is_no_journal_to_go_on_with(path: str) -> None:
    class ForgetsNames(JournalFolder):
        forgets = False

        def _sync(self, file: int) -> None:
            if self.forgets and stat.S_ISDIR(os.fstat(file).st_mode):
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            super()._sync(file)

    folder, _ = begin(path, ForgetsNames)
    folder.append(published("a"))
    folder.forgets = True
    with pytest.raises(JournalUnreliable, match="does not keep its name: input/output error"):
        folder.compact()
    folder.close()
    unopened = ForgetsNames(path)
    unopened.forgets = True
    with pytest.raises(JournalUnusable, match="does not keep its name"):
        unopened.open()
    assert found(path) == ["a"]


def test_what_refers_to_what_is_not_there_is_left_out_and_told(path: str, caplog) -> None:
    tasks = TasksWritten(
        numbers=[JournalId(1), JournalId(2), JournalId(3)],
        keys=[Key("whole"), Key("no-code"), Key("needs-it")],
        codes=[JournalId(1), JournalId(2), JournalId(1)],
        arguments=[b"", b"", b""],
        dependencies=[[], [], [JournalId(2)]],
        prefixes=["f"],
        prefix_indices=[0, 0, 0],
        options=[TaskOptions()],
        option_indices=[0, 0, 0],
    )
    folder, _ = begin(path)
    kept = TasksKept([JournalId(1), JournalId(2), JournalId(3)])
    folder.append([CodeWritten(JournalId(1), b"f"), tasks, kept])
    folder.close()
    with caplog.at_level(logging.ERROR, "shoal.scheduler"):
        folder, journaled = begin(path)
    folder.close()
    assert [task.key for task in journaled.tasks.values()] == ["whole"]
    assert list(journaled.detached) == [1]
    assert "2 tasks of the journal" in caplog.text
    assert found(path) == []


def test_forks_that_have_it_open_do_not_keep_it_from_others(path: str) -> None:
    folder, _ = begin(path)
    lock = os.dup(folder._lock)  # what a fork has: another number for the same open file
    folder.close()
    assert found(path) == []
    os.close(lock)


def test_a_disk_that_is_full_from_the_start_is_an_error_and_harms_nothing(path: str) -> None:
    folder, _ = begin(path)
    folder.append(published("a"))
    folder.close()
    full = BadDisk(path)
    full.room = 20
    with pytest.raises(JournalUnusable, match="No space left"):
        full.open()
    assert found(path) == ["a"]


def test_it_stays_as_small_as_what_it_has_however_much_is_written(path: str) -> None:
    class Small(JournalFolder):
        compact_bytes_min = 4_000

    folder, _ = begin(path, Small)
    folder.append(published("kept"))
    largest = 0
    for _ in range(2_000):
        folder.append([DatasetWritten(Key("often"), bytes(100))])
        largest = max(largest, file_of(path).stat().st_size)
        if folder.is_due:
            folder.compact()
    folder.append([DatasetGone(Key("often")), TasksForgotten([JournalId(1)])])
    folder.close()
    assert largest < 5_000
    assert found(path) == ["kept"]


def test_writing_it_anew_fails_and_the_file_goes_on(path: str) -> None:
    folder, _ = begin(path, BadDisk)
    folder.append(published("a"))
    folder.room = 10
    with pytest.raises(OSError, match="No space"):
        folder.compact()
    folder.room = 1 << 40
    folder.append(published("b"))
    assert sorted(os.listdir(path)) == ["journal", "lock"]
    folder.close()
    assert found(path) == ["a", "b"]


def test_a_large_journal_is_written_anew_in_several_records(path: str) -> None:
    folder, _ = begin(path)
    folder.append([DatasetWritten(Key(str(n)), bytes(1 << 20)) for n in range(10)])
    folder.compact()
    folder.append(published("last"))
    folder.close()
    assert len(read_records(file_of(path).read_bytes()).bodies) >= 3
    assert found(path) == [*map(str, range(10)), "last"]
