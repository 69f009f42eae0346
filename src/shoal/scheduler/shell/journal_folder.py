"""The folder of a journal: one file that grows, one scheduler that has it, nobody else who reads.

For one thread at a time, that may be held up by the disk.  Whoever tests what becomes of a bad disk
derives from `JournalFolder`.
"""

from __future__ import annotations

import fcntl
import logging
import os
import secrets
import socket
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from shoal.ids import Epoch
from shoal.protocol.journal import Entry, LifeBegun, from_body, to_body
from shoal.protocol.records import FORMAT, MAGIC, Reading, format_of, read_records, to_record
from shoal.scheduler.model.journaled import Journaled
from shoal.scheduler.shell.errors import (
    JournalDamaged,
    JournalIncomplete,
    JournalInUse,
    JournalNotPrivate,
    JournalOfAnother,
    JournalTorn,
    JournalUnreliable,
    JournalUnusable,
)
from shoal.version import VERSION

logger = logging.getLogger("shoal.scheduler")

_OURS: Final = os.O_CLOEXEC | os.O_NOFOLLOW
_RECORD_BYTES: Final = 4 << 20
"""Of a snapshot, about."""
_FIRST_EPOCH_BITS: Final = 62
_NEXT_EPOCH_BITS: Final = 16
"""Those of a folder that was copied differ, too."""


class JournalFolder:
    """Opens a journal, appends to it, and writes it anew when most of it is of no use any more."""

    compact_bytes_min = 16 << 20
    """A smaller file is not written anew."""
    compact_ratio = 3
    """Nor is one that is not so many times as large as when it was written last."""

    def __init__(self, path: str) -> None:
        """Nothing happens before it is opened; `path`: made if it is not there."""
        self.path = str(Path(path).expanduser().absolute())
        self._lock = -1
        self._file = -1
        self._nrecords = 0  # of the file
        self._nbytes = 0
        self._nbytes_due = 0  # from which it is written anew
        self.failure: OSError | None = None
        """Why the file lacks something that was to be appended: nothing may follow it."""

    @property
    def is_due(self) -> bool:
        """Whether it is time to write it anew."""
        return self._nbytes > self._nbytes_due

    def open(self) -> tuple[Journaled, Epoch]:
        """What the schedulers before have left, and the epoch of the next, which is on disk.

        Raises:
            JournalInUse: another scheduler has it.
            JournalNotPrivate: others may read or write there.
            JournalOfAnother: another version of shoal has written it, or something else.
            JournalUnusable: the disk fails, or has no room.
        """
        try:
            self._make_private()
            self._take_lock()
            journaled = self._read()
            left = Journaled(journaled.entries())
            nlost = left.prune()
            if nlost:
                logger.error("%s", JournalIncomplete(self.path, nlost))
            epoch = _epoch_after(journaled.epoch)
            self._write_anew([*left.entries(), LifeBegun(epoch, VERSION)])
        except OSError as error:
            self.close()
            raise JournalUnusable(self.path, error.strerror or str(error)) from error
        except JournalUnreliable as error:
            self.close()
            raise JournalUnusable(self.path, error.why) from error
        except BaseException:
            self.close()
            raise
        return left, epoch

    def append(self, entries: Sequence[Entry]) -> None:
        """Have these on disk by the time that this returns.

        Raises:
            OSError: they are not, nor will be what follows, as that may refer to them; and the file
                ends as it did before, if that is possible.
            ValueError: they are more than a record may have.
        """
        if self.failure is not None:
            raise self.failure
        record = to_record(self._nrecords, to_body(entries))
        try:
            self._write(self._file, record)
            self._sync(self._file)
        except OSError as error:
            self.failure = error
            with suppress(OSError):  # what is torn is found when it is opened again
                os.ftruncate(self._file, self._nbytes)
            raise
        self._nrecords += 1
        self._nbytes += len(record)

    def compact(self) -> None:
        """Write the file anew, without what is of no use any more.  Cost: 1 s for each 50 MB.

        Raises:
            OSError: that failed, and the file is as it was; it is tried again when it has doubled.
            JournalUnreliable: the file is not as it was written, and is kept beside; or nobody
                knows which of the two a crash would leave.
        """
        try:
            whole = Path(self.path, "journal").read_bytes()
            reading = read_records(whole[: self._nbytes])
            if len(reading.bodies) != self._nrecords:
                beside = self._keep_beside()
                raise JournalUnreliable(self.path, reading.nbytes, beside)
            self._write_anew(self._decode(reading).entries())
        except OSError:
            self._nbytes_due = 2 * self._nbytes
            raise

    def close(self) -> None:
        """Let another scheduler have it."""
        if self._lock >= 0:
            fcntl.flock(self._lock, fcntl.LOCK_UN)  # forks of this process have it open, too
        for descriptor in (self._file, self._lock):
            if descriptor >= 0:
                os.close(descriptor)
        self._file = self._lock = -1

    # --- how it is opened --------------------------------------------------------------------

    def _make_private(self) -> None:
        parent = str(Path(self.path).parent)
        os.makedirs(parent, exist_ok=True)
        with suppress(FileExistsError):
            os.mkdir(self.path, mode=0o700)
            with _folder_of(parent) as folder:
                self._sync(folder)
        found = os.stat(self.path)
        if found.st_uid != os.geteuid():
            raise JournalNotPrivate(self.path, "it is another user's")
        if not stat.S_ISDIR(found.st_mode):
            raise JournalNotPrivate(self.path, "it is no folder")
        if found.st_mode & 0o077:
            raise JournalNotPrivate(self.path, f"its mode is {stat.S_IMODE(found.st_mode):o}")

    def _take_lock(self) -> None:
        self._lock = os.open(f"{self.path}/lock", os.O_RDWR | os.O_CREAT | _OURS, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self._lock, 200).decode(errors="replace").strip()
            raise JournalInUse(self.path, holder) from None
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)

    def _read(self) -> Journaled:
        """What is in the file, as far as it can be read; what can't is told, once."""
        try:
            file = os.open(f"{self.path}/journal", os.O_RDONLY | _OURS)
        except FileNotFoundError:
            return Journaled()
        with open(file, "rb") as opened:
            whole = opened.read()
        if not whole:  # it was about to be made
            return Journaled()
        number = format_of(whole)
        if number != FORMAT:
            raise JournalOfAnother(self.path, "" if number is None else f"format {number}")
        reading = read_records(whole)
        journaled = self._decode(reading)
        if reading.nlost:
            beside = self._keep_beside()
            nlost, nrecords = reading.nlost, reading.nrecords_lost
            logger.error("%s", JournalDamaged(self.path, reading.nbytes, nlost, nrecords, beside))
        elif reading.ntorn:
            logger.warning("%s", JournalTorn(self.path, reading.ntorn))
        return journaled

    def _decode(self, reading: Reading) -> Journaled:
        journaled = Journaled()
        for body in reading.bodies:
            try:
                journaled.take(from_body(body))
            except (msgspec.MsgspecError, IndexError) as error:
                version = journaled.version or "unknown"
                raise JournalOfAnother(self.path, f"shoal {version}: {error}") from error
        return journaled

    def _keep_beside(self) -> str:
        """Give the damaged file a further name, under which it stays."""
        for number in range(1, 1000):
            name = f"journal.damaged-{number}"
            try:
                os.link(f"{self.path}/journal", f"{self.path}/{name}")
            except FileExistsError:
                continue
            return name
        raise OSError(f"there are a thousand damaged journals in {self.path}")

    # --- how it is written -------------------------------------------------------------------

    def _write_anew(self, entries: Iterable[Entry]) -> None:
        """A file with these alone takes the place of the one that is there; all of it, or none.

        Raises:
            OSError: the file that was there is there.
            JournalUnreliable: one of the two is, and a crash may yet change which.
        """
        path = f"{self.path}/journal.new"
        if os.path.lexists(path):
            os.unlink(path)
        with _folder_of(self.path) as folder:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _OURS, 0o600)
            try:
                nrecords, nbytes = self._write_all(file, entries)
                self._sync(file)
                os.rename(path, f"{self.path}/journal")
            except BaseException:
                os.close(file)
                os.unlink(path)
                raise
            before, self._file = self._file, file
            self._nrecords, self._nbytes = nrecords, nbytes
            self._nbytes_due = max(self.compact_bytes_min, self.compact_ratio * nbytes)
            if before >= 0:
                with suppress(OSError):
                    os.close(before)
            try:
                self._sync(folder)
            except OSError as error:
                raise JournalUnreliable(self.path, error=error) from error

    def _write_all(self, file: int, entries: Iterable[Entry]) -> tuple[int, int]:
        """How many records and bytes they became."""
        self._write(file, MAGIC)
        nrecords, nbytes = 0, len(MAGIC)
        some: list[bytes] = []
        nsome = 0
        for entry in entries:
            body = msgspec.msgpack.encode(entry)
            some.append(body)
            nsome += len(body)
            if nsome >= _RECORD_BYTES:
                nbytes += self._write_record(file, nrecords, some)
                nrecords, nsome, some = nrecords + 1, 0, []
        if some:
            nbytes += self._write_record(file, nrecords, some)
            nrecords += 1
        return nrecords, nbytes

    def _write_record(self, file: int, number: int, bodies: list[bytes]) -> int:
        record = to_record(number, msgspec.msgpack.encode([msgspec.Raw(body) for body in bodies]))
        self._write(file, record)
        return len(record)

    def _write(self, file: int, piece: bytes) -> None:
        """All of it."""
        view = memoryview(piece)
        while view.nbytes:
            view = view[os.write(file, view) :]

    def _sync(self, file: int) -> None:
        """Whatever was written is on disk."""
        os.fsync(file)


@contextmanager
def _folder_of(path: str) -> Iterator[int]:
    """A descriptor of a folder, to sync the names in it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _epoch_after(epoch: Epoch) -> Epoch:
    """A greater one, that nobody has had."""
    if not epoch:
        return Epoch(secrets.randbits(_FIRST_EPOCH_BITS) | 1)
    return Epoch(epoch + 1 + secrets.randbits(_NEXT_EPOCH_BITS))
