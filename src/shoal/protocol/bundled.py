"""What bundles of graph tasks are made of, as they are read.

Dask's tasks pickle slot by slot, in Python, and find their dependencies anew as they are read; what
is here is rebuilt from what it calls, in less than half the time.  What only exists in the user's
program (a lambda, a function of `__main__`) is read once in a process, however many bundles it is
in.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from dask._task_spec import Task

SHARED_BYTES_MAX: Final = 64 * 1024
"""Pickles of functions that are kept after reading; a larger one carries data."""


class Call:
    """A function and what it is called with: constants, references, dask's tasks, other calls."""

    __slots__ = ("args", "func")

    def __init__(self, func: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.func = func
        self.args = args

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return Call, (self.func, self.args)

    def __repr__(self) -> str:
        return f"Call({self.func!r}, {self.args!r})"


def to_list(*parts: Any) -> list[Any]:
    """What a list of an old task becomes that holds more than constants."""
    return list(parts)


def to_tuple(*parts: Any) -> tuple[Any, ...]:
    """The same for a tuple."""
    return parts


def make_task(
    key: Any, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Task:
    """A task with keyword arguments."""
    return Task(key, func, *args, **kwargs)


@lru_cache(maxsize=256)
def load_shared(payload: bytes) -> object:
    """A function or class pickled by value, the same object for the same bytes.

    Raises:
        BaseException: whatever its own code raises.
    """
    return pickle.loads(payload)
