"""All kinds of random case, and which is whose by its number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from tests.exchanged.arrays import rechunking
from tests.exchanged.case import Case
from tests.exchanged.merges import merging
from tests.exchanged.tables import grouping, shuffling, sorting

KINDS: Final[list[Callable[[np.random.Generator], Case]]] = [
    merging,
    rechunking,
    shuffling,
    merging,
    rechunking,
    grouping,
    merging,
    rechunking,
    shuffling,
    sorting,
]


def case_of(number: int) -> Case:
    """The case of a number, always the same."""
    return KINDS[number % len(KINDS)](np.random.default_rng(number))


def is_for_cluster(number: int) -> bool:
    """Whether a case is run by client, scheduler and workers, and not in one thread alone."""
    return number // len(KINDS) % 10 == 0
