"""The results that a worker holds, in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from shoal.ids import Key, TaskId
from shoal.protocol.keys import from_canonical, to_canonical

_MISSING: Final = object()


class Results:
    """Values by the number of their task.  Changed on the worker's loop only.

    Tasks may look by key from their threads.  Every method is O(1) unless it says so.
    """

    __slots__ = ("_entries", "_on_drop", "_task_by_key", "nbytes")

    def __init__(self) -> None:
        self._entries: dict[TaskId, tuple[Key, object, int]] = {}
        self._task_by_key: dict[Key, TaskId] = {}
        self._on_drop: dict[TaskId, Callable[[], object]] = {}
        self.nbytes = 0  # of all values together, as they were measured

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, task: TaskId) -> bool:
        return task in self._entries

    def __repr__(self) -> str:
        return f"<Results: {len(self._entries)} values, {self.nbytes:,} bytes>"

    def put(self, task: TaskId, key: Key, value: object, nbytes: int) -> None:
        """Keep `value`, in place of what was there under that number."""
        old = self._entries.get(task)
        if old is not None:
            self.nbytes -= old[2]
        self._entries[task] = (key, value, nbytes)
        self._task_by_key[key] = task
        self.nbytes += nbytes

    def __getitem__(self, task: TaskId) -> object:
        return self._entries[task][1]

    def entry(self, task: TaskId) -> tuple[Key, object, int] | None:
        """(key, value, nbytes), if it is here."""
        return self._entries.get(task)

    def drop(self, tasks: Iterable[TaskId]) -> None:
        """Let go of these; those that are not here are no error.  Cost: O(tasks)."""
        for task in tasks:
            entry = self._entries.pop(task, None)
            if entry is not None:
                self.nbytes -= entry[2]
                if self._task_by_key.get(entry[0]) == task:
                    del self._task_by_key[entry[0]]
            if self._on_drop and task in self._on_drop:
                self._on_drop.pop(task)()

    def watch(self, task: TaskId, dropped: Callable[[], object]) -> None:
        """Call `dropped` on the loop once the value of this task, to be put soon, is let go of.

        From any thread.
        """
        self._on_drop[task] = dropped

    def unwatch(self, task: TaskId, dropped: Callable[[], object]) -> None:
        """Call it no more; there may never have been a value.  From any thread."""
        if self._on_drop.get(task) is dropped:
            self._on_drop.pop(task, None)

    def clear(self) -> None:
        """Let go of everything."""
        while self._on_drop:
            self._on_drop.popitem()[1]()
        self._entries.clear()
        self._task_by_key.clear()
        self.nbytes = 0

    def tasks(self) -> list[TaskId]:
        """The numbers of all values, oldest first.  Cost: O(values)."""
        return list(self._entries)

    def all_keys(self) -> list[Key]:
        """The keys of all values.  Cost: O(values)."""
        return list(self._task_by_key)

    def by_key(self, key: Key, default: object = None) -> object:
        """The value of a key, or `default`."""
        task = self._task_by_key.get(key)
        entry = None if task is None else self._entries.get(task)
        return default if entry is None else entry[1]


class ResultsView(Mapping[object, object]):
    """Results by the keys that users know, to look at."""

    __slots__ = ("_results",)

    def __init__(self, results: Results) -> None:
        self._results = results

    def __getitem__(self, key: object) -> object:
        value = self._results.by_key(to_canonical(key), _MISSING)
        if value is _MISSING:
            raise KeyError(key)
        return value

    def __iter__(self) -> Iterator[object]:
        return iter([from_canonical(key) for key in self._results.all_keys()])

    def __len__(self) -> int:
        return len(self._results)

    def __repr__(self) -> str:
        return f"<{len(self)} results>"
