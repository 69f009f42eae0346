"""The ways between workers: how fast results travel, and which large ones are about to."""

from shoal.scheduler.model.entities import Task, Worker

BYTES_WEIGHED = 64_000_000
"""What was measured over so many bytes counts as much as all that was known before."""

SLOWER_WEIGHED = 0.1
"""What was slower may have stood in line at who sent it, and says less of the way itself."""

BYTES_PER_US_MIN = 0.1
BYTES_PER_US_MAX = 100_000.0

TAKERS_MAX = 2
"""Workers that each holder of a large result sends it to at once: those go on sending it."""

TAKERS_OF_WIDE_MAX = 1
"""The same of what more tasks need than there are workers: so the copies double each time."""

SOURCES_LOOKED_AT = 8
"""Holders of a large result that are looked at to find one with little to send."""

LARGE_BYTES = 1_000_000
"""Results from this size on are followed on their way: who sends one can't send others as fast."""


class Coming:
    """A large result on its way to a worker that lacks it, or about to be."""

    __slots__ = ("source", "tasks", "turn")

    def __init__(self, turn: int) -> None:
        self.tasks: dict[Task, None] = {}  # placed there, for which it comes
        self.turn = turn  # how many had begun to move before
        self.source: Worker | None = None  # who was named to it first, once it was sent its run


class Ways:
    """Moving averages by what workers tell, and who is about to get what."""

    __slots__ = ("far", "free", "moving", "nbegun", "near", "nworkers", "sending")

    def __init__(self, bytes_per_second: float) -> None:
        """`bytes_per_second`: until it is measured."""
        self.near = self.far = bytes_per_second / 1e6  # bytes per microsecond, on one host; else
        self.moving: dict[Task, dict[Worker, Coming]] = {}
        """Large result -> who lacks it, and is to get it -> how that is."""

        self.free: dict[Task, dict[Worker, None]] = {}
        """Large result that moves -> holders that may have nothing to send."""

        self.sending: dict[Worker, int] = {}  # how many workers were told to ask it first
        self.nworkers = 0  # that there are
        self.nbegun = 0  # how many have ever begun to move

    def learn(self, *, is_near: bool, nbytes: int, seconds: float) -> None:
        """Take in that so many bytes took so long."""
        if nbytes <= 0 or not seconds > 0:
            return
        rate = min(BYTES_PER_US_MAX, max(BYTES_PER_US_MIN, nbytes / (seconds * 1e6)))
        weight = nbytes / (nbytes + BYTES_WEIGHED)
        before = self.near if is_near else self.far
        if rate < before:
            weight *= SLOWER_WEIGHED
        after = before + (rate - before) * weight
        if is_near:
            self.near = after
        else:
            self.far = after

    def bytes_per_second(self) -> float:
        """The slower of the two, as it is shown."""
        return 1e6 * min(self.near, self.far)

    def begin(self, task: Task, worker: Worker) -> None:
        """`task` is placed on `worker`: large inputs that it lacks will come.  Cost: O(inputs)."""
        for dependency in task.dependencies:
            if dependency.nbytes >= LARGE_BYTES and dependency not in worker.has_what:
                takers = self.moving.setdefault(dependency, {})
                coming = takers.get(worker)
                if coming is None:
                    coming = takers[worker] = Coming(self.nbegun)
                    self.nbegun += 1
                coming.tasks[task] = None

    def end(self, task: Task, worker: Worker) -> None:
        """`task` is not placed on `worker` any more: what only it needs does not come for it."""
        for dependency in task.dependencies:
            takers = self.moving.get(dependency)
            coming = None if takers is None else takers.get(worker)
            if coming is not None and task in coming.tasks:
                del coming.tasks[task]
                if not coming.tasks:
                    self.arrived(dependency, worker)

    def source(self, result: Task, worker: Worker) -> Worker:
        """Which of its holders `worker` shall ask for a result first; it is noted that it does.

        The newest that sends nothing to anybody; else, of some in turns, who has least to send.
        """
        holders = result.who_has
        assert holders
        coming = self.moving[result].get(worker) if result in self.moving else None
        if coming is None:
            return holders[worker.id % len(holders)]
        if coming.source is not None and result in coming.source.has_what:
            return coming.source  # another run there needs it, too
        self._let_go(coming)
        free = self.free.get(result)
        if free is None:
            free = self.free[result] = dict.fromkeys(holders[-SOURCES_LOOKED_AT:])
        nsent = self.sending.get
        source = None
        while free and source is None:
            newest = free.popitem()[0]
            if newest not in self.sending and result in newest.has_what:
                source = newest
        if source is None:
            turn = coming.turn % len(holders)
            some = holders[turn : turn + SOURCES_LOOKED_AT] or holders
            source = min(some, key=lambda holder: nsent(holder, 0))
        coming.source = source
        self.sending[source] = nsent(source, 0) + 1
        return source

    def nsendings_left(self, result: Task) -> int:
        """To how many more its holders may send a result right now, so that copies double."""
        nholders = 0 if result.who_has is None else len(result.who_has)
        takers = self.moving.get(result)
        each = TAKERS_MAX if result.nwaiters <= self.nworkers else TAKERS_OF_WIDE_MAX
        return nholders * each - (0 if takers is None else len(takers))

    def arrived(self, result: Task, worker: Worker) -> bool:
        """`worker` has `result`, or is not to get it any more; whether it was to get it."""
        takers = self.moving.get(result)
        coming = None if takers is None else takers.pop(worker, None)
        if takers is None or coming is None:
            return False
        source = coming.source
        self._let_go(coming)
        if not takers:
            del self.moving[result]
            self.free.pop(result, None)
        elif (free := self.free.get(result)) is not None:
            for holder in (source, worker):
                if holder is not None and holder not in self.sending and result in holder.has_what:
                    free[holder] = None
        return True

    def _let_go(self, coming: Coming) -> None:
        """Its source sends one less."""
        source, coming.source = coming.source, None
        if source is not None:
            self.sending[source] -= 1
            if not self.sending[source]:
                del self.sending[source]
