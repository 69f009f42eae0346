"""The worker's nouns.  They hold keys, sizes and numbers; never a value, never a socket."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from shoal.ids import Key, RunId, TaskId
from shoal.ordered import OrderedSet
from shoal.protocol.messages import Failure, RunTask
from shoal.protocol.slots import RunTaskIn

WAITING: Final = "waiting"  # for inputs to arrive
HANDED: Final = "handed"  # to the threads; it may have begun
LONG_RUNNING: Final = "long-running"  # it has begun, and left its slot to others
OVER: Final = "over"  # answered, or nobody waits for an answer any more

ELSEWHERE: Final = RunId(0)
"""The run of a replica that was not computed here."""

NEVER: Final = 1 << 62
"""More bytes than any value has."""

FINISHED: Final = "finished"
FAILED: Final = "failed"
WITHDRAWN: Final = "withdrawn"
RESCHEDULED: Final = "rescheduled"
DEPRIVED: Final = "deprived of inputs"


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSettings:
    """Who the worker is, and how much it fetches at once."""

    address: str
    name: str = ""
    nthreads: int = 1
    memory_limit: int = 0  # bytes; 0 = unlimited
    pid: int = 0
    host: str = ""
    resources: dict[str, float] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    predecessor: int = 0  # process id of the one whose place it takes
    predecessor_death: str = ""
    predecessor_memory_bytes: int = 0  # if that one was ended for what it had,
    predecessor_limit_bytes: int = 0  # of so much that it was allowed
    local_directory: str = ""
    nanny: str = ""
    has_nanny: bool = False  # somebody starts another in our place if he is asked to
    services: dict[str, int] = field(default_factory=dict)
    transfers_max: int = 50  # requests at once, to all peers
    transfers_per_peer_max: int = 2  # so that one is being read while the next is being served
    transfer_bytes_max: int = 50_000_000  # expected in one request; one result is always allowed
    transfer_tasks_max: int = 1000  # in one request
    incoming_bytes_max: int = NEVER  # expected in all requests; one is always allowed
    story_records_max: int = 10_000
    writable_nbytes_min: int = NEVER  # a smaller value is never written to disk
    writing_bytes_max: int = 256_000_000  # on their way to disk; one value is always allowed
    reads_max: int = 2  # from disk, at once: what was read waits in memory for its run


class Residence:
    """Where the value of a large replica is, and what is being done about that."""

    __slots__ = ("has_file", "in_memory", "readers", "was_used", "work")

    def __init__(self) -> None:
        self.in_memory = True
        self.has_file = False  # with the same value: to let go of it costs nothing
        self.was_used = False  # since it was last considered for disk
        self.work: Any = None  # the effect by which it is written, or read
        self.readers: OrderedSet[Run] | None = None  # that wait for it to be in memory


class Replica:
    """A result in this worker's memory, or on its disk."""

    __slots__ = ("freed", "key", "nbytes", "npins", "residence", "run", "task")

    def __init__(self, task: TaskId, key: Key, nbytes: int, run: RunId = ELSEWHERE) -> None:
        self.task = task
        self.key = key
        self.nbytes = nbytes
        self.run = run  # that computed it here, if any
        self.npins = 0  # uses by runs that have not ended
        self.freed = False  # dead to everybody but those runs; it goes with the last of them
        self.residence: Residence | None = None  # None: it is in memory, and stays there

    def __repr__(self) -> str:
        return f"<Replica {self.task} {self.key!r} {self.npins} pins{' freed' * self.freed}>"


class Run:
    """One run of a task on this worker, from RunTask until its answer."""

    __slots__ = ("abandoned", "message", "pins", "reserved_bytes", "state", "unread", "wants")

    def __init__(self, message: RunTask) -> None:
        self.message = message
        self.state = WAITING
        self.abandoned = False  # the scheduler it is for is gone: its end is nobody's business
        self.reserved_bytes = 0  # bytes that are kept free for it, until it has ended
        self.pins: list[Replica] = []  # held inputs, kept until the run ends
        self.wants: OrderedSet[Want] | None = None  # inputs that have not arrived
        self.unread: OrderedSet[Replica] | None = None  # inputs that are on disk

    @property
    def key(self) -> Key:
        """Of the task."""
        return self.message.key

    @property
    def task(self) -> TaskId:
        """The task's number."""
        return self.message.task

    @property
    def timeout_seconds(self) -> float:
        """How long it may take; 0: as long as it likes, and it is never ended from outside."""
        message = self.message
        return message.timeout_seconds if isinstance(message, RunTaskIn) else 0.0

    @property
    def is_held_back(self) -> bool:
        """Whether its inputs are here, and it is not handed over as the worker is paused."""
        return self.state == WAITING and not self.wants and not self.unread

    @property
    def number(self) -> RunId:
        """The run's own number, which all answers carry."""
        return self.message.run

    def __repr__(self) -> str:
        return f"<Run {self.message.task}#{self.message.run} {self.message.key!r} {self.state}>"


class Want:
    """A result that this worker lacks, and means to get from a peer."""

    __slots__ = (
        "acquire",
        "freed",
        "holders",
        "in_flight",
        "key",
        "nbytes",
        "peer",
        "task",
        "unreachable",
        "waiters",
    )

    def __init__(self, task: TaskId, key: Key, nbytes: int) -> None:
        self.task = task
        self.key = key
        self.nbytes = nbytes  # expected
        self.acquire = False  # the scheduler asked for a copy, whoever runs
        self.freed = False  # only its waiters shall have it, nobody is told
        self.holders: list[str] = []  # not tried yet, nearest first
        self.peer: Peer | None = None  # it is queued for this one, or in flight from it
        self.in_flight = False
        self.unreachable: list[str] = []  # holders that could not be reached
        self.waiters: OrderedSet[Run] = OrderedSet()

    def __repr__(self) -> str:
        where = self.peer.address if self.peer else "nobody"
        verb = "in flight from" if self.in_flight else "queued for"
        return f"<Want {self.task} {self.key!r} {verb} {where}>"


class Peer:
    """A worker that results are fetched from, while there are any to fetch."""

    __slots__ = ("address", "nrequests", "queue", "queued_nbytes")

    def __init__(self, address: str) -> None:
        self.address = address
        self.nrequests = 0  # unanswered
        self.queue: OrderedSet[Want] = OrderedSet()  # to be asked for
        self.queued_nbytes = 0

    def __repr__(self) -> str:
        return f"<Peer {self.address}: {self.nrequests} requests, {len(self.queue)} queued>"


class RunEnded:
    """How one run ended.  `kept` is the machine's reply: whether its result is to be kept."""

    __slots__ = (
        "failure",
        "how",
        "kept",
        "kind",
        "nbytes",
        "run",
        "seconds",
        "started_at",
        "value",
    )

    def __init__(
        self,
        run: Run,
        how: str,
        nbytes: int = 0,
        seconds: float = 0.0,
        value: bytes | None = None,
        kind: str = "",
        started_at: float = 0.0,
        failure: Failure | None = None,
    ) -> None:
        """`how`: FINISHED, FAILED (with `failure`), RESCHEDULED or WITHDRAWN (it never began)."""
        self.run = run
        self.how = how
        self.nbytes = nbytes
        self.seconds = seconds
        self.value = value  # the result pickled, if small
        self.kind = kind
        self.started_at = started_at  # wall clock
        self.failure = failure
        self.kept = False


class RunDeprived(RunEnded):
    """A run that found, as it executed, that some of what it reads can't be had."""

    __slots__ = ("lacking", "missing", "unreachable")

    def __init__(
        self, run: Run, missing: list[TaskId], unreachable: list[str], lacking: list[str]
    ) -> None:
        """`missing`: tasks whose results it is; `unreachable`: their holders that can't be reached;
        `lacking`: those that don't have it."""
        super().__init__(run, DEPRIVED)
        self.missing = missing
        self.unreachable = unreachable
        self.lacking = lacking
