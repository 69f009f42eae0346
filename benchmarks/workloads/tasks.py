"""The functions that workers run.  Importable, so that they travel by name on every side.

Nothing is imported at the top: what a worker loads must not count as the scheduler's cost.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Iterable, Sequence
from typing import Any

Stamp = tuple[int, int, float]
PROBE_STRIDE = 65_521  # a prime, so that no power of two of the layout hides a hole


def identity(value: int) -> int:
    """The argument itself: the cheapest task that can be told from its neighbours."""
    return value


def increment(value: int) -> int:
    """One more; the link of a chain."""
    return value + 1


def add(left: int, right: int) -> int:
    """The node of a tree."""
    return left + right


def total(values: Iterable[int]) -> int:
    """The sum of many inputs."""
    return sum(values)


def smooth(*values: int) -> int:
    """The node of a stencil: a mean that stays an integer."""
    return sum(values) // len(values)


def split(value: int, part: int) -> int:
    """One shard of a shuffle."""
    return value * 31 + part


def partition(number: int) -> list[int]:
    """One partition of a bag."""
    return list(range(number, number + 10))


def squares(values: Sequence[int]) -> list[int]:
    """A map over a partition."""
    return [value * value for value in values]


def evens(values: Sequence[int]) -> list[int]:
    """A filter over a partition."""
    return [value for value in values if value % 2 == 0]


def stamp(number: int) -> Stamp:
    """A count of one, the number, and the instant at which the task ran."""
    return 1, number, time.time()


def combine(stamps: Iterable[Stamp]) -> Stamp:
    """The sum of counts and of numbers, and the first instant."""
    listed = list(stamps)
    return (
        sum(item[0] for item in listed),
        sum(item[1] for item in listed),
        min(item[2] for item in listed),
    )


def make_array(nitems: int, first: int) -> Any:
    """`nitems` consecutive integers of 8 bytes from `first`."""
    numpy = importlib.import_module("numpy")
    return numpy.arange(first, first + nitems, dtype="int64")


def probe_array(array: Any) -> tuple[int, int, int, int]:
    """Length, a sparse checksum and the last item, plus the process that looked.

    It reads few pages, so that what is timed is the transfer and not a sum.
    """
    return len(array), int(array[::PROBE_STRIDE].sum()), int(array[-1]), os.getpid()


def sum_array(array: Any) -> int:
    """The whole sum."""
    return int(array.sum())


def process_of(_value: Any) -> int:
    """The process that holds the value."""
    return os.getpid()
