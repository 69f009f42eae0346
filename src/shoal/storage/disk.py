"""A folder of files that nobody else reads: made whole or not at all, and counted in bytes.

For any thread.  A file gets its name when it is complete, and is not synced: what it is good for
ends with the process.  Whoever tests what becomes of a bad disk derives from `Disk`.
"""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from shoal.storage.errors import FileLost

if TYPE_CHECKING:
    from typing_extensions import Buffer

_PARTIAL: Final = ".partial"
_NEW: Final = os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


class NewFile:
    """A file that is being written."""

    __slots__ = ("descriptor", "nbytes", "path")

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self.descriptor = descriptor
        self.nbytes = 0


class Disk:
    """Writes, reads and removes files of one folder, which it makes when the first is written."""

    def __init__(self, make_folder: Callable[[], str], nbytes_max: int | None = None) -> None:
        """`make_folder`: makes a folder of our own, or tells where it is; `nbytes_max`: all files
        together.
        """
        self._make_folder = make_folder
        self._counting = threading.Lock()
        self._folder = ""
        self._nmade = 0
        self._is_cleared = False
        self.nbytes_max = nbytes_max
        self.nbytes = 0
        """Of all files, those included that are being written."""

    @property
    def folder(self) -> str:
        """Where the files are; made if need be.

        Raises:
            OSError: it can't be made.
        """
        with self._counting:
            if not self._folder:
                self._folder = self._make_folder()
            return self._folder

    @property
    def folder_name(self) -> str:
        """The same, for people, who need no folder that is not there."""
        return self._folder or "its folder, which can't be made"

    def create(self) -> NewFile:
        """Begin a file.

        Raises:
            OSError: it can't be made.
        """
        folder = self.folder
        with self._counting:
            if self._is_cleared:
                raise OSError(errno.ESHUTDOWN, "nothing is written there any more")
            self._nmade += 1
            path = f"{folder}/{self.name_of(self._nmade)}"
        try:
            return NewFile(path, os.open(path + _PARTIAL, os.O_RDWR | _NEW, 0o600))
        except FileNotFoundError:  # somebody tidies up, in a folder for temporary files perhaps
            Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
            return NewFile(path, os.open(path + _PARTIAL, os.O_RDWR | _NEW, 0o600))

    def name_of(self, number: int) -> str:
        """What the file of this number is called."""
        return f"{number:x}"

    def append(self, file: NewFile, piece: Buffer) -> None:
        """Write a piece to its end.

        Raises:
            OSError: there is no room, by the disk's measure or by `nbytes_max`.
        """
        view = memoryview(piece).cast("B")
        self._count(file, view.nbytes)
        while view.nbytes:
            view = view[self._write(file.descriptor, view) :]

    def restart(self, file: NewFile) -> None:
        """Forget what was written to it."""
        os.ftruncate(file.descriptor, 0)
        os.lseek(file.descriptor, 0, os.SEEK_SET)
        self._count(file, -file.nbytes)

    def publish(self, file: NewFile) -> str:
        """It is complete: give it its name, which is returned.

        Raises:
            OSError: that failed; there is no file then.
        """
        try:
            os.close(file.descriptor)
            os.rename(file.path + _PARTIAL, file.path)
        except BaseException:
            self._remove_if_there(file.path + _PARTIAL)
            self._count(file, -file.nbytes)
            raise
        return file.path

    def abandon(self, file: NewFile) -> None:
        """It will not be complete: remove it."""
        os.close(file.descriptor)
        self._remove_if_there(file.path + _PARTIAL)
        self._count(file, -file.nbytes)

    def open(self, path: str) -> int:
        """A descriptor to read from.

        Raises:
            FileLost: there is no such file.
            OSError: it can't be opened.
        """
        try:
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            raise FileLost(path, "there is no such file any more") from None

    def read_into(self, path: str, descriptor: int, room: memoryview) -> None:
        """Fill `room` with what comes next.

        Raises:
            FileLost: the file ends before that.
            OSError: it can't be read.
        """
        while room.nbytes:
            nread = os.readv(descriptor, [room])
            if nread == 0:
                raise FileLost(path, f"it ends {room.nbytes:,} bytes too early")
            room = room[nread:]

    def remove(self, path: str, nbytes: int) -> None:
        """Remove a file, of so many bytes; one that is not there any more is no error."""
        self._remove_if_there(path)
        with self._counting:
            self.nbytes -= nbytes

    def clear(self) -> None:
        """Remove the folder with all that is in it, for good; what can't be removed stays."""
        with self._counting:
            self._is_cleared = True
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _write(self, descriptor: int, view: memoryview) -> int:
        """Some of it; returns how many bytes."""
        return os.write(descriptor, view)

    def _count(self, file: NewFile, nbytes: int) -> None:
        with self._counting:
            limit = self.nbytes_max
            if limit is not None and nbytes > 0 and self.nbytes + nbytes > limit:
                raise OSError(errno.EDQUOT, "they may take no more (worker.memory.max-spill)")
            self.nbytes += nbytes
            file.nbytes += nbytes

    def _remove_if_there(self, path: str) -> None:
        try:
            os.unlink(path)
        except OSError:
            pass  # it is gone already, or goes with the folder
