"""The results that a worker holds: in memory, and those that had to make room, on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from shoal.ids import Key, TaskId
from shoal.protocol.keys import from_canonical, to_canonical
from shoal.storage.errors import FileLost
from shoal.storage.spilled import Spilled

_MISSING: Final = object()


class Results:
    """Values by the number of their task.  Changed on the worker's loop only.

    In place of a value that is on disk there is what was written of it, `Spilled`.  A value that
    was read again keeps its file, until it is dropped: to let go of it costs nothing then.

    Tasks may look by key from their threads.  Every method is O(1) unless it says so.
    """

    __slots__ = (
        "_entries",
        "_files",
        "_on_drop",
        "_task_by_key",
        "_was_renumbered",
        "disk_nbytes",
        "load",
        "nbytes",
        "on_unused",
        "spilled_nbytes",
    )

    is_given = False
    """Whether values are in a mapping of the user's, which may write them to disk itself."""

    def __init__(self) -> None:
        self._entries: dict[TaskId, tuple[Key, object, int]] = {}
        self._files: dict[TaskId, Spilled] = {}  # of values that are in memory as well
        self._task_by_key: dict[Key, TaskId] = {}
        self._on_drop: dict[TaskId, Callable[[], object]] = {}
        self._was_renumbered = False
        self.nbytes = 0
        """Of all values in memory together, as they were measured."""
        self.spilled_nbytes = 0
        """Of those on disk, as they were measured when they were in memory."""
        self.disk_nbytes = 0
        """Of the files."""
        self.load: Callable[[Spilled], object] = _read_by_nobody
        """Reads a value, in the calling thread; set by whoever writes them."""
        self.on_unused: Callable[[Spilled], object] = _read_by_nobody
        """Told of files that are of no use any more; as well."""

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
            self._take_off(task, old)
        self._entries[task] = (key, value, nbytes)
        self._task_by_key[key] = task
        self.nbytes += nbytes

    def renumber(self, pairs: Sequence[tuple[TaskId, TaskId]]) -> None:
        """Know values by other numbers: (before, after), after being free.  Cost: O(pairs)."""
        entries, task_by_key = self._entries, self._task_by_key
        for before, task in pairs:
            entry = entries.pop(before, None)
            if entry is not None:
                entries[task] = entry
                if task_by_key.get(entry[0]) == before:
                    task_by_key[entry[0]] = task
            if before in self._files:
                self._files[task] = self._files.pop(before)
        self.rewatch(pairs)

    def rewatch(self, pairs: Iterable[tuple[TaskId, TaskId]]) -> None:
        """Values that are watched, or are to be put yet and will be, have other numbers."""
        self._was_renumbered = True
        for before, task in pairs:
            if before in self._on_drop:
                self._on_drop[task] = self._on_drop.pop(before)

    def resize(self, task: TaskId, nbytes: int) -> None:
        """A value in memory takes more, or less, than when it was put."""
        key, value, nbytes_before = self._entries[task]
        self._entries[task] = key, value, nbytes
        self.nbytes += nbytes - nbytes_before

    def __getitem__(self, task: TaskId) -> object:
        """The value, which must be in memory."""
        return self._entries[task][1]

    def entry(self, task: TaskId) -> tuple[Key, object, int] | None:
        """(key, value or what was written of it, nbytes), if it is here."""
        return self._entries.get(task)

    def is_watched(self, task: TaskId) -> bool:
        """Whether somebody wants to know when it is dropped: an actor, which can't be moved."""
        return task in self._on_drop

    # --- to disk and back --------------------------------------------------------------------

    def add_file(self, task: TaskId, spilled: Spilled) -> None:
        """A value that is in memory was written."""
        self._files[task] = spilled
        self.disk_nbytes += spilled.disk_nbytes

    def remove_file(self, task: TaskId) -> None:
        """The file of a value that is in memory is to make room for others."""
        spilled = self._files.pop(task, None)
        if spilled is not None:
            self._unused(spilled)

    def evict(self, task: TaskId) -> object:
        """Let go of a value in memory, of which there is a file; the value, for its last owner."""
        key, value, nbytes = self._entries[task]
        spilled = self._files.pop(task)
        spilled.remember(value)
        self._entries[task] = key, spilled, nbytes
        self.nbytes -= nbytes
        self.spilled_nbytes += nbytes
        return value

    def restore(self, task: TaskId, value: object) -> None:
        """A value that was on disk is in memory again; its file stays."""
        key, spilled, nbytes = self._entries[task]
        assert isinstance(spilled, Spilled)
        self._files[task] = spilled
        self._entries[task] = key, value, nbytes
        self.nbytes += nbytes
        self.spilled_nbytes -= nbytes

    def evict_some(self, nbytes: int) -> int:
        """Have a mapping of the user's write so much to disk; returns how much it was."""
        return 0

    def _take_off(self, task: TaskId, entry: tuple[Key, object, int]) -> None:
        """It counts no more, and neither does its file."""
        value = entry[1]
        if type(value) is Spilled:
            self.spilled_nbytes -= entry[2]
            self._unused(value)
            return
        self.nbytes -= entry[2]
        if self._files and task in self._files:
            self._unused(self._files.pop(task))

    def _unused(self, spilled: Spilled) -> None:
        self.disk_nbytes -= spilled.disk_nbytes
        self.on_unused(spilled)

    # --- all in all --------------------------------------------------------------------------

    def drop(self, tasks: Iterable[TaskId]) -> None:
        """Let go of these; those that are not here are no error.  Cost: O(tasks)."""
        for task in tasks:
            entry = self._entries.pop(task, None)
            if entry is not None:
                self._take_off(task, entry)
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
        elif self._was_renumbered:
            for number in [n for n, each in list(self._on_drop.items()) if each is dropped]:
                self._on_drop.pop(number, None)

    def clear(self) -> None:
        """Let go of everything; whoever has the files removes them himself."""
        while self._on_drop:
            self._on_drop.popitem()[1]()
        self._entries.clear()
        self._files.clear()
        self._task_by_key.clear()
        self.nbytes = self.spilled_nbytes = self.disk_nbytes = 0

    def tasks(self) -> list[TaskId]:
        """The numbers of all values, oldest first.  Cost: O(values)."""
        return list(self._entries)

    def all_keys(self) -> list[Key]:
        """The keys of all values.  Cost: O(values)."""
        return list(self._task_by_key)

    def by_key(self, key: Key, default: object = None) -> object:
        """The value of a key, or what was written of it, or `default`."""
        task = self._task_by_key.get(key)
        entry = None if task is None else self._entries.get(task)
        return default if entry is None else entry[1]


def _read_by_nobody(spilled: Spilled) -> object:
    raise FileLost(spilled.path, "nobody reads what was written there")


class SpilledSize(NamedTuple):
    """How much is on disk: as it was measured in memory, and in bytes of files."""

    memory: int
    disk: int


class ResultsView(Mapping[object, object]):
    """Results by the keys that users know, to look at.

    A value that is on disk is read when it is asked for, in the calling thread, and is not kept in
    memory: that may take seconds, and raises `FileLost` if its file is lost.
    """

    __slots__ = ("_are_in_memory", "_results")

    def __init__(self, results: Results, *, are_in_memory: bool | None = None) -> None:
        """`are_in_memory`: only those that are, or are not; None: all."""
        self._results = results
        self._are_in_memory = are_in_memory

    @property
    def memory(self) -> ResultsView:
        """Those that are in memory."""
        return ResultsView(self._results, are_in_memory=True)

    fast = memory

    @property
    def disk(self) -> ResultsView:
        """Those that are on disk."""
        return ResultsView(self._results, are_in_memory=False)

    slow = disk

    @property
    def spilled_total(self) -> SpilledSize:
        """How much is on disk."""
        return SpilledSize(self._results.spilled_nbytes, self._results.disk_nbytes)

    def __getitem__(self, key: object) -> object:
        value = self._results.by_key(to_canonical(key), _MISSING)
        if value is _MISSING or not self._shows(value):
            raise KeyError(key)
        return self._results.load(value) if isinstance(value, Spilled) else value

    def __contains__(self, key: object) -> bool:
        value = self._results.by_key(to_canonical(key), _MISSING)
        return value is not _MISSING and self._shows(value)

    def __iter__(self) -> Iterator[object]:
        keys = self._results.all_keys()
        if self._are_in_memory is not None:
            keys = [key for key in keys if self._shows(self._results.by_key(key))]
        return iter([from_canonical(key) for key in keys])

    def __len__(self) -> int:
        return len(self._results) if self._are_in_memory is None else sum(1 for _ in self)

    def _shows(self, value: object) -> bool:
        return self._are_in_memory in (None, not isinstance(value, Spilled))

    def __repr__(self) -> str:
        return f"<{len(self)} results>"
