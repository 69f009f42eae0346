"""Results in a mapping of the user's, in place of the worker's own memory and disk.

What it does with them is its business: it may write some to disk, and then holds up whoever asks
for one, the worker's loop included.  What it refuses to take stays in memory here.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, MutableMapping, Sequence
from time import monotonic
from typing import Any, Final

from shoal.ids import Key, TaskId
from shoal.protocol.keys import from_canonical
from shoal.storage.errors import CantHoldResults
from shoal.storage.results import Results

logger = logging.getLogger("shoal.worker")

_IN_MAPPING: Final = object()
"""Stands for a value that the mapping has."""

EVICT_SECONDS: Final = 0.02
"""So long a mapping may write at a time, and as long as its last value takes; memory is looked at
soon again."""

LOCAL_DIRECTORY: Final = "worker_local_directory"
"""The parameter by which what makes a mapping is told where it may leave files."""


def mapping_of(given: Any, local_directory: Callable[[], str]) -> MutableMapping[Any, Any]:
    """The mapping that the argument `data` of a worker means.

    Args:
        given: a mapping, or what makes one when it is called, or a pair of that and its keyword
            arguments; it is told the worker's folder if it has the parameter
            `worker_local_directory`.

    Raises:
        CantHoldResults: it is none of these (a TypeError).
    """
    if isinstance(given, MutableMapping):
        return given
    arguments: dict[str, Any] = {}
    make = given
    if isinstance(given, tuple) and len(given) == 2:
        make, arguments = given[0], dict(given[1])
    if not callable(make):
        raise CantHoldResults(given)
    if LOCAL_DIRECTORY not in arguments and _takes(make, LOCAL_DIRECTORY):
        arguments[LOCAL_DIRECTORY] = local_directory()
    made = make(**arguments)
    if not isinstance(made, MutableMapping):
        raise CantHoldResults(made)
    return made


def _takes(make: Callable[..., object], parameter: str) -> bool:
    try:
        return parameter in inspect.signature(make).parameters
    except (TypeError, ValueError):  # a type written in C that doesn't tell
        return False


class GivenResults(Results):
    """Results whose values are in a mapping of the user's, by the keys that users know."""

    __slots__ = ("_all_nbytes", "_refused", "_told", "mapping")

    is_given = True

    def __init__(self, mapping: MutableMapping[Any, Any]) -> None:
        super().__init__()
        self.mapping = mapping
        self._refused: dict[TaskId, object] = {}  # values that it did not take
        self._all_nbytes = 0
        self._told: set[str] = set()  # what is wrong with the mapping

    def put(self, task: TaskId, key: Key, value: object, nbytes: int) -> None:
        """Have the mapping keep `value`; if it raises, the value is kept here."""
        self._forget(task)
        try:
            self.mapping[from_canonical(key)] = value
        except Exception as error:
            logger.warning("Results: %r stays in memory, as %r", key, error)
            self._refused[task] = value
        super().put(task, key, _IN_MAPPING, nbytes)
        self._all_nbytes += nbytes
        self._measure()

    def renumber(self, pairs: Sequence[tuple[TaskId, TaskId]]) -> None:
        """Know values by other numbers; the mapping knows them by their keys."""
        for before, task in pairs:
            if before in self._refused:
                self._refused[task] = self._refused.pop(before)
        super().renumber(pairs)

    def resize(self, task: TaskId, nbytes: int) -> None:
        """A value takes more, or less, than when it was put."""
        self._all_nbytes += nbytes - self._entries[task][2]
        super().resize(task, nbytes)
        self._measure()

    def __getitem__(self, task: TaskId) -> object:
        """The value, which the mapping may have to read.

        Raises:
            Exception: what the mapping raises.
        """
        if task in self._refused:
            return self._refused[task]
        return self.mapping[from_canonical(self._entries[task][0])]

    def entry(self, task: TaskId) -> tuple[Key, object, int] | None:
        """(key, value, nbytes), if it is here, and the mapping gives it."""
        entry = self._entries.get(task)
        if entry is None:
            return None
        try:
            return entry[0], self[task], entry[2]
        except Exception as error:
            logger.warning("Results: %r can't be had: %r", entry[0], error)
            return None

    def drop(self, tasks: Any) -> None:
        """Let go of these; those that are not here are no error."""
        tasks = list(tasks)
        for task in tasks:
            self._forget(task)
        super().drop(tasks)
        self._measure()

    def clear(self) -> None:
        """Let go of everything; what else the mapping has stays."""
        for task in self.tasks():
            self._forget(task)
        super().clear()

    def by_key(self, key: Key, default: object = None) -> object:
        """The value of a key, or `default`."""
        task = self._task_by_key.get(key)
        return default if task is None else self[task]

    def evict_some(self, nbytes: int) -> int:
        """Have the mapping write about so many bytes to disk, if it can; returns how many.

        Cost: that of writing them, in the calling thread; when `EVICT_SECONDS` are over, no other
        value is begun.
        """
        mapping: Any = self.mapping
        freed_nbytes, ends_at = 0, monotonic() + EVICT_SECONDS
        try:
            evict = getattr(mapping, "evict", None)
            if evict is None or not hasattr(mapping, "fast"):
                return 0
            while freed_nbytes < nbytes and mapping.fast and monotonic() < ends_at:
                weight = evict()
                if weight is None or weight < 0:
                    break
                freed_nbytes += weight
        except Exception as error:
            self._tell_once("it can't be told to spill", error)
        self._measure()
        return freed_nbytes

    def _forget(self, task: TaskId) -> None:
        entry = self._entries.get(task)
        if entry is None:
            return
        self._all_nbytes -= entry[2]
        self._refused.pop(task, None)
        if self._task_by_key.get(entry[0]) == task:
            try:
                del self.mapping[from_canonical(entry[0])]
            except Exception as error:
                if not isinstance(error, KeyError):
                    logger.warning("Results: %r can't be let go of: %r", entry[0], error)

    def _measure(self) -> None:
        """What is in memory, if the mapping tells what is not."""
        try:
            spilled = getattr(self.mapping, "spilled_total", None)
            in_memory_nbytes, disk_nbytes = (0, 0) if spilled is None else map(int, spilled)
        except Exception as error:
            in_memory_nbytes = disk_nbytes = 0
            self._tell_once("it does not say what is on disk", error)
        self.spilled_nbytes, self.disk_nbytes = in_memory_nbytes, disk_nbytes
        self.nbytes = max(0, self._all_nbytes - in_memory_nbytes)

    def _tell_once(self, what: str, error: Exception) -> None:
        """Whatever the mapping raises, the worker goes on."""
        if what not in self._told:
            self._told.add(what)
            logger.warning("Results: %s, as %s raises %r", what, type(self.mapping), error)
