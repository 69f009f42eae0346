"""What is known of memory beside each worker's own numbers: limits, what waits for room, deaths."""

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from shoal.ids import TaskId
from shoal.scheduler.model.entities import Prefix, Task, Worker
from shoal.scheduler.model.queue import TaskQueue

NOTHING_WEIGHS: Final = 1 << 62
"""More bytes than anybody takes: nobody's memory is limited."""

SHARE_OF_THREAD: Final = 8
"""What takes less than this part of a thread's share of its worker's limit doesn't matter."""

PLACES_KEPT: Final = 16
"""Deaths of workers that are told in the error of one task."""


Line: TypeAlias = tuple[Prefix, int]
"""Tasks that wait for memory one after the other: of one prefix, and said to take about the same.

Without the second, a large output partition would keep small ones waiting that there is room for.
"""


def line_of(task: Task) -> Line:
    """Where a queued task waits whose prefix weighs."""
    return task.prefix, task.options.memory.bit_length()


class Held:
    """A ready task that no worker has memory for, or not the one where it is placed."""

    __slots__ = ("since", "worker")

    def __init__(self, since: float) -> None:
        self.since = since
        self.worker: Worker | None = None  # that is kept for it, once it has waited for long


class Overfilled:
    """A task under which workers died as their memory was full."""

    __slots__ = ("nalone", "nbeside", "places", "roomiest_bytes")

    def __init__(self) -> None:
        self.nalone = 0  # how often nothing else ran there, so that it was this task for certain
        self.nbeside = 0  # the same, but for results of others, without which there was room
        self.roomiest_bytes = 0  # the most that one of them had for it
        self.places: list[tuple[str, int, int]] = []  # address, bytes as last known, limit


class LastSeen(NamedTuple):
    """A worker that died, as it was then."""

    address: str
    others_bytes: int  # without what runs took
    empty_bytes: int  # that it would have had for a run
    beside_bytes: int  # results in memory that were no inputs of the run, if there was but one
    nblamed: int


class Footprints:
    """Limits of the workers that are there, and the tasks that memory keeps waiting."""

    __slots__ = (
        "_nworkers",
        "heads",
        "held",
        "is_mixed",
        "last_seen",
        "limit_max",
        "nbytes_max",
        "ninputs_safe",
        "overfilled",
        "queues",
        "unasked",
        "weighty_bytes",
    )

    def __init__(self) -> None:
        self.queues: dict[Line, TaskQueue] = {}
        """Queued tasks of prefixes that weigh, by line, while anybody's memory is limited."""
        self.is_mixed = False  # whether some of such prefixes may be in the queue of all others
        self.heads: list[tuple[int, TaskId, Task, Line]] = []
        """Heap of the first ones of those queues; entries that don't hold any more are skipped."""
        self.held: dict[Task, Held] = {}
        self.unasked: dict[Worker, None] = {}
        """Workers that may take something, to be attended to in steps to come."""
        self.overfilled: dict[Task, Overfilled] = {}
        self.last_seen: dict[tuple[str, int], LastSeen] = {}
        """Workers that died while they ran something, by host and process id; the latest."""
        self.nbytes_max = 0  # of all results that there have been
        self.limit_max = 0  # of the worker with the most memory; 0 = somebody's is unlimited
        self.weighty_bytes = NOTHING_WEIGHS  # from where on it matters what a run takes
        self.ninputs_safe = NOTHING_WEIGHS  # so many inputs find room on the largest worker
        self._nworkers: dict[int, int] = {}  # by limit

    @property
    def is_limited(self) -> bool:
        """Whether any worker's memory is."""
        return self.weighty_bytes < NOTHING_WEIGHS

    def add(self, worker: Worker, pause_ratio: float) -> bool:
        """A worker has come; returns whether less matters from now on."""
        limit = worker.memory_limit
        self._nworkers[limit] = self._nworkers.get(limit, 0) + 1
        self._look_at_limits()
        weighty_bytes = int(limit * pause_ratio / worker.nthreads / SHARE_OF_THREAD)
        if not limit or weighty_bytes >= self.weighty_bytes:
            return False
        self.weighty_bytes = max(1, weighty_bytes)
        return True

    def remove(self, worker: Worker) -> None:
        """A worker has gone."""
        limit = worker.memory_limit
        self._nworkers[limit] -= 1
        if not self._nworkers[limit]:
            del self._nworkers[limit]
        if not any(self._nworkers):
            self.weighty_bytes = NOTHING_WEIGHS
        self._look_at_limits()

    def note_result(self, nbytes: int) -> None:
        """There is a result of this size."""
        if nbytes > self.nbytes_max:
            self.nbytes_max = nbytes
            self._look_at_limits()

    def _look_at_limits(self) -> None:
        limits = self._nworkers
        self.limit_max = 0 if 0 in limits else max(limits, default=0)
        self.ninputs_safe = NOTHING_WEIGHS
        if self.limit_max and self.nbytes_max:
            self.ninputs_safe = self.limit_max // self.nbytes_max

    def nworkers_by_limit(self) -> Mapping[int, int]:
        """How many workers have each limit; to be read only."""
        return self._nworkers
