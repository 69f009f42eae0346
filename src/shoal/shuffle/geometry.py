"""Which part of which input block goes where in which output block, axis by axis.

Blocks of one array are numbered along each axis, and all of them in C order.  Of an axis whose
chunks are unknown (nan) nothing may be cut: input and output chunks there are one each.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

Chunks = tuple[tuple[float, ...], ...]
"""Sizes of blocks along each axis; those that nobody knows are nan."""


class Piece(NamedTuple):
    """What a block of the input has for one of the output, along one axis."""

    output: int
    """Number of the output block along the axis."""
    start: int
    stop: int | None
    """In the input block; None: all of it, where its size is unknown."""
    offset: int
    """In the output block."""


class Segment(NamedTuple):
    """Blocks along one axis that have to do with each other only: input and output, half-open."""

    first_input: int
    end_input: int
    first_output: int
    end_output: int


def pieces_of_axis(old: Sequence[float], new: Sequence[float]) -> list[list[Piece]]:
    """Of each input block along an axis what it has for which output block, in ascending order.

    Args:
        old, new: sizes with the same sum; or one each, and unknown.

    Cost: of the order of the numbers of both, 1 us for each piece.
    """
    if _is_unknown(old):
        return [[Piece(0, 0, None, 0)]]
    old_edges, new_edges = _edges(old), _edges(new)
    edges = np.union1d(old_edges, new_edges)
    starts, stops = edges[:-1], edges[1:]
    inputs = np.searchsorted(old_edges, starts, side="right") - 1
    outputs = np.searchsorted(new_edges, starts, side="right") - 1
    pieces: list[list[Piece]] = [[] for _ in old]
    for i, output, start, stop, offset in zip(
        inputs.tolist(),
        outputs.tolist(),
        (starts - old_edges[inputs]).tolist(),
        (stops - old_edges[inputs]).tolist(),
        (starts - new_edges[outputs]).tolist(),
        strict=True,
    ):
        pieces[i].append(Piece(output, start, stop, offset))
    return pieces


def segments_of_axis(old: Sequence[float], new: Sequence[float]) -> list[Segment]:
    """An axis cut wherever an input and an output block begin together; each block is in one.

    Raises:
        ValueError: sizes are unknown, and not the same in both.
    """
    if _is_unknown(old):
        if len(old) != len(new):
            raise ValueError("chunks of unknown size can't be changed")
        return [Segment(i, i + 1, i, i + 1) for i in range(len(old))]
    old_edges, new_edges = _edges(old), _edges(new)
    common = np.intersect1d(old_edges, new_edges)
    bounds = common[:-1] if len(common) > 1 else common
    first_inputs = np.searchsorted(old_edges[:-1], bounds).tolist()
    first_outputs = np.searchsorted(new_edges[:-1], bounds).tolist()
    ends_input = [*first_inputs[1:], len(old)]
    ends_output = [*first_outputs[1:], len(new)]
    return [
        Segment(*ends)
        for ends in zip(first_inputs, ends_input, first_outputs, ends_output, strict=True)
    ]


def runs_of(old: Chunks, new: Chunks) -> Iterator[tuple[Segment, ...]]:
    """Independent parts of a change of chunks, each by its segment along every axis."""
    axes = zip(old, new, strict=True)
    return product(*[segments_of_axis(before, after) for before, after in axes])


def linear_index(index: Sequence[int], counts: Sequence[int]) -> int:
    """The number of a block in C order.

    Args:
        index: its number along each axis.
        counts: of blocks along each axis.
    """
    number = 0
    for place, count in zip(index, counts, strict=True):
        number = number * count + place
    return number


def block_index(number: int, counts: Sequence[int]) -> tuple[int, ...]:
    """A block's number along each axis, from that in C order."""
    index = []
    for count in reversed(counts):
        number, place = divmod(number, count)
        index.append(place)
    return tuple(reversed(index))


def block_shape(chunks: Chunks, index: Sequence[int]) -> tuple[float, ...]:
    """The size of a block along each axis; nan where it is unknown."""
    return tuple([sizes[place] for sizes, place in zip(chunks, index, strict=True)])


def _edges(sizes: Sequence[float]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    edges = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(np.asarray(sizes, np.int64), out=edges[1:])
    return edges


def _is_unknown(sizes: Sequence[float]) -> bool:
    return any(math.isnan(size) for size in sizes)
