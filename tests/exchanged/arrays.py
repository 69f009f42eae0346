"""Arrays in other chunks are the same arrays, whatever they hold."""

from __future__ import annotations

import datetime
from typing import Any

import dask
import dask.array as da
import numpy as np

from tests.exchanged.case import Case, chosen, cuts

NBLOCKS_MAX = 60

DTYPES = [
    *("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "g", "c8", "c16"),
    *(">i4", ">f8", "M8[ns]", "M8[D]", "m8[s]", "S3", "U2", "V5", "O"),
    [("x", "i4"), ("y", "f8", (2,))],
    [("when", "M8[s]"), ("what", "O")],
]


def rechunking(random: np.random.Generator) -> Case:
    """An array of 1 to 5 axes, once or twice in other chunks, and what is made of it."""
    ndim = int(random.integers(1, 6))
    shape = tuple(
        random.integers(0 if random.random() < 0.1 else 1, [0, 40, 12, 7, 5, 4][ndim], ndim)
    )
    shape = tuple(int(size) for size in shape)
    dtype = chosen(random, DTYPES)
    values = elements(random, shape, np.dtype(dtype))
    is_masked = values.dtype.str in {"<i4", "<i8", "<f8"} and random.random() < 0.1
    if is_masked:  # of others numpy joins some to another type
        values = np.ma.masked_array(values, random.random(shape) < 0.3)
    if random.random() < 0.3:
        values = values.T.copy(order="C").T
    ways = [chunks(random, shape) for _ in range(2 + (random.random() < 0.3))]
    whole = random.random() < 0.5

    def compute() -> Any:
        x = da.from_array(values, chunks=ways[0], asarray=not is_masked, name=False)
        for way in ways[1:]:
            x = x.rechunk(way, method="p2p")
        if whole:
            return x.compute()
        return x.chunks, dask.compute(*x.to_delayed().ravel())

    def check(found: Any) -> None:
        if not whole:
            assert found[0] == ways[-1] or not values.size
            found = put_together(values, *found)
        assert type(found) is type(values)
        # numpy itself pickles some arrays of the other byte order in the usual one
        assert found.dtype.newbyteorder("=") == values.dtype.newbyteorder("=")
        np.testing.assert_array_equal(found, values)
        if is_masked:  # of others numpy joins some to another type
            np.testing.assert_array_equal(found.mask, values.mask)

    return Case(f"{dtype} of {' > '.join(map(str, ways))}", compute, check)


def chunks(random: np.random.Generator, shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """A way to cut an array of this shape, into not too many blocks."""
    made = []
    nblocks = 1
    for size in shape:
        sizes = tuple(cuts(random, size, min(8, NBLOCKS_MAX // nblocks)))
        if random.random() < 0.7:
            sizes = tuple(size for size in sizes if size) or (0,)
        nblocks *= len(sizes)
        made.append(sizes)
    return tuple(made)


def elements(random: np.random.Generator, shape: Any, dtype: Any, *, has_nan: bool = True) -> Any:
    """Elements of any type; all bits of them are used where a type allows that."""
    values: Any = np.zeros(shape, dtype)
    if dtype.names:
        for name in dtype.names:
            values[name] = elements(random, values[name].shape, values[name].dtype, has_nan=False)
    elif dtype.kind == "O":
        flat = values.reshape(-1)
        choices = [None, "text", 7, 2.5, datetime.date(2024, 1, 1), (1, 2)]
        for place in range(flat.size):
            flat[place] = chosen(random, choices)
    elif dtype.kind in "iuSUV?":
        few = random.integers(0, 2 if dtype.kind == "?" else 100, shape)
        values[...] = few.astype(dtype if dtype.kind != "V" else "S5")
    else:
        values[...] = random.integers(-1000, 1000, shape).astype(
            dtype if dtype.kind in "Mm" else "f8"
        )
        if dtype.kind in "fc" and has_nan:
            values[random.random(shape) < 0.1] = np.nan
    return values


def put_together(like: Any, chunks: Any, blocks: Any) -> Any:
    """An array of its blocks, each of which is of the size that its chunks say."""
    counts = [len(sizes) for sizes in chunks]
    bounds = [np.cumsum([0, *sizes]) for sizes in chunks]
    made = np.ma.masked_all_like(like) if np.ma.isMA(like) else np.zeros_like(like)
    for index, block in zip(np.ndindex(*counts), blocks, strict=True):
        place = tuple(slice(b[i], b[i + 1]) for b, i in zip(bounds, index, strict=True))
        assert block.shape == made[place].shape
        made[place] = block
    return made
