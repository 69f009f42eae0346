"""Copies of results on their way between workers, and what they are made for."""

from math import inf

from shoal.scheduler.model.entities import Client, Task, Worker


class Copy:
    """A result that a worker was told to get."""

    __slots__ = ("begun_at", "moved_from")

    def __init__(self, begun_at: float, moved_from: Worker | None) -> None:
        self.begun_at = begun_at  # s, monotonic
        self.moved_from = moved_from  # who drops its own once this one is there

    def __repr__(self) -> str:
        return f"<Copy from {self.moved_from}, begun at {self.begun_at:.3f}>"


class Goal:
    """How many copies of one result there shall be, for as long as it is needed."""

    __slots__ = ("branching", "ncopies", "promised", "workers")

    def __init__(self, ncopies: int, workers: list[str], branching: int) -> None:
        self.ncopies = ncopies  # 0 = one on each worker
        self.workers = workers  # addresses, names or hosts that count; [] = all
        self.branching = branching  # copies made at once from each that is there
        self.promised: dict[Worker, float] = {}  # who gets it from a client, and since when

    @property
    def is_for_all(self) -> bool:
        """Whether every worker shall have a copy, those that come later too."""
        return self.ncopies == 0 and not self.workers

    def __repr__(self) -> str:
        return f"<Goal of {self.ncopies or 'all'} copies among {self.workers or 'all'}>"


class Retirement:
    """A worker that is given nothing new, and goes once nothing is held by it alone."""

    __slots__ = ("call", "drains_until", "is_stuck", "left", "patience_seconds", "progress_at")

    def __init__(
        self, call: "RetireCall", drains_until: float, patience_seconds: float, now: float
    ) -> None:
        self.call = call
        self.left: dict[Task, None] = {}  # results that no worker has that stays
        self.drains_until = drains_until  # when runs that have begun are waited for no more
        self.patience_seconds = patience_seconds
        self.progress_at = now
        self.is_stuck = False  # nobody can take something that is left

    def __repr__(self) -> str:
        return f"<Retirement, {len(self.left)} results are left>"


class RetireCall:
    """A client that waits for the end of some retirements; nobody, if a worker itself has asked."""

    __slots__ = ("client", "must_go", "reason", "removes", "request", "retiring", "verdicts")

    def __init__(
        self,
        client: Client | None,
        request: int,
        *,
        removes: bool,
        reason: str,
        must_go: bool = False,
    ) -> None:
        self.client = client  # None: the worker itself has asked
        self.must_go = must_go  # even if nobody can take what it holds
        self.request = request
        self.removes = removes
        self.reason = reason  # as the workers are told
        self.retiring: dict[Worker, None] = {}  # about which nothing is decided yet
        self.verdicts: dict[str, str] = {}  # by address: "", or why it stays


class CopyCall:
    """A client that waits until copies of results are made, or can't be."""

    __slots__ = ("answer", "client", "left", "request")

    def __init__(
        self, client: Client, request: int, tasks: dict[Task, None], answer: object
    ) -> None:
        self.client = client
        self.request = request
        self.left = tasks
        self.answer = answer  # once none is left


class Copies:
    """All of that."""

    __slots__ = (
        "arrived_at",
        "calls",
        "coming_nbytes",
        "goals",
        "looked_at",
        "lowered",
        "nbegun",
        "on_way",
        "refusals",
        "retiring",
        "silent_by",
        "unlooked",
    )

    def __init__(self) -> None:
        self.on_way: dict[Task, dict[Worker, Copy]] = {}
        self.coming_nbytes: dict[Worker, int] = {}  # to each worker
        self.arrived_at: dict[Worker, float] = {}  # the latest of several that are on their way
        self.nbegun = 0  # copies, of any result
        self.refusals: dict[Task, dict[Worker, None]] = {}  # who could not get it
        self.goals: dict[Task, Goal] = {}
        self.retiring: dict[Worker, Retirement] = {}
        self.calls: list[CopyCall] = []
        self.unlooked: dict[Task, None] = {}  # to be looked at in steps to come: they are many
        self.lowered: dict[Task, None] = {}  # whose goal is new: what is more than that is dropped
        self.silent_by = inf  # before, none that is on its way can have taken too long
        self.looked_at = 0, 0  # the latest step that did, and how much it has looked at

    def __bool__(self) -> bool:
        return bool(self.on_way or self.goals or self.retiring or self.calls or self.unlooked)
