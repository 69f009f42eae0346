"""The files that shards are in: written from the first byte to the last, read in pieces.

For any thread.  A file is removed by a thread of its own, since whoever drops the last reference to
its shards may be the loop.
"""

from __future__ import annotations

import os
import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from time import monotonic
from typing import Final, TypeVar

from shoal.comms.memory import allocate
from shoal.shuffle.exchange import Buffer
from shoal.storage.disk import Disk, NewFile
from shoal.storage.errors import FileLost

T = TypeVar("T")

RETRY_SECONDS: Final = 5.0
"""A disk that took nothing is tried again after this long."""

CLOSE_SECONDS: Final = 1.0
"""What removing may take as the worker closes, before it is left to the folder's end."""


class ShardFiles:
    """All files of shards of one worker."""

    def __init__(
        self,
        make_parent: Callable[[], str],
        disk_type: type[Disk] = Disk,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """`make_parent`: makes a folder of the worker's own, or tells where it is."""
        self._make_parent = make_parent
        self.disk = disk_type(self._make_folder)
        self._clock = clock
        self._tried_at: float | None = None  # when it last took nothing
        self.trouble = ""
        """Why the disk takes nothing, as a clause; "": it does, or would."""
        self._unused: SimpleQueue[tuple[str, int] | None] = SimpleQueue()
        self._remover: threading.Thread | None = None
        self._beginning = threading.Lock()

    def _make_folder(self) -> str:
        folder = Path(self._make_parent()) / "shards"
        folder.mkdir(mode=0o700, exist_ok=True)
        return str(folder)

    @property
    def nbytes(self) -> int:
        """Of all files."""
        return self.disk.nbytes

    def nbytes_free(self) -> int:
        """What the disk has room for; 0 if it doesn't say."""
        try:
            found = os.statvfs(self.disk.folder)
        except OSError:
            return 0
        return found.f_bavail * found.f_frsize

    @property
    def may_be_tried(self) -> bool:
        """Whether the disk takes something, or was not asked for a while."""
        tried_at = self._tried_at
        return tried_at is None or self._clock() >= tried_at + RETRY_SECONDS

    def create(self) -> NewFile:
        """Begin a file.

        Raises:
            OSError: it can't be made.
        """
        with self._beginning:
            if self._remover is None:
                self._remover = threading.Thread(
                    target=self._remove_unused, name="shoal-shards-remover", daemon=True
                )
                self._remover.start()
        return self._tried(self.disk.create)

    def append(self, file: NewFile, block: Buffer) -> None:
        """Write a block to its end.

        Raises:
            OSError: there is no room.
        """
        self._tried(lambda: self.disk.append(file, block))

    def publish(self, file: NewFile) -> str:
        """The file is complete; its path.

        Raises:
            OSError: that failed; there is no file then.
        """
        path = self._tried(lambda: self.disk.publish(file))
        self._tried_at, self.trouble = None, ""
        return path

    def abandon(self, file: NewFile) -> None:
        """The file will not be complete."""
        self.disk.abandon(file)

    def _tried(self, act: Callable[[], T]) -> T:
        try:
            return act()
        except OSError as error:
            self._tried_at, self.trouble = self._clock(), error.strerror or str(error)
            raise

    def read(self, path: str, offset: int, nbytes: int, checksum: int) -> memoryview:
        """So many bytes (at least one) from `offset` on, in memory of their own.

        Raises:
            FileLost: the file is missing, torn, or not what was written.
            OSError: it can't be read.
        """
        room = memoryview(allocate(nbytes))
        descriptor = self.disk.open(path)
        try:
            os.lseek(descriptor, offset, os.SEEK_SET)
            self.disk.read_into(path, descriptor, room)
        finally:
            os.close(descriptor)
        if checksum_of(room) != checksum:
            raise FileLost(path, "its bytes are not those that were written")
        return room

    def discard(self, path: str, nbytes: int) -> None:
        """Nobody needs this file any more."""
        self._unused.put((path, nbytes))

    def _remove_unused(self) -> None:
        while (unused := self._unused.get()) is not None:
            self.disk.remove(*unused)

    def close(self) -> None:
        """Remove all files, for good.  May wait for the disk, for some time."""
        self._unused.put(None)
        if self._remover is not None:
            self._remover.join(CLOSE_SECONDS)
        self.disk.clear()


def checksum_of(content: Buffer, before: int = 0) -> int:
    """By which bytes on disk are known again; `before`: that of what comes before these."""
    return zlib.crc32(content, before)
