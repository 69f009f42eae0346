"""All that a worker's machine knows, and the two lists that a step leaves for its shell."""

from __future__ import annotations

from collections import deque

from shoal.ids import CodeId, Epoch, Key, RunId, TaskId
from shoal.ordered import OrderedSet
from shoal.protocol.messages import Message
from shoal.worker.machine.effects import Effect, Fetch
from shoal.worker.model.entities import MachineSettings, Peer, Replica, Run, Want


class WorkerState:
    """Plain tables; the modules beside this one are the only ones that change them."""

    __slots__ = (
        "added",
        "codes",
        "connected",
        "dropped",
        "effects",
        "epoch",
        "fetches",
        "held",
        "now",
        "older_runs",
        "outbox",
        "peers",
        "ready",
        "runs",
        "settings",
        "starved",
        "story",
        "unqueued",
        "wants",
    )

    def __init__(self, settings: MachineSettings) -> None:
        self.settings = settings
        self.now = 0.0  # of the step
        self.epoch = Epoch(0)  # of all integers here; 0: never registered
        self.connected = False  # registered, and the connection is up
        self.runs: dict[TaskId, Run] = {}  # the newest run of each task that has one
        self.older_runs: dict[tuple[TaskId, RunId], Run] = {}  # overtaken by one of `runs`
        self.held: dict[TaskId, Replica] = {}  # in memory here
        self.wants: dict[TaskId, Want] = {}  # to be fetched, or under way
        self.peers: dict[str, Peer] = {}  # with something queued or under way
        self.fetches: dict[Fetch, list[Want]] = {}  # unanswered requests
        self.codes: OrderedSet[CodeId] = OrderedSet()
        self.story: deque[tuple[float, Key, str, int]] = deque(
            maxlen=settings.story_records_max
        )  # (when, key, what, number of the run or 0)

        # What this step leaves behind.
        self.effects: list[Effect] = []
        self.dropped: OrderedSet[TaskId] = OrderedSet()  # becomes one Drop
        self.outbox: list[Message] = []  # becomes one Send
        self.ready: list[Run] = []  # becomes one StartRuns
        self.added: list[Replica] = []  # becomes one ReplicasAdded
        self.unqueued: list[Want] = []  # wants that need a peer
        self.starved: OrderedSet[Peer] = OrderedSet()  # peers with a queue and room for a request

    def record(self, key: Key, what: str, number: int = 0) -> None:
        """Add to the story."""
        self.story.append((self.now, key, what, number))
