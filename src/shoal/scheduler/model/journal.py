"""What a scheduler has written for the one that comes after it, and what is still to be written.

Tasks that are kept though their clients go are *durable*, and so is all that they depend on.  Each
is written once, and how it stands whenever that has changed.
"""

from collections.abc import Iterator

from shoal.ids import JournalId, Key
from shoal.protocol.journal import Entry, TaskStands
from shoal.protocol.messages import Message
from shoal.scheduler.model.entities import Client, Code, Task
from shoal.scheduler.model.keepers import Keeper, NotedTasks

Record = tuple[float, Key, str, str, str, int, int]
"""A transition, as the story has it."""


class Written:
    """A durable task: what it is called in the journal, and what was said of it last."""

    __slots__ = ("code", "is_inherited", "number", "stands")

    def __init__(self, number: JournalId, code: Code | None) -> None:
        self.number = number
        self.code = code  # None: a scattered value
        self.stands: TaskStands | None = None  # None: it is to be run, and never was
        self.is_inherited = False  # it stands as in the life before, and nothing has happened yet


class WrittenCode:
    """A code that durable tasks use."""

    __slots__ = ("number", "nusers")

    def __init__(self, number: JournalId) -> None:
        self.number = number
        self.nusers = 0  # durable tasks


class Journal:
    """Which tasks are durable, what has become of them in this step, and the entries about it."""

    def __init__(self, next_task: JournalId, next_code: JournalId) -> None:
        """The numbers that are given next."""
        self.tasks: dict[Task, Written] = {}
        self.task_by_key: dict[Key, Task] = {}
        self.codes: dict[Code, WrittenCode] = {}
        self.next_task = next_task
        self.next_code = next_code
        self.touched: dict[Key, None] = {}  # whose state has changed in this step
        self.changed: dict[tuple[Keeper, Task], None] = {}  # that came to be kept, or no longer
        self.entries: list[Entry] = []  # since they were last taken
        self.held: list[tuple[Client, Message]] = []  # to be said once those are on disk

    def hear(self, record: Record) -> None:
        """A task has changed its state; it may be one of ours."""
        if record[1] in self.task_by_key:
            self.touched[record[1]] = None

    def watch(self, keeper: Keeper) -> None:
        """Note from now on what it keeps, if that is durable."""
        if keeper.is_durable and type(keeper.tasks) is not NotedTasks:
            keeper.tasks = NotedTasks(keeper, self.changed)

    def add(self, task: Task, number: JournalId) -> Written:
        """The task is durable from now on; its code is known."""
        written = self.tasks[task] = Written(number, task.code)
        self.task_by_key[task.key] = task
        if task.code is not None:
            self.codes[task.code].nusers += 1
        return written

    def remove(self, task: Task) -> JournalId:
        """The task is forgotten, and so is a code that only it has used; its number."""
        written = self.tasks.pop(task)
        del self.task_by_key[task.key]
        self.stop_using(written.code)
        return written.number

    def stop_using(self, code: Code | None) -> None:
        """A durable task has used it."""
        if code is not None:
            known = self.codes[code]
            known.nusers -= 1
            if not known.nusers:
                del self.codes[code]

    def has_all_of(self, keeper: Keeper) -> Iterator[Task]:
        """What a keeper keeps and is not durable, though it should be."""
        if keeper.is_durable:
            for task in keeper.tasks.values():
                if task not in self.tasks:
                    yield task

    def __repr__(self) -> str:
        return f"<Journal of {len(self.tasks)} tasks, {len(self.entries)} entries to be written>"
