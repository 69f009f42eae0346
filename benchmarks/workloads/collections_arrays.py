"""Arrays whose blocks are made by workers: computations of `collections.COLLECTIONS`."""

from __future__ import annotations

from typing import Any

import dask
import dask.array as da
import numpy as np

from benchmarks.workloads.collections import Case

_dask: Any = dask  # it ships annotations for half of its functions
GRID_CHUNK = 150
SKINNY_ROWS = 1_000
SKINNY_COLUMNS = 50
NPARTS = 50
SMALL_CHUNK = 100


def random(shape: tuple[int, int], chunks: Any) -> Any:
    """An array of random numbers, the same ones whenever its blocks are made."""
    return da.random.default_rng(97).random(shape, chunks=chunks)


def whole(x: Any) -> Any:
    """The same array in one piece, made here without a cluster."""
    return x.compute(scheduler="synchronous")


def transpose_mean(size: int) -> Case:
    """Each block meets the one on the other side of the diagonal."""
    x = random((size, size), GRID_CHUNK)
    mean = (x + x.T).mean()
    return Case(mean.compute, lambda: 2 * whole(x).mean(), np.isclose)


def rechunk(size: int) -> Case:
    """Every output chunk needs a part of every input chunk."""
    step = -(-size // NPARTS)
    x = random((size, size), (step, size))
    largest = x.rechunk((size, step), method="tasks").max(axis=0)
    return Case(largest.compute, lambda: whole(x).max(axis=0), np.array_equal)


def svd(size: int) -> Case:
    """All three factors of `size` blocks, by a tree of QR decompositions."""
    x = random((size * SKINNY_ROWS, SKINNY_COLUMNS), (SKINNY_ROWS, SKINNY_COLUMNS))
    u, s, v = da.linalg.svd(x)

    def compute() -> Any:
        """The singular values, and sums of squares of the two other factors."""
        values, *lengths = _dask.compute(s, (u * u).sum(), (v * v).sum())
        return [*values, *lengths]

    def expected() -> Any:
        values = np.linalg.svd(whole(x), compute_uv=False)
        return [*values, SKINNY_COLUMNS, SKINNY_COLUMNS]

    return Case(compute, expected, np.allclose)


def mean_of_neighbours(block: Any) -> Any:
    """Of each cell that has neighbours; those at the rim stay as they are."""
    around = block[:-2, 1:-1] + block[2:, 1:-1] + block[1:-1, :-2] + block[1:-1, 2:]
    found = block.copy()
    found[1:-1, 1:-1] = around / 4
    return found


def overlap(size: int) -> Case:
    """Each block sees one row or column of its eight neighbours."""
    x = random((size, size), GRID_CHUNK)
    smooth = x.map_overlap(mean_of_neighbours, depth=1, boundary="periodic", dtype=np.float64)

    def expected() -> Any:
        padded = np.pad(whole(x), 1, mode="wrap")
        return mean_of_neighbours(padded)[1:-1, 1:-1].sum(axis=0)

    return Case(smooth.sum(axis=0).compute, expected, np.allclose)


def reduction(size: int) -> Case:
    """The sum of the squares of `size` chunks of a hundred numbers."""
    numbers = size * SMALL_CHUNK
    x = da.arange(numbers, chunks=SMALL_CHUNK)

    def expected() -> Any:
        return (np.arange(numbers) ** 2).sum()

    return Case((x * x).sum().compute, expected)
