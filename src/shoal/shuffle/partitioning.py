"""Which rows go to which output partition: ids checked, rows put in order, the digest of both.

All of it is done by whole vectors; the long ones (sorting, the checksum) give up the interpreter's
lock.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from shoal.shuffle.errors import BadPartitionIds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ids = NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.uint32]


_NARROW_MAX: Final = 1 << 32


class Grouping(NamedTuple):
    """The rows of an input partition in the order of the output partitions that they go to."""

    order: NDArray[np.intp] | NDArray[np.uint32]
    """Positions of rows: by output partition, and as they were within each; dropped ones left
    out."""
    outputs: list[int]
    """Output partitions that get rows, ascending."""
    ends: list[int]
    """Where the rows of each end in `order`."""

    def spans(self) -> Iterator[tuple[int, int, int]]:
        """Of each output partition that gets rows: its number, and the part of `order` it gets."""
        start = 0
        for output, end in zip(self.outputs, self.ends, strict=True):
            yield output, start, end
            start = end

    def stretches(self, nrows: int) -> Iterator[list[tuple[int, int, int]]]:
        """The spans, as many at a time as have about so many rows together; one in any case."""
        stretch: list[tuple[int, int, int]] = []
        for span in self.spans():
            if stretch and span[2] - stretch[0][1] > nrows:
                yield stretch
                stretch = []
            stretch.append(span)
        if stretch:
            yield stretch


def ids_from(values: Any, column: object, npartitions: int, input_partition: int) -> Ids:
    """The output partition of each row, in the smallest type that has `npartitions` values.

    Args:
        values: whole numbers, as a pandas Series, of any type that can hold them.
        column: that they are from, for errors.
        npartitions: how many output partitions there are.
        input_partition: that they are of, for errors.

    Raises:
        BadPartitionIds: some are missing, no whole numbers, or not in [0, npartitions).

    Cost: three passes; 2 bytes of scratch per row up to 65,536 partitions.
    """
    smallest = np.min_scalar_type(max(npartitions - 1, 0))

    def refusal(what: str) -> BadPartitionIds:
        return BadPartitionIds(str(column), npartitions, input_partition, what)

    if len(values) == 0:
        return np.zeros(0, smallest)
    nmissing = int(values.isna().sum())
    if nmissing:
        raise refusal(f"it is missing in {nmissing} rows")
    try:
        numbers = values.to_numpy()
        if numbers.dtype.kind not in "iuf":
            numbers = values.to_numpy(dtype=np.int64)
    except (TypeError, ValueError):
        raise refusal(f"its values are of type {values.dtype}") from None
    low, high = numbers.min(), numbers.max()
    if low < 0 or high >= npartitions:
        raise refusal(f"its values are between {low} and {high}")
    ids = numbers.astype(smallest)
    if numbers.dtype.kind == "f" and not np.array_equal(ids, numbers):
        raise refusal("some of its values are not whole")
    return ids  # type: ignore[no-any-return] # min_scalar_type: unsigned for what is not negative


def grouped(ids: Ids, npartitions: int, kept: NDArray[np.bool_] | None = None) -> Grouping:
    """Put rows in the order of their output partitions, without changing it within each.

    Args:
        ids: the output partition of each row.
        npartitions: how many there are.
        kept: by output partition, whether its rows are wanted; None: all are.

    Cost: a radix sort up to 65,536 partitions, a merge sort beyond; 12 bytes per row, of which
    4 stay.
    """
    counts = np.bincount(ids, minlength=npartitions)
    order = _narrow(np.argsort(ids, kind="stable"))
    if kept is not None and not kept[counts > 0].all():
        order = order[kept[ids[order]]]
        counts = np.where(kept, counts, 0)
    outputs = np.flatnonzero(counts)
    return Grouping(order, outputs.tolist(), np.cumsum(counts[outputs]).tolist())


def _narrow(order: NDArray[np.intp]) -> NDArray[np.intp] | NDArray[np.uint32]:
    return order.astype(np.uint32) if len(order) <= _NARROW_MAX else order


def digest_of(ids: Ids) -> int:
    """64 bits that tell which row went where: a checksum of `ids`, and how many there are."""
    return zlib.crc32(ids.data if len(ids) else b"") << 32 | len(ids) & 0xFFFFFFFF
