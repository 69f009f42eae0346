"""What may be set about scheduling, with units; made from `shoal.config` by the shell."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """Numbers that policies and machine read; all have the defaults users know."""

    allowed_failures: int = 3
    """Workers that may die while running a task before the task is held to be the cause."""

    worker_saturation: float = 1.1
    """Runs out at once per thread, whatever they take: ceil(saturation x nthreads) slots."""

    pipe_seconds: float = 0.001
    """Expected work per thread that may be out beyond the slots, so threads never wait for us."""

    pipe_runs_max: int = 256
    """Runs out at once on one worker, however short they are expected to be."""

    unknown_duration_seconds: float = 0.5
    """Expected duration of a task whose prefix has never finished."""

    known_seconds: Mapping[str, float] = field(default_factory=dict)
    """Expected durations by prefix, for those that are known before one has finished."""

    known_bytes: Mapping[str, int] = field(default_factory=dict)
    """By how much a worker grows for a run, by prefix, where that is known before one has
    finished."""

    memory_pause_ratio: float = 0.8
    """Of a worker's memory limit: what runs are sent for; above it the worker pauses."""

    memory_target_ratio: float | None = 0.6
    """Of a worker's memory limit: results beyond that go to disk; None: they stay in memory."""

    inline_bytes_max: int = 1024
    """Results up to this size travel with the messages about them."""

    bandwidth_bytes_per_second: float = 100e6
    """Between two workers, until it is measured."""

    fetch_latency_seconds: float = 0.001
    """Cost of fetching one input, whatever its size."""

    no_workers_seconds: float | None = None
    """How long a ready task may wait for a worker that may run it, before it fails; None: ever."""

    stranded_warning_seconds: float | None = 3.0
    """How long tasks wait for a worker that may run them, until clients are told; None: ever."""

    shares: Mapping[str, float] = field(default_factory=dict)
    """Weight of clients whose names match, beside others; of the first pattern that does."""

    limits: Mapping[str, int] = field(default_factory=dict)
    """How many tasks that name each of these may run at once, in the whole cluster."""

    moves_work: bool = True
    """Whether what is placed on one worker, or sent and not begun, may go to another that idles."""

    worker_ttl_seconds: float = 300.0
    """Silence after which a worker is taken for lost."""

    client_ttl_seconds: float = float("inf")
    """Silence after which what a client wants is let go of, if it can come back."""

    suspect_seconds: float = float("inf")
    """Silence after which a worker is suspect, unless somebody vouches for it."""

    quarantine_failures: int = 10
    """Runs that fail on a worker one after the other, while as many of their kinds end well
    elsewhere, until it is given nothing for a while; 0: never."""

    orphan_seconds: float = 60.0
    """How long a worker keeps what it has of a lost scheduler, unless somebody asks for it."""

    recovery_seconds: float = 5.0
    """How long no run is given out as workers may come back, once the first of them has; 0: none
    is waited for."""

    heartbeat_seconds: float = 5.0
    """How often workers give a sign of life."""

    recall_after_seconds: float = 0.005
    """Silence of a worker after which runs it has not begun are taken back for idle ones."""

    fetch_attempts_max: int = 10
    """Times a task's inputs may be out of reach before the task fails."""

    unreachable_seconds: float = 30.0
    """How long we remember that one worker could not reach another."""

    placements_max: int = 1000
    """Ready tasks placed in one step, some milliseconds of work; others are due in later ones.
    One with several inputs counts as so many."""

    forgets_max: int = 2000
    """Tasks forgotten in one step, some milliseconds of work; others are due in the next ones.
    Copies of a result of which more than these are to be freed count as well."""

    resting_prefixes_max: int = 4096
    """Prefixes without tasks whose durations are remembered (about 1 KB each)."""

    topic_events_max: int = 1_000
    """Events that a topic keeps."""

    topic_bytes_max: int = 4_000_000
    """Bytes of events that a topic keeps; a larger event is said to subscribers only."""

    topics_max: int = 10_000
    """Topics that are kept; if there are more, the one longest silent is forgotten."""

    departed_topics_max: int = 100
    """Topics of workers and clients that have left, which are kept for whoever asks."""

    departed_topic_seconds: float = 3600.0
    """How long such a topic is kept."""

    story_records_max: int = 10_000
    """Transitions that the story keeps (about 150 bytes each)."""

    drain_seconds: float = 1.0
    """How long a worker that shall go may take for what it is about to finish."""

    copy_patience_seconds: float = 10.0
    """Silence of a worker after which a copy that it was to get is sought elsewhere."""

    reduces_replicas: bool = True
    """Whether copies that nobody needs are dropped by and by."""

    reduction_seconds: float = 2.0
    """Between two looks at results with several copies, as long as there are any."""

    replica_measure: str = "optimistic"
    """What of workers' memory is compared to choose who gets or drops a copy; see `measures.py`."""

    rebalance_measure: str = "optimistic"
    """What of workers' memory `rebalance` evens out."""

    rebalance_sender_ratio: float = 0.3
    """Of its memory limit: a worker that holds less has nothing moved away."""

    rebalance_recipient_ratio: float = 0.6
    """Of its memory limit: a worker that holds more is given nothing."""

    rebalance_gap_ratio: float = 0.1
    """Of the memory limit: workers that are nearer to each other are balanced."""
