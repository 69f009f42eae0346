"""An exchange of bytes: each row is a byte, and goes to the output partition of its value."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

from shoal.shuffle.exchange import Buffer, Cut, Exchange, Shard


class ByteExchange(Exchange):
    """`value` has bytes below `noutputs`; a shard has each of its rows `factor` times."""

    def __init__(self, id: str, noutputs: int, factor: int = 1, *, disk: bool = True) -> None:
        self.id, self.disk = id, disk
        self._noutputs = noutputs
        self._factor = factor

    @property
    def noutputs(self) -> int:
        return self._noutputs

    def cut(self, value: bytes, input_partition: int) -> Cut:
        return Cut(len(value), zlib.crc32(value), self._shards(value))

    def _shards(self, value: bytes) -> Iterator[Shard]:
        for output in range(self._noutputs):
            nrows = value.count(output)
            if nrows:
                half = bytes([output]) * (nrows * self._factor // 2)
                rest = bytes([output]) * (nrows * self._factor - len(half))
                yield Shard(output, nrows, [half, memoryview(rest)])

    def join(self, output: int, shards: Sequence[Buffer]) -> bytes:
        return b"".join(shards)

    def nrows_of(self, value: bytes) -> int:
        return len(value) // self._factor
