"""One case run: in one thread, or by a cluster whose client is there."""

from __future__ import annotations

import dask.config

from tests.exchanged.in_process import in_process
from tests.exchanged.kinds import case_of

IN_MEMORY_BYTES = 1 << 30
"""Shards may take this much; of every third case nothing, so that they are on disk."""

AS_PANDAS = {"dataframe.convert-string": False}
"""Dask would make another type of strings, and pandas not."""


class CaseFailed(AssertionError):
    """Something came out that pandas or numpy deny."""

    def __init__(self, number: int, words: str, error: Exception) -> None:
        super().__init__(f"case {number}, {words}: {type(error).__name__}: {error}")


def run_in_process(number: int) -> int:
    """Run a case in this thread; how many shuffles it had.

    Raises:
        CaseFailed: with the error that it ended with as its cause.
    """
    with in_process(0 if number % 3 == 0 else IN_MEMORY_BYTES) as host:
        _run(number)
        return host.nshuffles


def run_on_cluster(number: int) -> None:
    """Run a case on whatever dask computes with.

    Raises:
        CaseFailed: with the error that it ended with as its cause.
    """
    _run(number)


def _run(number: int) -> None:
    with dask.config.set(AS_PANDAS):
        case = case_of(number)
        try:
            case.check(case.compute())
        except Exception as error:
            raise CaseFailed(number, case.words, error) from error
