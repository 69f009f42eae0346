"""Keepers: wants of nobody who is connected, in the name of what results are kept for."""

from typing import Final

from shoal.ids import ClientId, ClientTaskId
from shoal.scheduler.model.entities import Client

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

    def new_number(self) -> ClientTaskId:
        """For one more want; used once."""
        number = ClientTaskId(self.next_number)
        self.next_number += 1
        return number

    def __repr__(self) -> str:
        return f"<Keeper {self.name} ({len(self.tasks)} tasks)>"
