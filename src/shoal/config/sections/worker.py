"""Settings of workers: what they offer, their memory, their profile."""

from typing import Annotated, Any, ClassVar, Literal

from shoal.config.base import AtLeastZero, Fraction, Positive, Settings


class Worker(Settings, frozen=True, kw_only=True):
    """What a worker offers and how it talks to its peers."""

    path: ClassVar[str] = "worker"

    heartbeat_seconds: Annotated[float, Positive] = 1.0
    """How often a worker says that it lives, and what it uses."""

    memory_limit: str | int | float | None = "auto"
    """Bytes; a fraction of the host's memory when at most 1; `auto`: its share by threads."""

    resources: dict[str, float] = {}
    """Abstract amounts, e.g. `GPU: 2`, that tasks may ask for."""

    transfers_out_max: Annotated[int, Positive] = 50
    """Peers that one worker fetches from at once."""

    transfers_in_max: Annotated[int, Positive] = 10
    """Peers that one worker serves at once."""

    transfer_bytes_max: Annotated[int, Positive] = 50_000_000
    """Bytes asked of one peer in one request; one result is always allowed."""

    reconnect_seconds: Annotated[float, AtLeastZero] = 60.0
    """How long a worker that was started by a command looks for a scheduler that it has lost, with
    all its results; then it closes.  Workers of a cluster that a program has made close at once."""

    lifetime_seconds: Annotated[float, Positive] | None = None
    """Retire after this long."""

    lifetime_stagger_seconds: Annotated[float, AtLeastZero] = 0.0
    """Spread of the lifetime, either way, so that workers don't all leave at once."""

    lifetime_restart: bool = False
    """Let the nanny start a new worker after that."""

    daemon: bool = True
    """Tell libraries that ask `multiprocessing`, as joblib does, that the process of a worker is
    daemonic, so that those in tasks keep to one process instead of one for each core.  Tasks may
    start processes in either case; they end with their worker."""

    give_up_seconds: Annotated[float, AtLeastZero] = 5.0
    """How long a task that was told to end, since its `timeout` is over or it was cancelled, may
    take for that; then its thread is left behind, and another one has its place."""

    validate: bool = False
    """Check the whole state after each step: slow, and meant for tests."""

    blocked_handlers: list[str] = []
    """Names of operations that it refuses to answer to."""

    preload: list[str] = []
    preload_argv: list[Any] = []


class Memory(Settings, frozen=True, kw_only=True):
    """What a worker does as its memory fills; ratios of its limit."""

    path: ClassVar[str] = "worker.memory"

    transfer_ratio: Annotated[float, Fraction] | None = 0.1
    """Incoming results in flight."""

    target_ratio: Annotated[float, Fraction] | None = 0.6
    """Spill above this, going by the sizes of results."""

    spill_ratio: Annotated[float, Fraction] | None = 0.7
    """Spill above this, going by the process."""

    pause_ratio: Annotated[float, Fraction] | None = 0.8
    """Start no more tasks above this."""

    terminate_ratio: Annotated[float, Fraction] | None = 0.95
    """The nanny ends the worker above this."""

    spill_bytes_max: Annotated[int, AtLeastZero] | None = None
    """Disk that spilled results may take; None: what the disk has."""

    spill_compression: Literal["auto", "lz4", "zstd", "zlib"] | None = "auto"
    """How spilled results are made smaller where that pays: by `lz4`, `zstd`, `zlib`, or `auto`,
    the first of the first two that is installed; None: not at all."""

    monitor_seconds: Annotated[float, Positive] = 0.1
    """How often the process's memory is read."""

    recent_to_old_seconds: Annotated[float, AtLeastZero] = 30.0
    """Unmanaged memory that stays this long isn't a passing peak."""

    recycle_after_seconds: Annotated[float, Positive] | None = 60.0
    """A worker that is paused this long, runs nothing and can make no room is retired, and its
    nanny starts another; one at a time.  None: it stays as it is."""


class Profile(Settings, frozen=True, kw_only=True):
    """Where tasks spend their time, by sampling their stacks."""

    path: ClassVar[str] = "worker.profile"

    enabled: bool = True
    """Off: no samples are taken."""

    interval_seconds: Annotated[float, Positive] = 0.01
    """How often a stack is looked at."""

    cycle_seconds: Annotated[float, Positive] = 1.0
    """How much time one entry of the record spans."""
