"""What clients leave with the scheduler by nested keys, and collections of ended tasks."""

from __future__ import annotations

from shoal.ids import Key

Node = dict[Key, "Node | bytes"]
"""Key -> what is below it, or a pickled value."""


class Collection:
    """How tasks have ended that began since somebody asked."""

    __slots__ = ("began", "ended")

    def __init__(self) -> None:
        self.began: dict[Key, None] = {}
        self.ended: dict[Key, str] = {}  # memory or erred

    def __repr__(self) -> str:
        return f"<Collection of {len(self.began)} tasks, {len(self.ended)} ended>"
