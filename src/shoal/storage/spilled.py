"""What is known of a value that was written to disk."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from shoal.protocol.compression import Mark


class Block(NamedTuple):
    """A part of a file."""

    nbytes: int  # in the file
    checksum: int  # of those
    mark: Mark | None  # how it was compressed, if it was

    @property
    def restored_nbytes(self) -> int:
        """What it is of the piece that it is part of."""
        return self.nbytes if self.mark is None else self.mark[1]


class Spilled:
    """What was written of a value: where it is, and how that must look."""

    __slots__ = ("_reference", "disk_nbytes", "kind", "nbytes", "path", "pieces")

    def __init__(self, path: str, pieces: list[list[Block]], nbytes: int, kind: type) -> None:
        """`pieces`: the stream, and each large buffer; `nbytes`: of the value, as measured;
        `kind`: its type.
        """
        self.kind = kind
        self.path = path
        self.pieces = pieces
        self.nbytes = nbytes
        self.disk_nbytes = sum([block.nbytes for piece in pieces for block in piece])
        self._reference: Callable[[], object] = _nothing

    def __repr__(self) -> str:
        return f"<a value of {self.nbytes:,} bytes in {self.path}>"

    def remember(self, value: object) -> None:
        """Know the value for as long as others use it, if its type lets us."""
        try:
            self._reference = weakref.ref(value)
        except TypeError:
            pass  # a list or a dict, say

    def living(self) -> object:
        """The value itself, if it is still somewhere in memory; else None."""
        return self._reference()


def _nothing() -> object:
    return None
