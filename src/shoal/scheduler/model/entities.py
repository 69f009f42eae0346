"""What a scheduler knows about: tasks, workers, clients, codes, prefixes.

Slots and plain fields; `state.py` keeps the two ends of every relation equal.  Sizes matter here:
a held task costs about 0.6 KB in all, so a relation that is mostly empty is None until it is used.
"""

from typing import Final

from shoal.ids import ClientId, ClientTaskId, CodeId, Key, RunId, TaskId, WorkerId
from shoal.protocol.messages import Failure, Message, TaskOptions
from shoal.protocol.questions import WorkerIdentity
from shoal.protocol.shuffles import ShuffleDefinition
from shoal.scheduler.model.hearing import Hearing

# The states of a task.  Plain strings, because people read them.
RELEASED: Final = "released"  # known, not in memory, and nothing is done about it
WAITING: Final = "waiting"  # for inputs, or for the data of a scatter
QUEUED: Final = "queued"  # ready, kept here until some worker has room
NO_WORKER: Final = "no-worker"  # ready, but no connected worker may run it
PROCESSING: Final = "processing"  # placed on a worker: kept in its backlog, or sent
MEMORY: Final = "memory"  # held by a worker, or small and held here
ERRED: Final = "erred"  # it failed, or something it needs did
FORGOTTEN: Final = "forgotten"  # in no index; nobody wants it and nothing depends on it

STATES: Final = (
    RELEASED,
    WAITING,
    QUEUED,
    NO_WORKER,
    PROCESSING,
    MEMORY,
    ERRED,
    FORGOTTEN,
)

NEEDS_INPUTS: Final = frozenset({WAITING, QUEUED, NO_WORKER, PROCESSING})
"""States in which a task counts as a waiter of each of its dependencies."""

NO_RUN: Final = RunId(0)
NO_OPTIONS: Final = TaskOptions()


class Prefix:
    """All tasks of one function, as their keys say: how many there are, how long they take."""

    __slots__ = (
        "duration_us",
        "gives_small",
        "is_hinted",
        "name",
        "nfailed",
        "nfailed_unknown",
        "nfinished",
        "nfinished_before",
        "ngauged",
        "nlive",
        "notable_bytes",
        "ntasks",
        "output_bytes",
        "peak_bytes",
        "spread",
        "weighs",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.duration_us = -1  # moving average; -1 = none has finished yet
        self.nfinished = 0
        self.gives_small = False  # the latest result was so small that it travelled with the news
        self.nfailed = 0
        self.nlive = 0  # tasks that are not forgotten
        self.nfinished_before = 0  # when there last were none
        self.peak_bytes = 0  # by which a worker grows for a run: a high estimate
        self.output_bytes = 0  # of a result: a high estimate
        self.notable_bytes = -1  # a result of more tells something new; -1: any does
        self.nfailed_unknown = 0  # runs, while that is not known
        self.ngauged = 0  # runs from which that was learnt; 0 = it is not known
        self.spread: dict[Worker, None] = {}  # that run several, though it is not known
        self.is_hinted = False  # of some of its tasks a user has said what they take
        self.weighs = True  # its tasks may take so much memory that it matters what runs beside
        self.ntasks = dict.fromkeys(STATES, 0)  # by state

    def __repr__(self) -> str:
        return f"<Prefix {self.name!r}: {self.nfinished} finished, {self.duration_us} us>"


class Code:
    """A pickled function or bundle, and which workers were told it."""

    __slots__ = ("id", "nusers", "payload", "told")

    def __init__(self, id: CodeId, payload: bytes) -> None:
        self.id = id
        self.payload = payload
        self.nusers = 0  # tasks with it as run spec, and clients that hold it
        self.told: dict[Worker, None] = {}

    def __repr__(self) -> str:
        return f"<Code {self.id}: {len(self.payload)} B, {self.nusers} users>"


class Task:
    """A node of the graph and its state."""

    __slots__ = (
        "argument",
        "blame",
        "code",
        "dependencies",
        "dependents",
        "failure",
        "id",
        "key",
        "kind",
        "nbytes",
        "nfetch_failures",
        "nholds",
        "nwaiters",
        "nwaiting",
        "options",
        "prefix",
        "priority",
        "retries",
        "run",
        "state",
        "value",
        "wants",
        "who_has",
        "worker",
    )

    def __init__(
        self,
        key: Key,
        id: TaskId,
        code: Code | None,
        argument: bytes | int,
        prefix: Prefix,
        priority: int,
        options: TaskOptions,
    ) -> None:
        self.key = key
        self.id = id
        self.code = code  # None: a scattered value, which can't be computed
        self.argument = argument
        self.prefix = prefix
        self.priority = priority  # smaller first
        self.options = options
        self.state: str = RELEASED
        self.dependencies: tuple[Task, ...] = ()  # in the order of the arguments
        self.dependents: dict[Task, None] | None = None
        self.nwaiting = 0  # dependencies that are not in memory, if it is waiting
        self.nwaiters = 0  # dependents whose state is in NEEDS_INPUTS
        self.nholds = 0  # clients whose graphs still arrive and will refer to it
        self.wants: tuple[tuple[Client, ClientTaskId], ...] = ()
        self.worker: Worker | None = None  # where it is placed, if processing
        self.run: RunId = NO_RUN  # of the assignment, once sent
        self.who_has: list[Worker] | None = None  # whether one has it, ask its `has_what`
        self.value: bytes | None = None  # the result itself, pickled, if small
        self.nbytes = -1
        self.kind = ""
        self.retries = options.retries
        self.blame = 0  # workers that died as it ran there
        self.nfetch_failures = 0
        self.failure: Failure | None = None

    @property
    def is_needed(self) -> bool:
        """Whether a client or another task is after its result."""
        return bool(self.wants) or self.nwaiters > 0 or self.nholds > 0

    def __repr__(self) -> str:
        return f"<Task {self.key!r} {self.state}>"


class Weight:
    """A run that is out and takes memory of its worker: how much so far."""

    __slots__ = ("changed_at", "gauged_bytes", "task")

    def __init__(self, task: Task, now: float) -> None:
        self.task = task
        self.gauged_bytes = 0  # by how much the worker has grown for it so far, as it says
        self.changed_at = now  # when it was sent, or last said to have grown

    def __repr__(self) -> str:
        return f"<Weight of {self.task.key!r}: {self.gauged_bytes} B so far>"


class Silence:
    """What was taken from a worker that is silent though it should have spoken: it is *suspect*."""

    __slots__ = ("accused", "at", "orphans", "put_by", "replicas", "runs")

    def __init__(self, at: float) -> None:
        self.at = at  # since when it is suspect (s, monotonic)
        self.replicas: dict[TaskId, int] = {}  # what it held, and has still for all we know: bytes
        self.runs: dict[RunId, Task] = {}  # that were out there, and are run elsewhere
        self.accused: list[Task] = []  # of them, those that may have been executing
        self.orphans: list[Key] = []  # that it has from before the scheduler was lost
        self.put_by: list[Message] = []  # what it has said since, though it hears nothing


class Worker:
    """A connected worker, what was given to it and what it holds."""

    __slots__ = (
        "_is_leaving",
        "_is_paused",
        "_is_quarantined",
        "_silence",
        "actors",
        "address",
        "available",
        "backlog",
        "backlog_us",
        "cannot_reach",
        "claims",
        "container",
        "cpu_percent",
        "executing",
        "forfeited",
        "guessed",
        "has_been_here",
        "has_nanny",
        "has_what",
        "heard_at",
        "hearing",
        "host",
        "id",
        "last_recalled",
        "leftovers",
        "local_directory",
        "looks_at",
        "looks_nsent",
        "managed_bytes",
        "memory_bytes",
        "memory_limit",
        "name",
        "nanny",
        "nbytes",
        "newest_run",
        "nheld",
        "nlooks",
        "nsent",
        "nthreads",
        "nwaiting",
        "nwaiting_heard",
        "outbox",
        "pause_why",
        "pid",
        "predecessor",
        "processing",
        "received_bytes",
        "resources",
        "reserved_for",
        "rest_bytes",
        "runs_suspect",
        "says_goodbye",
        "seceded",
        "sent_us",
        "services",
        "slots_max",
        "spilled_bytes",
        "spilled_disk_bytes",
        "takes_work",
        "told",
        "unmanaged_old_bytes",
        "versions",
        "vouched_at",
        "weights",
    )

    def __init__(
        self, id: WorkerId, address: str, name: str, nthreads: int, slots_max: int, now: float
    ) -> None:
        self.id = id
        self.address = address
        self.name = name
        self.nthreads = nthreads
        self.slots_max = slots_max  # runs that may be out whatever they take
        self.host = ""
        self.pid = 0
        self._know_no_memory()
        self.cpu_percent = 0.0  # of one CPU, as last heard
        self.executing: dict[RunId, float] = {}  # for long already, as last heard -> since when (s)
        self.local_directory = ""
        self.nanny = ""  # address of who keeps its process; "": none that can be reached
        self.services: dict[str, int] = {}
        self.versions: dict[str, str] = {}  # of what is installed there
        self.predecessor = 0  # process id of the one whose place it takes
        self.has_nanny = False  # who starts another in its place
        self.resources: dict[str, float] = {}
        self.available: dict[str, float] = {}  # of the resources: what no run has
        self.claims: dict[RunId, TaskOptions] = {}  # runs that have resources, or are counted
        self._is_leaving = self._is_paused = self._is_quarantined = False
        self._silence: Silence | None = None
        self.takes_work = True  # it neither leaves nor is paused, and is no suspect or quarantined
        self.pause_why = ""  # with numbers, for people
        self.says_goodbye = False  # it leaves by itself, whatever is decided here
        self.has_been_here = False  # this very process was connected before, in our epoch
        self.runs_suspect = False  # nothing is sent before nothing runs: a task that may have
        # killed a worker is out, alone, or one that needs all memory waits
        self.reserved_for: Task | None = None  # that waits for memory here, before others
        self.heard_at = now
        self.hearing = Hearing(now)
        self.vouched_at = now  # when somebody beside it last said that it lives
        self.forfeited: dict[RunId, Task] = {}  # that were taken from it as it was silent
        self.processing: dict[Task, int] = {}  # placed here -> expected duration in us
        self.nsent = self.nheld = 0  # out; held beside inputs until the first of a kind ends
        self.nwaiting = 0  # runs that have no slot; each has a substitute:
        self.nwaiting_heard = 0  # those that wait for other tasks, as last heard,
        self.seceded: dict[Task, bool] = {}  # and those that have seceded, unless they rejoined
        self.sent_us = 0  # expected work that was sent and is not answered
        self.backlog: list[tuple[int, TaskId, Task]] = []  # heap of what is placed but not sent;
        self.backlog_us = 0  # entries that no longer hold are skipped
        self.guessed: Prefix | None = None  # a kind of which none had ended when it was placed here
        self.has_what: dict[Task, None] = {}
        self.actors: dict[Task, None] = {}  # that live here, or were placed to be made here
        self.nbytes = 0
        self.received_bytes = 0  # of results that came from elsewhere, in all its life
        self.told: dict[Code, None] = {}
        self.newest_run: RunId = NO_RUN  # that was sent to it
        self.last_recalled: RunId = NO_RUN  # runs up to this one were considered for recall
        self.leftovers: dict[TaskId, None] = {}  # results of stale runs that it may still hold
        self.looks_at = 0.0  # when it looks for work of others again, if it has no less to do than
        self.looks_nsent = 0  # so many runs, as it had when it looked in vain;
        self.nlooks = 0  # and how often it has, up to some
        self.cannot_reach: dict[WorkerId, float] = {}  # peers, and until when we believe it
        self.outbox: list[Message] = []

    def _know_no_memory(self) -> None:
        """What its process has, and may have."""
        self.memory_limit = 0  # bytes; 0 = unlimited
        self.memory_bytes = 0  # of its process, as last heard; and so are these:
        self.managed_bytes = 0  # of results in memory, as they were measured
        self.spilled_bytes = 0  # of results that are on disk only, as they were measured
        self.spilled_disk_bytes = 0  # of the files that hold them
        self.unmanaged_old_bytes = 0  # in memory, no result, and there for long
        self.container = 0, 0  # bytes of all in its container, and the limit of that; 0: none
        self.rest_bytes = 0  # no result either, as nothing was run there that takes much
        self.weights: dict[RunId, Weight] = {}  # of runs that take much, until they have ended

    def identity(self, seconds_ahead: float = 0.0) -> WorkerIdentity:
        """What is told of it when somebody asks who is there.

        Args:
            seconds_ahead: what makes the machine's time seconds since the epoch.
        """
        return WorkerIdentity(
            self.address,
            self.id,
            self.name,
            self.host,
            self.nthreads,
            self.memory_limit,
            self.pid,
            self.resources,
            status=self.status,
            nprocessing=len(self.processing),
            nbytes=self.nbytes,
            nresults=len(self.has_what),
            nsent=self.nsent,
            memory_bytes=self.memory_bytes,
            cpu_percent=self.cpu_percent,
            received_bytes=self.received_bytes,
            heard_at=self.heard_at + seconds_ahead,
            local_directory=self.local_directory,
            nanny=self.nanny or (f"nanny+{self.address}" if self.has_nanny else ""),
            services=self.services,
            nlong_running=sum(self.seceded.values()),
            spilled_bytes=self.spilled_bytes,
            spilled_disk_bytes=self.spilled_disk_bytes,
            unmanaged_old_bytes=self.unmanaged_old_bytes,
            container_bytes=self.container[0],
            container_limit_bytes=self.container[1],
        )

    @property
    def is_leaving(self) -> bool:
        """Whether it is about to go; it is given nothing more."""
        return self._is_leaving

    @is_leaving.setter
    def is_leaving(self, is_leaving: bool) -> None:
        self._is_leaving = is_leaving
        self._decide()

    @property
    def is_paused(self) -> bool:
        """Whether it starts no runs, as its memory is short; what it holds it serves."""
        return self._is_paused

    @is_paused.setter
    def is_paused(self, is_paused: bool) -> None:
        self._is_paused = is_paused
        self._decide()

    @property
    def is_quarantined(self) -> bool:
        """Whether it is given no runs for a while, as all fail there that succeed elsewhere."""
        return self._is_quarantined

    @is_quarantined.setter
    def is_quarantined(self, is_quarantined: bool) -> None:
        self._is_quarantined = is_quarantined
        self._decide()

    @property
    def silence(self) -> Silence | None:
        """What was taken from it, if it is suspect, as nothing was heard of it."""
        return self._silence

    @silence.setter
    def silence(self, silence: Silence | None) -> None:
        self._silence = silence
        self._decide()

    def _decide(self) -> None:
        is_held = self._is_leaving or self._is_paused or self._is_quarantined
        self.takes_work = not (is_held or self._silence is not None)

    @property
    def status(self) -> str:
        """How it is, in the words that users know."""
        if self._is_leaving:
            return "closing_gracefully"
        return "paused" if self._is_paused else "running"

    @property
    def occupancy_us(self) -> int:
        """Expected work given to it and unanswered, in microseconds of one thread."""
        return self.sent_us + self.backlog_us

    @property
    def nbegun_max(self) -> int:
        """How many of its oldest runs may have begun; what was sent after them has not."""
        return self.nthreads + self.nwaiting

    @property
    def has_long_running(self) -> bool:
        """Whether a task that has seceded runs on there."""
        return bool(self.seceded) and any(self.seceded.values())

    def __repr__(self) -> str:
        return f"<Worker {self.address} ({self.nthreads} threads, {len(self.processing)} tasks)>"


class Client:
    """A connected client, what it wants and what it calls things."""

    __slots__ = (
        "codes",
        "defined",
        "heard_at",
        "held",
        "id",
        "may_return",
        "name",
        "outbox",
        "sequences",
        "share",
        "tasks",
        "topics",
    )

    def __init__(self, id: ClientId, name: str, now: float) -> None:
        self.id = id
        self.name = name
        self.heard_at = now
        self.may_return = False  # what it wants can be let go of: it would say it again
        self.tasks: dict[ClientTaskId, Task] = {}  # what it wants
        self.held: dict[ClientTaskId, Task] = {}  # what later slices of its graphs refer to
        self.sequences: dict[ClientTaskId, dict[int | None, int]] = {}
        """Graph still arriving -> urgency -> place of its next task; None: of any urgency."""
        self.share = 1.0  # weight that it asks for beside other clients
        self.codes: dict[CodeId, Code] = {}
        self.defined: dict[Key, ShuffleDefinition] = {}  # barriers that it is about to submit
        self.topics: dict[str, None] = {}  # of which it hears
        self.outbox: list[Message] = []

    def __repr__(self) -> str:
        return f"<Client {self.name} ({len(self.tasks)} tasks)>"


def aliases_of(worker: Worker) -> tuple[str, str, str, str]:
    """What means `worker`: its address, its name, its host, and that as the address has it."""
    return worker.address, worker.name, worker.host, host_of(worker.address)


def host_of(address: str) -> str:
    """The host of `tcp://host:port`, without brackets; the whole address if it has none."""
    rest = address.partition("://")[2] or address
    return rest.rpartition(":")[0].strip("[]") or rest
