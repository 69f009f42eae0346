"""Orphans: what workers have from another life of the scheduler, known by key and by nothing else.

And what is awaited of workers that are about to come back.
"""

from collections import deque

from shoal.ids import Key, TaskId
from shoal.scheduler.model.entities import Client, Task, Worker


class Orphan:
    """One key: who holds its result, who computes it, who was told its number."""

    __slots__ = ("asked", "holders", "is_hoped_for", "runners")

    def __init__(self) -> None:
        self.holders: dict[Worker, int] = {}  # that have it -> its bytes there
        self.runners: dict[Worker, None] = {}  # that execute it
        self.asked: dict[Worker, TaskId] = {}  # that are to have it under a number from now on
        self.is_hoped_for = False  # somebody wants it who knows it by key, and others may bring it

    def forget(self, worker: Worker) -> None:
        """The worker has nothing of it, or no longer."""
        self.holders.pop(worker, None)
        self.runners.pop(worker, None)
        self.asked.pop(worker, None)

    @property
    def is_of_use(self) -> bool:
        """Whether anything may come of it."""
        return bool(self.holders or self.runners or self.asked or self.is_hoped_for)

    def __repr__(self) -> str:
        return (
            f"<Orphan with {len(self.holders)} holders, {len(self.runners)} runners, "
            f"{len(self.asked)} asked>"
        )


class Orphans:
    """All of them, by key and by worker."""

    def __init__(self) -> None:
        self.by_key: dict[Key, Orphan] = {}
        self.of_worker: dict[Worker, dict[Key, None]] = {}
        self.due: deque[tuple[float, Worker]] = deque()
        """When what nobody has asked a worker for by then is let go of (s), by time."""
        self.named: dict[Task, None] = {}
        """Tasks that were made for a key that somebody named; whoever knows what it calls may say
        so later."""

    def link(self, key: Key, worker: Worker) -> Orphan:
        """The orphan of `key`, of which `worker` has something."""
        orphan = self.by_key.get(key)
        if orphan is None:
            orphan = self.by_key[key] = Orphan()
        self.of_worker.setdefault(worker, {})[key] = None
        return orphan

    def left(self) -> list[object]:
        """All that is known, whatever it is.  Cost: O(that)."""
        return [*self.by_key.values(), *self.of_worker, *self.named]

    def unlink(self, key: Key, worker: Worker) -> Orphan | None:
        """`worker` has nothing of `key` any more; what there is still, if anything."""
        keys = self.of_worker.get(worker)
        if keys is not None:
            keys.pop(key, None)
            if not keys:
                del self.of_worker[worker]
        orphan = self.by_key.get(key)
        if orphan is None:
            return None
        orphan.forget(worker)
        if orphan.is_of_use:
            return orphan
        del self.by_key[key]
        return None


class Heirlooms:
    """What a journal has told of the life before: who was there, and if they are waited for."""

    __slots__ = ("are_awaited", "workers")

    def __init__(self) -> None:
        self.are_awaited = False  # the first worker that comes begins a recovery, whenever that is
        self.workers: dict[str, None] = {}  # addresses


class Recovery:
    """A while in which no run is given out, as those who have the results may be about to come."""

    __slots__ = ("awaited", "is_named", "since", "speaking", "until")

    def __init__(self, since: float, until: float) -> None:
        self.since = since  # s, of the first who came back
        self.until = until
        self.awaited: dict[str, None] = {}  # addresses of workers that are still to come
        self.is_named = False  # somebody has said who is to come; else nobody knows
        self.speaking: dict[Client, None] = {}  # who came back, and has not said all yet

    @property
    def holds_back(self) -> bool:
        """Whether runs wait."""
        return bool(self.awaited) or not self.is_named or bool(self.speaking)

    def __repr__(self) -> str:
        return f"<Recovery since {self.since}, {len(self.awaited)} awaited>"
