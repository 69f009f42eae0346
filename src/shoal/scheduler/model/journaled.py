"""What a journal says in the end: the tasks it has, how they stand, and what they are kept for."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from shoal.ids import Epoch, JournalId, Key
from shoal.protocol.journal import (
    NO_CODE,
    OPEN,
    CodeWritten,
    DatasetGone,
    DatasetWritten,
    Entry,
    LifeBegun,
    ShuffleWritten,
    TasksForgotten,
    TasksKept,
    TasksLetGo,
    TaskStands,
    TasksWritten,
    WorkersChanged,
)
from shoal.protocol.messages import TaskOptions
from shoal.protocol.shuffles import ShuffleDefinition

SLICE: Final = 1_000
"""Tasks of one entry, where all of them are written."""


class JournaledTask:
    """One task, as it was written."""

    __slots__ = ("argument", "code", "definition", "dependencies", "key", "options", "prefix",
                 "stands")  # fmt: skip

    def __init__(
        self,
        key: Key,
        code: JournalId,
        argument: bytes | int,
        dependencies: list[JournalId],
        prefix: str,
        options: TaskOptions,
    ) -> None:
        self.key = key
        self.code = code
        self.argument = argument
        self.dependencies = dependencies
        self.prefix = prefix
        self.options = options
        self.definition: ShuffleDefinition | None = None  # if it is a barrier
        self.stands: TaskStands | None = None  # None: it is to be run, and never was

    def __repr__(self) -> str:
        how = OPEN if self.stands is None else self.stands.how
        return f"<JournaledTask {self.key!r}: {how}>"


class JournaledDataset:
    """One published value, and what is kept for it."""

    __slots__ = ("kept", "payload")

    def __init__(self, payload: bytes) -> None:
        self.payload = payload
        self.kept: dict[JournalId, None] = {}


class Journaled:
    """All that is known after some entries; changed by further ones only."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.epoch = Epoch(0)  # of the last that has written; 0: nobody has
        self.version = ""  # of shoal, of the last
        self.workers: dict[str, None] = {}  # addresses of those that were connected
        self.codes: dict[JournalId, bytes] = {}
        self.tasks: dict[JournalId, JournaledTask] = {}
        self.detached: dict[JournalId, None] = {}  # to be run to their end, whoever waits
        self.datasets: dict[Key, JournaledDataset] = {}
        self.take(entries)

    def take(self, entries: Iterable[Entry]) -> None:
        """Some more was written.  What is said of tasks that are unknown changes nothing."""
        for entry in entries:
            _TAKEN[type(entry)](self, entry)

    def kept_for(self, dataset: Key | None) -> dict[JournalId, None] | None:
        """What is kept for a dataset, or until it has ended; None: there is no such dataset."""
        if dataset is None:
            return self.detached
        found = self.datasets.get(dataset)
        return None if found is None else found.kept

    def roots(self) -> dict[JournalId, None]:
        """All that is kept for anything."""
        found = dict(self.detached)
        for dataset in self.datasets.values():
            found.update(dataset.kept)
        return found

    def ordered(self, roots: Iterable[JournalId]) -> list[JournalId]:
        """These tasks and all that they depend on, each once, what is depended on first.

        Cost: O(those + edges).
        """
        tasks = self.tasks
        found: dict[JournalId, None] = {}
        stack = list(reversed(list(roots)))
        while stack:
            number = stack[-1]
            task = tasks.get(number)
            missing = (
                []
                if task is None or number in found
                else [each for each in task.dependencies if each not in found and each in tasks]
            )
            if missing:
                stack.extend(reversed(missing))
                continue
            stack.pop()
            if task is not None:
                found[number] = None
        return list(found)

    def prune(self) -> int:
        """Leave only what something that is kept needs, and of that what can be computed.

        Returns:
            How many tasks can't, since something is missing that was written before them.
        """
        whole: dict[JournalId, JournaledTask] = {}
        numbers = self.ordered(self.roots())
        for number in numbers:
            task = self.tasks[number]
            has_code = task.code == NO_CODE or task.code in self.codes
            if has_code and all(each in whole for each in task.dependencies):
                whole[number] = task
        self.tasks = whole
        if len(whole) < len(numbers):
            for kept in (self.detached, *(each.kept for each in self.datasets.values())):
                for number in [each for each in kept if each not in whole]:
                    del kept[number]
        return len(numbers) - len(whole)

    def entries(self) -> Iterator[Entry]:
        """The shortest journal that says the same.  Cost: O(all)."""
        yield LifeBegun(self.epoch, self.version)
        if self.workers:
            yield WorkersChanged(list(self.workers), [])
        numbers = self.ordered(self.tasks)
        used = dict.fromkeys(self.tasks[number].code for number in numbers)
        for code, payload in self.codes.items():
            if code in used:
                yield CodeWritten(code, payload)
        for start in range(0, len(numbers), SLICE):
            some = numbers[start : start + SLICE]
            yield to_columns({number: self.tasks[number] for number in some})
        for number in numbers:
            task = self.tasks[number]
            if task.definition is not None:
                yield ShuffleWritten(number, task.definition)
            if task.stands is not None:
                yield task.stands
        if self.detached:
            yield TasksKept(list(self.detached))
        for name, dataset in self.datasets.items():
            yield DatasetWritten(name, dataset.payload)
            if dataset.kept:
                yield TasksKept(list(dataset.kept), name)

    def __repr__(self) -> str:
        return (
            f"<Journaled of {self.epoch}: {len(self.tasks)} tasks, {len(self.detached)} detached, "
            f"{len(self.datasets)} datasets>"
        )


def to_columns(tasks: Mapping[JournalId, JournaledTask]) -> TasksWritten:
    """These tasks as an entry, in their order."""
    prefixes: dict[str, int] = {}
    options: list[TaskOptions] = []
    index_of_options: dict[int, int] = {}  # by identity: those of one submission are the same
    prefix_indices: list[int] = []
    option_indices: list[int] = []
    for task in tasks.values():
        prefix_indices.append(prefixes.setdefault(task.prefix, len(prefixes)))
        index = index_of_options.get(id(task.options))
        if index is None:
            index = index_of_options[id(task.options)] = len(options)
            options.append(task.options)
        option_indices.append(index)
    return TasksWritten(
        numbers=list(tasks),
        keys=[task.key for task in tasks.values()],
        codes=[task.code for task in tasks.values()],
        arguments=[task.argument for task in tasks.values()],
        dependencies=[task.dependencies for task in tasks.values()],
        prefixes=list(prefixes),
        prefix_indices=prefix_indices,
        options=options,
        option_indices=option_indices,
    )


# --- what each entry changes -----------------------------------------------------------------


def _take_life(journaled: Journaled, entry: LifeBegun) -> None:
    journaled.epoch, journaled.version = entry.epoch, entry.version


def _take_workers(journaled: Journaled, entry: WorkersChanged) -> None:
    for address in entry.gone:
        journaled.workers.pop(address, None)
    journaled.workers.update(dict.fromkeys(entry.came))


def _take_code(journaled: Journaled, entry: CodeWritten) -> None:
    journaled.codes[entry.number] = entry.payload


def _take_tasks(journaled: Journaled, entry: TasksWritten) -> None:
    tasks = journaled.tasks
    for index, number in enumerate(entry.numbers):
        before = tasks.pop(number, None)
        task = tasks[number] = JournaledTask(
            entry.keys[index],
            entry.codes[index],
            entry.arguments[index],
            entry.dependencies[index],
            entry.prefixes[entry.prefix_indices[index]],
            entry.options[entry.option_indices[index]],
        )
        if before is not None:
            task.stands, task.definition = before.stands, before.definition


def _take_shuffle(journaled: Journaled, entry: ShuffleWritten) -> None:
    task = journaled.tasks.get(entry.task)
    if task is not None:
        task.definition = entry.definition


def _take_stand(journaled: Journaled, entry: TaskStands) -> None:
    task = journaled.tasks.get(entry.task)
    if task is not None:
        task.stands = entry


def _take_forgotten(journaled: Journaled, entry: TasksForgotten) -> None:
    for number in entry.tasks:
        journaled.tasks.pop(number, None)


def _take_kept(journaled: Journaled, entry: TasksKept) -> None:
    kept = journaled.kept_for(entry.dataset)
    if kept is not None:
        kept.update(dict.fromkeys(number for number in entry.tasks if number in journaled.tasks))


def _take_let_go(journaled: Journaled, entry: TasksLetGo) -> None:
    kept = journaled.kept_for(entry.dataset)
    if kept is not None:
        for number in entry.tasks:
            kept.pop(number, None)


def _take_dataset(journaled: Journaled, entry: DatasetWritten) -> None:
    journaled.datasets.pop(entry.name, None)
    journaled.datasets[entry.name] = JournaledDataset(entry.payload)


def _take_dataset_gone(journaled: Journaled, entry: DatasetGone) -> None:
    journaled.datasets.pop(entry.name, None)


_TAKEN: Final[Mapping[type[Entry], Callable[[Journaled, Any], None]]] = {
    LifeBegun: _take_life,
    WorkersChanged: _take_workers,
    CodeWritten: _take_code,
    TasksWritten: _take_tasks,
    ShuffleWritten: _take_shuffle,
    TaskStands: _take_stand,
    TasksForgotten: _take_forgotten,
    TasksKept: _take_kept,
    TasksLetGo: _take_let_go,
    DatasetWritten: _take_dataset,
    DatasetGone: _take_dataset_gone,
}
