"""All that a worker's machine knows, and the two lists that a step leaves for its shell."""

from __future__ import annotations

from collections import OrderedDict, deque

from shoal.ids import CodeId, Epoch, Key, RunId, TaskId
from shoal.ordered import OrderedSet
from shoal.protocol.messages import Message
from shoal.worker.machine.effects import Effect, Fetch, ReadBack, Write
from shoal.worker.model.entities import MachineSettings, Peer, Replica, Run, Want
from shoal.worker.policies.room import Room


class WorkerState:
    """Plain tables; the modules beside this one are the only ones that change them."""

    __slots__ = (
        "absent",
        "added",
        "clean",
        "codes",
        "connected",
        "dropped",
        "drops_at",
        "effects",
        "epoch",
        "excepted",
        "fetches",
        "held",
        "is_holding",
        "incoming_nbytes",
        "last_own_number",
        "now",
        "nwaiting",
        "older_runs",
        "orphan_runs",
        "orphans",
        "outbox",
        "pause",
        "pause_by_hand",
        "peers",
        "reading_nbytes",
        "reads",
        "ready",
        "resident",
        "room",
        "runs",
        "settings",
        "shortage",
        "starved",
        "story",
        "told_runs",
        "unasked",
        "unwanted_runs",
        "unqueued",
        "wants",
        "writes",
        "writing_nbytes",
    )

    def __init__(self, settings: MachineSettings) -> None:
        self.settings = settings
        self.now = 0.0  # of the step
        self.epoch = Epoch(0)  # of all integers here; 0: never registered
        self.connected = False  # registered, and the connection is up
        self.shortage: str | None = None  # of memory, with numbers; None: there is enough
        self.pause_by_hand: str | None = None  # why it pauses for another reason than that
        self.pause: str | None = None  # of these, why nothing is begun; None: it is
        self.excepted: Run | None = None  # it begins all the same, as nothing else can end
        self.room: Room | None = None  # in memory; None: nobody counts, as there is no limit
        self.is_holding = False  # runs are not handed over until some results are on disk
        self.runs: dict[TaskId, Run] = {}  # the newest run of each task that has one
        self.older_runs: dict[tuple[TaskId, RunId], Run] = {}  # overtaken by one of `runs`
        self.nwaiting = 0  # runs that were handed over, and wait for other tasks
        self.held: dict[TaskId, Replica] = {}  # here, in memory or on disk
        self.resident: OrderedDict[TaskId, Replica] = OrderedDict()  # of those, what could be
        # written, the least recently used first; as in
        self.clean: OrderedDict[TaskId, Replica] = OrderedDict()  # what has a file as well
        self.absent: dict[TaskId, Replica] = {}  # of those, what is on disk only
        self.writes: dict[Write, Replica] = {}  # under way
        self.writing_nbytes = 0  # of those
        self.reads: dict[ReadBack, Replica] = {}  # under way
        self.reading_nbytes = 0  # of those
        self.orphans: dict[Key, Replica] = {}  # of those held, what no scheduler knows a number of
        self.orphan_runs: OrderedSet[Run] = OrderedSet()  # of another epoch, and they go on
        self.unwanted_runs: OrderedSet[Run] = (
            OrderedSet()
        )  # the same, and nobody wants what they give
        self.told_runs: list[Run] = []  # said to go on, as we last asked to be let in
        self.last_own_number = 0  # that was given to one of these
        self.wants: dict[TaskId, Want] = {}  # to be fetched, or under way
        self.peers: dict[str, Peer] = {}  # with something queued or under way
        self.fetches: dict[Fetch, list[Want]] = {}  # unanswered requests
        self.incoming_nbytes = 0  # expected of those, in all
        self.codes: OrderedSet[CodeId] = OrderedSet()
        self.story: deque[tuple[float, Key, str, int]] = deque(
            maxlen=settings.story_records_max
        )  # (when, key, what, number of the run or 0)

        # What this step leaves behind.
        self.effects: list[Effect] = []
        self.dropped: OrderedSet[TaskId] = OrderedSet()  # becomes one Drop
        self.drops_at = 0  # its place among the effects: before those that put anything
        self.outbox: list[Message] = []  # becomes one Send
        self.ready: list[Run] = []  # becomes one StartRuns
        self.added: list[Replica] = []  # becomes one ReplicasAdded
        self.unasked: deque[Replica] = deque()  # to be read from disk, as soon as may be
        self.unqueued: list[Want] = []  # wants that need a peer
        self.starved: OrderedSet[Peer] = OrderedSet()  # peers with a queue and room for a request

    @property
    def coming_nbytes(self) -> int:
        """Of results that are on their way into memory, from peers or from disk."""
        return self.incoming_nbytes + self.reading_nbytes

    def record(self, key: Key, what: str, number: int = 0) -> None:
        """Add to the story."""
        self.story.append((self.now, key, what, number))
