"""Settings: each one's name, default, unit and reason, read from `dask.config`.

A section is a frozen Struct.  Its fields are settings: the field `connect_seconds` of the section
at `comm` is `shoal.comm.connect-seconds` in a YAML file and `DASK_SHOAL__COMM__CONNECT_SECONDS` in
the environment.  Fields ending in `_seconds` also take texts such as "500ms", those ending in
`_bytes` such as "64MiB", and `False` or `None` turns off what may be off (`float | None`).

A value set under `shoal.` wins; then one that a program sets under its `distributed.` name (the
table in `legacy.py`); then the default.  Read a section when a service starts, never in a machine.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_args

import dask.config
import msgspec
from msgspec import Meta

from shoal.legacy import LEGACY
from shoal.units import GIB, KIB, MIB, to_nbytes, to_seconds

Positive = Meta(gt=0)
AtLeastZero = Meta(ge=0)
Fraction = Meta(ge=0, le=1)

# Tasks that only take their input apart: moving them to another worker never pays.
SPLITS = dict.fromkeys(("rechunk-split", "split-shuffle", "split-taskshuffle", "split-stage"), 1e-6)
# Tasks are the parallelism; a library that adds threads of its own would have them fight.
SINGLE_THREADED = {
    "OMP_NUM_THREADS": 1,
    "MKL_NUM_THREADS": 1,
    "OPENBLAS_NUM_THREADS": 1,
}


class SettingError(ValueError):
    """A setting has a value that can't be used, or a name that doesn't exist."""

    def __init__(self, name: str, problem: str, advice: str) -> None:
        super().__init__(name, problem, advice)  # args, so that it survives pickle
        self.name, self.problem, self.advice = name, problem, advice

    def __str__(self) -> str:
        return f"The setting {self.name} can't be used: {self.problem}. {self.advice}"


class Settings(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """One section; `path` is where it lies below `shoal.`."""

    path: ClassVar[str] = ""


class Comm(Settings, frozen=True, kw_only=True):
    """Connections between processes."""

    path: ClassVar[str] = "comm"

    connect_seconds: Annotated[float, Positive] = 30.0
    """Deadline for resolving, connecting and the handshake together."""

    handshake_seconds: Annotated[float, Positive] = 5.0
    """How long a stranger may take to say who they are."""

    silence_seconds: Annotated[float, Positive] = 30.0
    """A peer whose machine is silent this long is taken for dead (keep-alive, user time-out)."""

    backlog: Annotated[int, Positive] = 2048
    """Connections that wait to be accepted."""

    frame_bytes_max: Annotated[int, Positive] = GIB
    """The largest body of a frame that is accepted; buffers beside it have their own limit."""

    compression: str | None = None
    """`lz4`, `zstd` or `auto`; off by default, since most networks outrun it."""

    require_encryption: bool | None = None
    """Refuse peers without TLS.  None: required off loopback in protected mode."""


class Tls(Settings, frozen=True, kw_only=True):
    """Certificates; all are paths to PEM files."""

    path: ClassVar[str] = "comm.tls"

    ca_file: str | None = None
    ciphers: str | None = None
    scheduler_cert: str | None = None
    scheduler_key: str | None = None
    worker_cert: str | None = None
    worker_key: str | None = None
    client_cert: str | None = None
    client_key: str | None = None


class Scheduler(Settings, frozen=True, kw_only=True):
    """What the scheduler assumes, tolerates and allows."""

    path: ClassVar[str] = "scheduler"

    allowed_failures: Annotated[int, AtLeastZero] = 3
    """Workers that may die while they run a task before the task itself is given the blame."""

    worker_saturation: Annotated[float, Positive] = 1.1
    """Tasks per thread that may be out at once, rounded up; `inf` places tasks early."""

    worker_ttl_seconds: Annotated[float, Positive] | None = 300.0
    """A worker that gives no sign of life for this long is lost; off: never."""

    pipe_seconds: Annotated[float, AtLeastZero] = 0.001
    """Expected work kept at each worker beyond its saturation, so that short tasks don't starve."""

    inline_bytes_max: Annotated[int, AtLeastZero] = KIB
    """Results up to this size travel with the message that reports them."""

    unknown_task_seconds: Annotated[float, Positive] = 0.5
    """Assumed duration of a task whose prefix was never seen to finish."""

    default_task_durations: dict[str, float] = msgspec.field(default_factory=SPLITS.copy)
    """Assumed seconds by prefix, until one was seen to finish."""

    default_result_bytes: Annotated[int, AtLeastZero] = KIB
    """Assumed size of a result whose size isn't known."""

    bandwidth_bytes: Annotated[int, Positive] = 100_000_000
    """Bytes per second between two workers, until transfers were measured."""

    rootish_taskgroup: Annotated[int, AtLeastZero] = 5
    """A group that depends on fewer groups than this may be root-ish."""

    rootish_taskgroup_dependencies: Annotated[int, AtLeastZero] = 5
    """A group whose dependencies have fewer tasks than this may be root-ish."""

    idle_timeout_seconds: Annotated[float, Positive] | None = None
    """A scheduler without work for this long closes itself."""

    no_workers_timeout_seconds: Annotated[float, AtLeastZero] | None = None
    """A task that no connected worker could run for this long fails."""

    events_cleanup_seconds: Annotated[float, AtLeastZero] = 3600.0
    """How long the topics of departed workers and clients are kept."""

    resume_seconds: Annotated[float, AtLeastZero] = 30.0
    """How long a broken connection of a client or worker may stay away without losing anything."""

    validate: bool = False
    """Check the whole state after each step: slow, and meant for tests."""

    contact_address: str | None = None
    """The address told to others, where it differs from the one listened on."""

    preload: list[str] = []
    preload_argv: list[Any] = []


class Stealing(Settings, frozen=True, kw_only=True):
    """Moving tasks from busy workers to idle ones."""

    path: ClassVar[str] = "scheduler.stealing"

    enabled: bool = True

    interval_seconds: Annotated[float, Positive] = 1.0
    """How often to look for imbalance; shorter reacts sooner, and costs O(workers) each time."""


class Replicas(Settings, frozen=True, kw_only=True):
    """Dropping copies of results that nobody needs twice."""

    path: ClassVar[str] = "scheduler.replicas"

    enabled: bool = True

    interval_seconds: Annotated[float, Positive] = 2.0
    """How often to look for copies to drop."""


class Leases(Settings, frozen=True, kw_only=True):
    """Locks and semaphores held by somebody who may vanish."""

    path: ClassVar[str] = "scheduler.leases"

    interval_seconds: Annotated[float, Positive] = 10.0
    """How often leases are looked at."""

    timeout_seconds: Annotated[float, Positive] = 30.0
    """A lease that isn't refreshed for this long is free again; `inf`: never."""


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

    lifetime_seconds: Annotated[float, Positive] | None = None
    """Retire after this long."""

    lifetime_stagger_seconds: Annotated[float, AtLeastZero] = 0.0
    """Spread of the lifetime, either way, so that workers don't all leave at once."""

    lifetime_restart: bool = False
    """Let the nanny start a new worker after that."""

    validate: bool = False
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

    monitor_seconds: Annotated[float, Positive] = 0.1
    """How often the process's memory is read."""

    recent_to_old_seconds: Annotated[float, AtLeastZero] = 30.0
    """Unmanaged memory that stays this long isn't a passing peak."""


class Profile(Settings, frozen=True, kw_only=True):
    """Where tasks spend their time, by sampling their stacks."""

    path: ClassVar[str] = "worker.profile"

    enabled: bool = True
    interval_seconds: Annotated[float, Positive] = 0.01
    cycle_seconds: Annotated[float, Positive] = 1.0


class Nanny(Settings, frozen=True, kw_only=True):
    """What a nanny puts into the processes it starts."""

    path: ClassVar[str] = "nanny"

    environ: dict[str, Any] = {}
    """Variables set in the worker's process once it runs."""

    pre_spawn_environ: dict[str, Any] = msgspec.field(default_factory=SINGLE_THREADED.copy)
    """Variables that libraries read as they load; one the user has set already wins."""

    start_method: Literal["auto", "fork", "spawn"] = "auto"
    """How processes start: forked from a warm one, which is fast, or spawned, each a fresh
    interpreter; `auto` forks where the system's libraries stand it, which is on Linux."""

    restart_pause_seconds: Annotated[float, Positive] = 0.1
    """A worker that died is replaced at once; after its second death in a row only after this
    long, and after each further one after twice as long, so that a crash loop costs little."""

    restart_pause_seconds_max: Annotated[float, Positive] = 30.0
    """The longest such pause: a cause that goes away by itself is noticed within this long."""

    deaths_max: Annotated[int, Positive] = 8
    """Deaths in a row after which it is not replaced again.  More than a task may survive
    (`allowed-failures`), so that a task which kills workers fails before its workers give up."""

    steady_seconds: Annotated[float, Positive] = 1.0
    """A worker that has lived this long, or has finished a task, is no part of a crash loop:
    deaths are counted anew."""

    memory_deaths_max: Annotated[int, Positive] = 8
    """Deaths in a row by the memory limit after which it is not replaced again, whatever it has
    finished in between: its results don't fit, and to compute them again changes nothing."""

    memory_steady_seconds: Annotated[float, Positive] = 60.0
    """A worker that comes to its memory limit only after this long begins that row anew."""

    preload: list[str] = []
    preload_argv: list[Any] = []


class Client(Settings, frozen=True, kw_only=True):
    """The user's side."""

    path: ClassVar[str] = "client"

    heartbeat_seconds: Annotated[float, Positive] = 5.0
    """How often a client says that it lives."""

    large_graph_bytes: Annotated[int, Positive] = 10_000_000
    """A graph larger than this is worth a warning: its data belong into `scatter` or a file."""

    direct_to_workers: bool | None = None
    """Fetch from workers rather than through the scheduler; None: where it can be reached."""

    preload: list[str] = []
    preload_argv: list[Any] = []


class Adaptive(Settings, frozen=True, kw_only=True):
    """Letting the number of workers follow the load."""

    path: ClassVar[str] = "adaptive"

    interval_seconds: Annotated[float, Positive] = 1.0
    target_seconds: Annotated[float, Positive] = 5.0
    """How long the work at hand may take; sooner asks for more workers."""

    minimum: Annotated[int, AtLeastZero] = 0
    maximum: Annotated[float, AtLeastZero] = float("inf")
    wait_count: Annotated[int, Positive] = 3
    """A worker is closed once this many looks in a row say so."""


class Shuffle(Settings, frozen=True, kw_only=True):
    """All-to-all exchange between workers."""

    path: ClassVar[str] = "shuffle"

    send_bytes_max: Annotated[int, Positive] = GIB
    """Shards that wait to be sent, per worker."""

    message_bytes_max: Annotated[int, Positive] = 2 * MIB
    """Shards in one message."""

    senders_max: Annotated[int, Positive] = 10
    """Messages under way at once, per worker."""

    disk_bytes_max: Annotated[int, Positive] = 100 * MIB
    """Shards that wait to be written, per worker."""

    disk: bool = True
    """Keep shards on disk rather than in memory."""


class Histories(Settings, frozen=True, kw_only=True):
    """What is remembered, and how much of it."""

    path: ClassVar[str] = "histories"

    error_bytes_max: Annotated[int, Positive] = 10_000
    """Longest text of an exception or a traceback that is kept."""

    log_records_max: Annotated[int, Positive] = 10_000
    """Log records kept in memory by each process."""

    story_records_max: Annotated[int, Positive] = 1_000
    """Events kept per topic, and transitions in a report."""

    computations_max: Annotated[int, AtLeastZero] = 100
    errors_max: Annotated[int, AtLeastZero] = 100


class Dashboard(Settings, frozen=True, kw_only=True):
    """The web page and the metrics."""

    path: ClassVar[str] = "dashboard"

    link: str = "{scheme}://{host}:{port}/status"
    """How to write the page's address; any environment variable may be named as well."""

    hosts: list[str] = []
    """Names of proxies that lead to a page on loopback; under other names it is not served."""

    prometheus_namespace: str = "dask"
    """First word of every metric."""

    graph_tasks_max: Annotated[int, Positive] = 5_000
    """A graph with more tasks isn't drawn."""


S = TypeVar("S", bound=Settings)

_UNSET: Any = object()
_OLD_NAMES = {new: old for old, new in LEGACY.items()}


def read(section: type[S], **overrides: object) -> S:
    """The settings of `section` as they are now; an override that isn't None wins.

    Args:
        section: one of the classes above.
        overrides: by field name; what a program passed as an argument.

    Raises:
        SettingError: a value of the wrong type or out of range, or a name that doesn't exist.

    Cost: some microseconds per field; meant for the start of a service.
    """
    fields = {field.name: field for field in msgspec.structs.fields(section)}
    _refuse_unknown(section, [field.encode_name for field in fields.values()])
    found: dict[str, Any] = {}
    for name, field in fields.items():
        override = overrides.pop(name, None)
        full_name, value = _lookup(f"{section.path}.{field.encode_name}")
        if override is not None:
            full_name, value = name, override
        if value is not _UNSET:
            found[name] = _convert(full_name, name, field.type, value)
    if overrides:
        raise TypeError(f"{section.__name__} has no setting {', '.join(overrides)}")
    return section(**found)


def _lookup(new: str) -> tuple[str, Any]:
    """Under which name the setting was given, and its value."""
    full_name = f"shoal.{new}"
    value = dask.config.get(full_name, default=_UNSET)
    if value is _UNSET and new in _OLD_NAMES:
        full_name = f"distributed.{_OLD_NAMES[new]}"
        value = dask.config.get(full_name, default=_UNSET)
    return full_name, value


def _convert(full_name: str, name: str, wanted: Any, value: Any) -> Any:
    """`value` as the field's type: texts with units become numbers, False becomes None."""
    choices = get_args(wanted)
    may_be_off = type(None) in choices and bool not in choices
    try:
        if value is False and may_be_off:
            return None
        if value is not None and "_seconds" in name:
            value = to_seconds(value)
        elif value is not None and "_bytes" in name:
            value = to_nbytes(value)
        elif name == "default_task_durations":
            value = {prefix: to_seconds(duration) for prefix, duration in dict(value).items()}
        elif name == "preload" and isinstance(value, str):
            value = [value]
        return msgspec.convert(value, wanted, strict=False)
    except (ValueError, TypeError) as error:
        raise SettingError(
            full_name,
            f"it is {value!r}, and that is not valid ({error})",
            "Change it where it is set: a YAML file, the environment, or dask.config.set.",
        ) from error


def _refuse_unknown(section: type[Settings], known: list[str]) -> None:
    """A misspelt name would otherwise be ignored in silence, and its default used."""
    given = dask.config.get(f"shoal.{section.path}", default={})
    if not isinstance(given, Mapping):
        return
    below = f"{section.path}."
    subsections = {s.path[len(below) :].split(".")[0] for s in SECTIONS if s.path.startswith(below)}
    for name in given:
        canonical = str(name).replace("_", "-")
        if canonical not in known and canonical not in subsections:
            near = get_close_matches(canonical, known, n=1)
            raise SettingError(
                f"shoal.{section.path}.{name}",
                "there is no such setting",
                f"Did you mean {near[0]}?" if near else f"There are: {', '.join(known)}.",
            )


SECTIONS: tuple[type[Settings], ...] = (
    Comm,
    Tls,
    Scheduler,
    Stealing,
    Replicas,
    Leases,
    Worker,
    Memory,
    Profile,
    Nanny,
    Client,
    Adaptive,
    Shuffle,
    Histories,
    Dashboard,
)
"""Every section; the manual's table is made from it."""
