"""What a random case of an exchange is, and chances that several kinds of case take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np


class Case(NamedTuple):
    """Something that dask exchanges, and what pandas or numpy say that it is."""

    words: str
    """What it is, for whoever reads that it failed."""
    compute: Callable[[], Any]
    """Have dask compute it, wherever dask computes."""
    check: Callable[[Any], None]
    """Fails if what was computed is wrong."""


def cuts(random: np.random.Generator, total: int, nparts_max: int) -> list[int]:
    """Sizes of parts that make up a whole; some may be empty."""
    ncuts = int(random.integers(0, nparts_max))
    bounds = np.sort(random.integers(0, total + 1, ncuts))
    sizes: list[int] = np.diff([0, *bounds.tolist(), total]).tolist()
    return sizes


def chosen(random: np.random.Generator, of: Sequence[Any]) -> Any:
    """One of them, itself and not as numpy would make it."""
    return of[int(random.integers(len(of)))]


def some(random: np.random.Generator, of: Sequence[Any], most: int) -> list[Any]:
    """Up to `most` different ones, in any order."""
    number = int(random.integers(0, min(most, len(of)) + 1))
    return [of[int(place)] for place in random.permutation(len(of))[:number]]
