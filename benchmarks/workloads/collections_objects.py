"""Bags, delayed calls and joblib: computations of `collections.COLLECTIONS`."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import dask
import dask.bag as db

from benchmarks.workloads.collections import Case

_dask: Any = dask  # it ships annotations for half of its functions
WORDS = ("alder", "birch", "cedar", "elm", "fir", "hazel", "larch", "maple", "oak", "pine")
LINES_PER_PART = 100
WORDS_PER_LINE = 8
NWAY = 10


def line(number: int) -> str:
    """A line of a text in which some words are more frequent than others."""
    picked = [(number * 7 + place * place) % 97 % len(WORDS) for place in range(WORDS_PER_LINE)]
    return " ".join([WORDS[place] for place in picked])


def longest(left: int, right: int) -> int:
    """What the fold keeps."""
    return max(left, right)


def bag(size: int) -> Case:
    """How often each word comes, and the length of the longest line, of `size` partitions."""
    nlines = size * LINES_PER_PART
    lines = db.range(nlines, npartitions=size).map(line)
    frequencies = lines.str.split().flatten().frequencies(split_every=8)
    length = lines.map(len).fold(longest, split_every=8)

    def compute() -> Any:
        found, most = _dask.compute(frequencies, length)
        return dict(found), most

    def expected() -> Any:
        all_lines = [line(number) for number in range(nlines)]
        counts = Counter(word for text in all_lines for word in text.split())
        return dict(counts), max(map(len, all_lines))

    return Case(compute, expected)


def square(number: int) -> int:
    """A leaf."""
    return number * number


def total(numbers: list[int]) -> int:
    """What puts leaves together."""
    return sum(numbers)


def delayed(size: int) -> Case:
    """`size` leaves, put together ten at a time."""
    leaf, node = _dask.delayed(square), _dask.delayed(total)
    level = [leaf(number) for number in range(size)]
    while len(level) > 1:
        level = [node(level[start : start + NWAY]) for start in range(0, len(level), NWAY)]
    return Case(level[0].compute, lambda: sum(number * number for number in range(size)))


def digits(number: int) -> int:
    """A call that is worth sending only with others."""
    return sum(map(int, str(math.factorial(number % 60))))


def joblib(size: int) -> Case:
    """A loop of calls, which joblib puts into batches by how long they take."""
    from joblib import Parallel, parallel_config
    from joblib import delayed as call

    def compute() -> Any:
        with parallel_config(backend="dask"):
            return Parallel()(call(digits)(number) for number in range(size))

    return Case(compute, lambda: [digits(number) for number in range(size)])
