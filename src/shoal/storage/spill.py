"""One value to a file and back: in checked blocks, compressed where that pays.

A file is what the value travels as: the pickle stream, then the large buffers, each in blocks.
What a file must contain is kept in memory, so that nothing is believed that merely looks right.
"""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from shoal.comms.memory import allocate
from shoal.protocol.exceptions import text_of
from shoal.protocol.framing import ProtocolError
from shoal.protocol.streaming import as_message, dump_stream, load_stream
from shoal.storage.disk import Disk, NewFile
from shoal.storage.errors import FileLost, Unwritable
from shoal.storage.spilled import Block, Spilled

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from shoal.protocol.compression import Mark

BLOCK_NBYTES: Final = 1 << 22
"""Compressed, checked and written at once: what a cache holds, and no large copy."""

_PART_NBYTES: Final = 1 << 16
"""Of a stream, which is gathered to blocks."""


class Spill:
    """Writes values to a disk, and reads them; for threads that may be held up by that."""

    def __init__(self, disk: Disk, compressions: Sequence[str] = ()) -> None:
        """`compressions`: ways to compress, of which the first that is there is taken."""
        self.disk = disk
        self.compressions = list(compressions)
        self.checksum = _checksum()

    def write(self, value: object, nbytes: int) -> Spilled:
        """Write a value of `nbytes`, as measured.

        Raises:
            OSError: the disk takes no more.
            MemoryError: nor has memory room for what pickling takes.
            Unwritable: the value can't be pickled.
        """
        file = self.disk.create()
        writer = _Writer(self, file)
        try:
            buffers = dump_stream(value, writer)
            pieces = [writer.end_piece()]
            for buffer in buffers:
                writer.write(memoryview(buffer).cast("B"))
                pieces.append(writer.end_piece())
        except BaseException as error:
            self.disk.abandon(file)
            if writer.has_failed or isinstance(error, MemoryError):
                raise
            raise Unwritable(text_of(error)) from error
        return Spilled(self.disk.publish(file), pieces, nbytes, type(value))

    def read(self, spilled: Spilled) -> tuple[Buffer, list[Buffer]]:
        """The stream and the buffers of what was written, in writable memory.

        Raises:
            FileLost: the file is missing, torn, or not what was written.
            OSError: it can't be read.
        """
        descriptor = self.disk.open(spilled.path)
        try:
            stream, *buffers = [
                self._read_piece(spilled.path, descriptor, piece) for piece in spilled.pieces
            ]
        finally:
            os.close(descriptor)
        return stream, buffers

    def load(self, spilled: Spilled) -> object:
        """The value; the very one, if it is still in memory somewhere.

        Raises:
            FileLost, OSError: as `read`.
            BaseException: what the value's own code raises.
        """
        value = spilled.living()
        return load_stream(*self.read(spilled)) if value is None else value

    def message(self, spilled: Spilled) -> tuple[bytes, list[Buffer]]:
        """Header and buffers for those who ask for the value, which is not made here.

        Raises:
            FileLost, OSError: as `read`.
        """
        return as_message(*self.read(spilled))

    def remove(self, spilled: Spilled) -> None:
        """Remove its file."""
        self.disk.remove(spilled.path, spilled.disk_nbytes)

    def compressed(self, block: memoryview) -> tuple[Buffer, Mark | None]:
        """A block as it is to be written."""
        if not self.compressions:
            return block, None
        from shoal.protocol.compression import AS_IT_IS, Effort, compress

        [smaller], [mark] = compress([block], self.compressions, Effort(zstd_level=1))
        return (block, None) if mark[0] == AS_IT_IS else (smaller, mark)

    def _read_piece(self, path: str, descriptor: int, piece: list[Block]) -> Buffer:
        nbytes = sum([block.restored_nbytes for block in piece])
        if not nbytes:
            return bytearray()
        room: Buffer = _room(nbytes)
        rest = memoryview(room)
        for block in piece:
            target = rest[: block.restored_nbytes]
            stored = target if block.mark is None else memoryview(bytearray(block.nbytes))
            self.disk.read_into(path, descriptor, stored)
            if self.checksum(stored) != block.checksum:
                raise FileLost(path, "its bytes are not those that were written")
            if block.mark is not None:
                target[:] = _restored(path, stored, block.mark)
            rest = rest[target.nbytes :]
        return room


class _Writer:
    """The blocks of one file; a sink for a pickle stream."""

    def __init__(self, spill: Spill, file: NewFile) -> None:
        self._spill = spill
        self._file = file
        self._blocks: list[Block] = []
        self._gathered = bytearray()
        self.has_failed = False  # by the disk

    def write(self, part: Buffer) -> None:
        """The next part of the piece."""
        view = memoryview(part).cast("B")
        if view.nbytes <= _PART_NBYTES:
            self._gathered += view
            if len(self._gathered) >= BLOCK_NBYTES:
                self._flush()
            return
        self._flush()
        for at in range(0, view.nbytes, BLOCK_NBYTES):
            self._write_block(view[at : at + BLOCK_NBYTES])

    def restart(self) -> None:
        """All of it is void."""
        self._gathered = bytearray()
        self._blocks = []
        self._spill.disk.restart(self._file)

    def end_piece(self) -> list[Block]:
        """What comes next is another piece; returns the blocks of this one."""
        self._flush()
        blocks, self._blocks = self._blocks, []
        return blocks

    def _flush(self) -> None:
        if self._gathered:
            gathered, self._gathered = self._gathered, bytearray()
            self._write_block(memoryview(gathered))

    def _write_block(self, block: memoryview) -> None:
        stored, mark = self._spill.compressed(block)
        try:
            self._spill.disk.append(self._file, stored)
        except OSError:
            self.has_failed = True
            raise
        nbytes = memoryview(stored).nbytes
        self._blocks.append(Block(nbytes, self._spill.checksum(stored), mark))


def _room(nbytes: int) -> Any:
    """Writable memory, of what values have given back if there is any.

    A mapping of its own would be a bit faster, and leave that where it is: a worker whose memory is
    short would have twice what it needs.
    """
    numpy: Any = sys.modules.get("numpy")
    return allocate(nbytes) if numpy is None else memoryview(numpy.empty(nbytes, numpy.uint8))


def _restored(path: str, stored: memoryview, mark: Mark) -> Any:
    from shoal.protocol.compression import restore

    try:
        return restore([stored], [mark])[0]
    except ProtocolError as error:
        raise FileLost(path, str(error)) from error


def _checksum() -> Callable[[Any], int]:
    """Of blocks; xxhash costs a third of what zlib does."""
    try:
        xxhash = import_module("xxhash")
    except ImportError:
        return zlib.crc32
    digest: Callable[[Any], int] = xxhash.xxh3_64_intdigest
    return digest
