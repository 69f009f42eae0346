"""How clients share the workers: the places of their tasks in one order, and how far that has got.

The place of a task is a *tag*, in units of which a task of usual length takes `STEP`.  A client's
tags follow each other at distances that are its tasks' expected durations, by its weight; one that
comes, or comes back, starts where the order has got to.  So tasks of several clients mesh, and all
that compares priorities is fair between clients without knowing any.
"""

from collections import deque
from typing import Final

from shoal.ids import TaskId
from shoal.scheduler.model.entities import Client

SEQUENCE_BITS: Final = 56
"""A priority is the user's urgency above so many bits of the task's place."""

SEQUENCE_MASK: Final = (1 << SEQUENCE_BITS) - 1
"""Those bits."""

STEP: Final = 1 << 10
"""The distance of the tags of a client that is alone; there is room for others between them."""

RECENT_TASKS: Final = 15
"""By so many of the tasks that were sent last it is judged where an order has got to."""

COST_MAX: Final = 1 << 24
"""Of one task: however long it is expected to take, others of its client come some time."""


class Standing:
    """Where one client has got to with what it submits, among tasks of one urgency."""

    __slots__ = ("began", "newest", "next_tag")

    def __init__(self, began: int, next_tag: int, newest: TaskId) -> None:
        self.began = began  # its first tag since it last had nothing to do
        self.next_tag = next_tag
        self.newest = newest  # task; once it is gone, or done, the client starts anew


class Level:
    """Tasks of one urgency while several clients submit."""

    __slots__ = (
        "furthest",
        "mark",
        "nserved",
        "recent",
        "served_us",
        "standings",
        "typical_us",
        "units_per_us",
    )

    def __init__(self, reached: int, typical_us: float) -> None:
        self.standings: dict[Client, Standing] = {}
        self.recent = deque((reached,), RECENT_TASKS)  # tags of the tasks that were sent last
        self.furthest = reached  # the highest such tag
        self.typical_us = max(1.0, typical_us)  # that is, of a task of usual length
        self.units_per_us = STEP / self.typical_us
        self.mark = reached  # since when what follows is counted:
        self.nserved = 0  # tasks that were sent,
        self.served_us = 0  # and what they are expected to take

    @property
    def reached(self) -> int:
        """Where the order has got to: the middle of the tasks that were sent last, as some of them
        may be run again, or may have waited long for their inputs."""
        return sorted(self.recent)[len(self.recent) // 2]

    def serve(self, tag: int, expected_us: int) -> None:
        """A task was sent."""
        self.recent.append(tag)
        if tag > self.furthest:
            self.furthest = tag
        self.nserved += 1
        self.served_us += expected_us

    def look_again(self, units_per_us: float) -> None:
        """What a tag is worth is known better; counting begins anew."""
        self.units_per_us = units_per_us
        if self.served_us:
            self.typical_us = self.served_us / self.nserved
        self.mark = self.furthest
        self.nserved = self.served_us = 0


class Shares:
    """Who submits, and how far each has got.  While that is one client, there are no levels."""

    __slots__ = ("before", "flows", "levels")

    def __init__(self) -> None:
        self.flows: dict[Client, float] = {}  # connected clients that have submitted -> weight
        self.levels: dict[int, Level] = {}  # by urgency, the one longest known first
        self.before: tuple[Client, Standing] | None = None  # who was alone, and had got where

    @property
    def is_shared(self) -> bool:
        """Whether several clients submit."""
        return len(self.flows) > 1


def evenly_spaced(first: int, ntasks: int) -> list[int]:
    """Tags of the tasks of a client that is alone."""
    return list(range(first, first + ntasks * STEP, STEP))  # looked up faster than a range
