"""Arrays: an input block cut by output block, and an output block put together from its shards.

A shard is a header, the number of its input block and how the rest is to be read, then the part of
that block: its elements in C order if they are plain numbers of the declared type, else pickled.
It is filled up to whole words, so that those after it are aligned as well.
"""

from __future__ import annotations

import math
import pickle
import struct
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import product
from typing import Any, Final, NamedTuple

import numpy as np

from shoal.protocol.payload import dump_function
from shoal.shuffle.errors import P2PConsistencyError, WrongBlock
from shoal.shuffle.exchange import Buffer, Cut, Exchange, Shard
from shoal.shuffle.geometry import (
    Chunks,
    Piece,
    block_index,
    block_shape,
    linear_index,
    pieces_of_axis,
)

_RAW, _PICKLED = 0, 1
_HEADER: Final = struct.Struct("<IIQ")  # input block, how it is written, bytes that follow
_ALIGNMENT: Final = 8
_DIGEST: Final = 0
"""Where an element goes depends on its place alone."""


class _Part(NamedTuple):
    """What came for an output block from one input block."""

    offsets: tuple[int, ...]
    values: Any


class ArrayExchange(Exchange):
    """How the chunks of an array, or of an independent part of one, are changed."""

    kind = "array"

    def __init__(self, id: str, old: Chunks, new: Chunks, meta: Any, *, disk: bool) -> None:
        """
        Args:
            old: sizes of input blocks along each axis.
            new: the same of output blocks; nan only where an axis has one block, before and after.
            meta: an empty array of the kind and type.
        """
        self.id, self.old, self.new, self.meta, self.disk = id, old, new, meta, disk

    @property
    def noutputs(self) -> int:
        return math.prod(self._new_counts)

    def cut(self, value: Any, input_partition: int) -> Cut:
        """Divide a block by output block.

        Raises:
            WrongBlock: it is not of the size that its array declares.

        Cost: one copy of each part that isn't in one piece in memory, made as it is asked for.
        """
        if not hasattr(value, "shape"):
            value = np.asarray(value)
        index = block_index(input_partition, self._old_counts)
        declared = block_shape(self.old, index)
        if not _agree(value.shape, declared):
            raise WrongBlock(self.id, input_partition, value.shape, declared)
        return Cut(math.prod(value.shape), _DIGEST, self._shards(value, input_partition, index))

    def _shards(self, value: Any, number: int, index: Sequence[int]) -> Iterator[Shard]:
        is_raw = type(value) is np.ndarray and value.dtype == self._raw_dtype
        axes = [pieces[place] for pieces, place in zip(self._pieces, index, strict=True)]
        for pieces in product(*axes):
            part = value[tuple([slice(piece.start, piece.stop) for piece in pieces])]
            nelements = math.prod(part.shape)
            if not nelements:
                continue
            output = linear_index([piece.output for piece in pieces], self._new_counts)
            body = _raw_bytes(part) if is_raw else memoryview(dump_function(part))
            header = _HEADER.pack(number, _RAW if is_raw else _PICKLED, body.nbytes)
            filling = bytes(-body.nbytes % _ALIGNMENT)
            yield Shard(output, nelements, [header, body, filling])

    def join(self, output: int, shards: Sequence[Buffer]) -> Any:
        """An output block of its shards.

        Raises:
            P2PConsistencyError: the shards don't make up the block.

        Cost: one copy; of what is pickled, two.
        """
        index = block_index(output, self._new_counts)
        declared = block_shape(self.new, index)
        parts = [self._read(shard, index) for shard in shards]
        shape = _shape_of(declared, parts)
        nelements = sum([math.prod(part.values.shape) for part in parts])
        if nelements != math.prod(shape):
            raise P2PConsistencyError(
                self.id,
                f"{nelements} elements came for output block {index}, whose shape is {shape}",
            )
        if not parts:
            return np.empty_like(self.meta, shape=shape)
        if all(type(part.values) is np.ndarray for part in parts):
            return _filled(shape, parts)
        return _concatenated(parts)

    def _read(self, shard: Buffer, index: Sequence[int]) -> _Part:
        """What a shard holds; a view of its memory if that is raw."""
        view = memoryview(shard).cast("B")
        number, how, nbytes = _HEADER.unpack(view[: _HEADER.size])
        body = view[_HEADER.size : _HEADER.size + nbytes]
        places = block_index(number, self._old_counts)
        pieces: list[Piece] = []
        for by_input, place, wanted in zip(self._pieces, places, index, strict=True):
            pieces += [piece for piece in by_input[place] if piece.output == wanted]
        offsets = tuple([piece.offset for piece in pieces])
        if len(offsets) != len(index):
            raise P2PConsistencyError(
                self.id, f"input block {places} has nothing for output block {index}"
            )
        if how == _PICKLED:
            return _Part(offsets, pickle.loads(body))
        shape = [-1 if p.stop is None else p.stop - p.start for p in pieces]
        if shape.count(-1) > 1:  # no more than one can be worked out
            raise P2PConsistencyError(self.id, "several axes are of unknown size")
        return _Part(offsets, np.frombuffer(body, self._raw_dtype).reshape(shape))

    def nrows_of(self, value: Any) -> int:
        return math.prod(value.shape)

    def output_bytes(self, nbytes: int) -> int:
        """What `join` takes at its peak for shards of so many bytes, those not counted."""
        return nbytes if self._raw_dtype is not None else 3 * nbytes

    @cached_property
    def _raw_dtype(self) -> Any:
        """The type of elements that travel as they are in memory; None: they are pickled."""
        dtype = getattr(self.meta, "dtype", None)
        if not isinstance(dtype, np.dtype) or dtype.hasobject or not dtype.itemsize:
            return None
        nunknown = [sum([math.isnan(n) for n in sizes]) for sizes in self.old]
        return dtype if sum(nunknown) < 2 else None

    @cached_property
    def _pieces(self) -> list[list[list[Piece]]]:
        axes = zip(self.old, self.new, strict=True)
        return [pieces_of_axis(old, new) for old, new in axes]

    @cached_property
    def _old_counts(self) -> list[int]:
        return [len(sizes) for sizes in self.old]

    @cached_property
    def _new_counts(self) -> list[int]:
        return [len(sizes) for sizes in self.new]

    def __getstate__(self) -> dict[str, Any]:
        given = ("id", "old", "new", "meta", "disk")  # all else is made again where it is needed
        return {name: value for name, value in vars(self).items() if name in given}


def _raw_bytes(part: Any) -> memoryview:
    """Elements in C order; no copy if they are in one piece."""
    return np.ascontiguousarray(part).reshape(-1).view(np.uint8).data


def _agree(shape: Sequence[int], declared: Sequence[float]) -> bool:
    return len(shape) == len(declared) and all(
        math.isnan(n) or n == found for found, n in zip(shape, declared, strict=True)
    )


def _shape_of(declared: Sequence[float], parts: Sequence[_Part]) -> tuple[int, ...]:
    """An output block's shape; along an axis of unknown size, that of what has come."""
    shape = []
    for axis, size in enumerate(declared):
        if not math.isnan(size):
            shape.append(int(size))
        else:
            shape.append(int(parts[0].values.shape[axis]) if parts else 0)
    return tuple(shape)


def _filled(shape: tuple[int, ...], parts: Sequence[_Part]) -> Any:
    """Numpy's own arrays; the type is one that all elements fit into."""
    dtypes = list(dict.fromkeys([part.values.dtype for part in parts]))
    made = np.empty(shape, dtypes[0] if len(dtypes) == 1 else np.result_type(*dtypes))
    for offsets, values in parts:
        ends = zip(offsets, values.shape, strict=True)
        made[tuple([slice(offset, offset + size) for offset, size in ends])] = values
    return made


def _concatenated(parts: Sequence[_Part]) -> Any:
    """Arrays of any kind, by what dask knows of that kind."""
    from dask.array import core

    concatenate3: Any = core.concatenate3  # dask ships annotations for half of its functions
    if len(parts) == 1:
        return parts[0].values
    ndim = len(parts[0].offsets)
    places = [
        {offset: place for place, offset in enumerate(sorted({p.offsets[axis] for p in parts}))}
        for axis in range(ndim)
    ]
    grid = np.empty([len(known) for known in places], object)
    for offsets, values in parts:
        at = tuple([known[offset] for known, offset in zip(places, offsets, strict=True)])
        grid[at] = _Held(values)
    return concatenate3(_unwrapped(grid))


class _Held:
    """An array as an element of another, which numpy would look into."""

    __slots__ = ("values",)

    def __init__(self, values: Any) -> None:
        self.values = values


def _unwrapped(grid: Any) -> list[Any]:
    """Nested lists of the arrays in a grid, as deep as it has axes."""
    nested: list[Any] = [held.values for held in grid.reshape(-1)]
    for count in reversed(grid.shape[1:]):
        nested = [nested[at : at + count] for at in range(0, len(nested), count)]
    return nested
