"""Keepers: wants of nobody who is connected, in the name of what results are kept for."""

from typing import Final

from shoal.ids import ClientId, ClientTaskId, Key
from shoal.scheduler.model.datasets import KEEPER_PREFIX
from shoal.scheduler.model.entities import Client, Task

NOBODY: Final = ClientId(0)
"""The number of a client that never was connected."""

DETACHED: Final = "fire-and-forget"
"""The keeper of tasks that shall be run to their end, whoever waits for it."""


class Keeper(Client):
    """Wants results for as long as what it stands for refers to them; nothing is said to it.

    It is known by its name, in `SchedulerState.keepers`, for as long as it keeps anything.
    """

    __slots__ = ("further", "next_number")

    def __init__(self, name: str, now: float) -> None:
        super().__init__(NOBODY, name, now)
        self.next_number = 1
        self.further: dict[ClientTaskId, int] = {}  # want -> how often it is kept beyond once

    @property
    def is_durable(self) -> bool:
        """Whether a journal says what it keeps."""
        return self.name == DETACHED or self.dataset is not None

    @property
    def dataset(self) -> Key | None:
        """The name of the dataset that it keeps for; None if it is none."""
        if not self.name.startswith(KEEPER_PREFIX):
            return None
        return Key(self.name.removeprefix(KEEPER_PREFIX))

    def new_number(self) -> ClientTaskId:
        """For one more want; used once."""
        number = ClientTaskId(self.next_number)
        self.next_number += 1
        return number

    def __repr__(self) -> str:
        return f"<Keeper {self.name} ({len(self.tasks)} tasks)>"


class NotedTasks(dict[ClientTaskId, Task]):
    """What a keeper wants, where each that comes or goes is noted for the journal.

    There is no other way to want something, or to let go of it, so nothing can be missed.
    """

    __slots__ = ("_changed", "_keeper")

    def __init__(self, keeper: Keeper, changed: dict[tuple[Keeper, Task], None]) -> None:
        super().__init__(keeper.tasks)
        self._keeper = keeper
        self._changed = changed
        for task in self.values():
            changed[keeper, task] = None

    def __setitem__(self, number: ClientTaskId, task: Task) -> None:
        self._changed[self._keeper, task] = None
        super().__setitem__(number, task)

    def __delitem__(self, number: ClientTaskId) -> None:
        self._changed[self._keeper, self[number]] = None
        super().__delitem__(number)
