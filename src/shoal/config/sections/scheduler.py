"""Settings of the scheduler."""

from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec

from shoal.config.base import AtLeastZero, Fraction, Positive, Settings
from shoal.units import KIB

# Tasks that only take their input apart: moving them to another worker never pays.
SPLITS: Final = dict.fromkeys(
    ("rechunk-split", "split-shuffle", "split-taskshuffle", "split-stage"), 1e-6
)


Measure = Literal[
    "optimistic",
    "managed",
    "process",
    "unmanaged",
    "managed_total",
    "spilled",
    "unmanaged_old",
    "unmanaged_recent",
]
"""Of a worker's memory; what each counts is told by `MemoryState`."""


def _reduce_replicas() -> list[dict[str, Any]]:
    """The policy that drops copies which nobody needs, by the name that files have for it."""
    return [{"class": "distributed.active_memory_manager.ReduceReplicas"}]


class Scheduler(Settings, frozen=True, kw_only=True):
    """What the scheduler assumes, tolerates and allows."""

    path: ClassVar[str] = "scheduler"

    allowed_failures: Annotated[int, AtLeastZero] = 3
    """Workers that may die while they run a task before the task itself is given the blame."""

    worker_saturation: Annotated[float, Positive] = 1.1
    """Tasks per thread that may be out at once, rounded up; `inf` places tasks early."""

    worker_ttl_seconds: Annotated[float, Positive] | None = 300.0
    """A worker that gives no sign of life for this long is lost; off: never."""

    suspect_seconds: Annotated[float, Positive] | None = 10.0
    """A worker that is silent for this long, and for two signs of life, is suspect unless its nanny
    vouches for it: it is given nothing, and what is needed of it is computed elsewhere; off: never.
    """

    quarantine_failures: Annotated[int, AtLeastZero] = 10
    """When so many runs have failed on a worker one after the other, while as many of their kinds
    ended well elsewhere, it is given nothing for ten seconds, and longer each time; 0: never."""

    client_ttl_seconds: Annotated[float, Positive] | None = 300.0
    """What a client wants that is silent for this long is let go of, if it looks for a scheduler
    that it has lost: once it is back it has all of it again; off: never."""

    resume_seconds: Annotated[float, AtLeastZero] = 10.0
    """A worker whose connection broke may come back for so long, as if nothing had happened; if
    its process is found to be dead it is lost at once.  A cluster in one process tree has 0."""

    client_resume_seconds: Annotated[float, AtLeastZero] = 10.0
    """The same for clients, whose processes can't be looked for."""

    pipe_seconds: Annotated[float, AtLeastZero] = 0.001
    """Expected work kept for each thread of a worker beyond its saturation, so that short tasks
    don't starve."""

    inline_bytes_max: Annotated[int, AtLeastZero] = KIB
    """Results up to this size travel with the message that reports them."""

    unknown_task_seconds: Annotated[float, Positive] = 0.5
    """Assumed duration of a task whose prefix was never seen to finish."""

    default_task_durations: dict[str, float] = msgspec.field(default_factory=SPLITS.copy)
    """Assumed seconds by prefix, until one was seen to finish."""

    default_task_memory: dict[str, int] = {}
    """Bytes by prefix that a worker grows by for a run, assumed until one was seen to finish."""

    bandwidth_bytes: Annotated[int, Positive] = 100_000_000
    """Bytes per second between two workers, until transfers were measured."""

    idle_timeout_seconds: Annotated[float, Positive] | None = None
    """A scheduler without work for this long closes, and its workers with it; off: never."""

    no_workers_timeout_seconds: Annotated[float, AtLeastZero] | None = None
    """A task that is ready, and that no connected worker may run for this long, fails; off: it
    waits."""

    stranded_warning_seconds: Annotated[float, Positive] | None = 3.0
    """How long tasks wait for a worker that may run them until their client says what they need;
    off: it does not."""

    shares: dict[str, Annotated[float, Positive]] = {}
    """Weight beside other clients, by pattern of their names (`team-*`); of the first that fits."""

    limits: dict[str, Annotated[int, AtLeastZero]] = {}
    """How many tasks that name each of these in their `limits` may run at once."""

    events_cleanup_seconds: Annotated[float, AtLeastZero] = 3600.0
    """How long the topics of departed workers and clients are kept."""

    orphan_seconds: Annotated[float, AtLeastZero] = 60.0
    """How long workers keep what they have of a scheduler that was lost, after they have found its
    successor, unless a client asks for it."""

    recovery_seconds: Annotated[float, AtLeastZero] = 5.0
    """How long a scheduler that has come back waits, before it has anything run, for the workers
    that may have the results; less if those are there that its clients know."""

    journal: str | None = None
    """A folder for what shall outlive the scheduler: what is published, and what was fired and
    forgotten.  Whoever is started on it next goes on with that; off: it goes with the scheduler."""

    validate: bool = False
    """Check the whole state after each step: slow, and meant for tests."""

    contact_address: str | None = None
    """The address told to others, where it differs from the one listened on."""

    blocked_handlers: list[str] = []
    """Names of operations that it refuses to answer to."""

    preload: list[str] = []
    preload_argv: list[Any] = []


class Stealing(Settings, frozen=True, kw_only=True):
    """Moving tasks from busy workers to idle ones."""

    path: ClassVar[str] = "scheduler.stealing"

    enabled: bool = True
    """Off: a task stays where it was placed first, and what was sent is not taken back."""


class Replicas(Settings, frozen=True, kw_only=True):
    """Dropping copies of results that nobody needs twice."""

    path: ClassVar[str] = "scheduler.replicas"

    enabled: bool = True
    """Off: copies stay as long as their task, unless `client.amm.start()` is called."""

    interval_seconds: Annotated[float, Positive] = 2.0
    """How often to look for copies to drop, as long as there are any."""

    measure: Measure = "optimistic"
    """What of workers' memory is compared, to choose who drops a copy or gets one."""

    policies: list[dict[str, Any]] = msgspec.field(default_factory=_reduce_replicas)
    """What decides about copies: `class`, by its full name, and what it is called with."""

    rebalance_measure: Measure = "optimistic"
    """What of workers' memory `rebalance` evens out."""

    rebalance_sender_ratio: Annotated[float, Fraction] = 0.3
    """Of its memory limit: `rebalance` moves nothing away from a worker that has less in memory."""

    rebalance_recipient_ratio: Annotated[float, Fraction] = 0.6
    """Of its memory limit: `rebalance` moves nothing to a worker that has more in memory."""

    rebalance_gap_ratio: Annotated[float, Fraction] = 0.1
    """Of the memory limit: workers that are nearer to each other than this are balanced."""
