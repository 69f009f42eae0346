"""Everything that one seed decided, written out: who does what when, and what goes wrong.

A plan is a value.  `repr` of one is an expression that makes it again, so a failure can be kept as
text, and made smaller by leaving things out.
"""

from dataclasses import dataclass
from math import inf
from typing import TypeAlias

from shoal.ids import Key
from shoal.protocol.messages import TaskOptions
from shoal.sim.network import CALM, Weather
from shoal.sim.specs import TaskSpec

# --- what clients do -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Submit:
    """Submit tasks: each one wanted, or as a graph of which `wanted` is."""

    at: float
    client: int
    tasks: tuple[TaskSpec, ...]
    wanted: tuple[Key, ...] | None = None  # None: not a graph
    options: TaskOptions | None = None
    nslices: int = 1
    bundle_size: int = 1  # tasks of a graph that are pickled together


@dataclass(frozen=True, slots=True)
class Release:
    """Let go of these keys."""

    at: float
    client: int
    keys: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class Cancel:
    """Cancel these keys."""

    at: float
    client: int
    keys: tuple[Key, ...]
    force: bool = False


@dataclass(frozen=True, slots=True)
class Want:
    """Want a key by its name alone."""

    at: float
    client: int
    key: Key


@dataclass(frozen=True, slots=True)
class Scatter:
    """Put values onto workers."""

    at: float
    client: int
    values: tuple[TaskSpec, ...]
    ncopies: int = 1
    workers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ask:
    """Call the scheduler: wait for all `workers`, or ask for the `holders` of everything.

    Or, as a call to an `actor` has failed, why.
    """

    at: float
    client: int
    what: str


@dataclass(frozen=True, slots=True)
class HoldLock:
    """Acquire a lock, keep it for `seconds`, and release it."""

    at: float
    client: int
    name: str
    seconds: float
    patience_seconds: float  # how long to wait for it; 0: not at all; inf: as long as it takes
    others: tuple[str, ...] = ()  # to be held together with it: then it is a joint one


@dataclass(frozen=True, slots=True)
class Trade:
    """Put a value into a queue, or take so many out of it."""

    at: float
    client: int
    name: str
    count: int  # 0: put one
    patience_seconds: float


@dataclass(frozen=True, slots=True)
class Retry:
    """Have all tried again that has failed."""

    at: float
    client: int


@dataclass(frozen=True, slots=True)
class Replicate:
    """Have so many copies of some of what is wanted."""

    at: float
    client: int
    every: int = 1  # of so many wants, one
    ncopies: int = 0  # 0: everywhere


@dataclass(frozen=True, slots=True)
class Rebalance:
    """Have memory evened out."""

    at: float
    client: int


@dataclass(frozen=True, slots=True)
class RetireSome:
    """Have some workers let go without losing anything; others take their places."""

    at: float
    client: int
    workers: tuple[int, ...]
    patience_seconds: float


@dataclass(frozen=True, slots=True)
class Restart:
    """Have everything cancelled, and all workers replaced."""

    at: float
    client: int
    seconds: float  # in which the others must be there


@dataclass(frozen=True, slots=True)
class SetLimit:
    """Say how many tasks that have a name may run at once; None: as they say themselves."""

    at: float
    client: int
    nruns_max: int | None
    name: str = "db"


@dataclass(frozen=True, slots=True)
class Publish:
    """Publish some of what is wanted; what has the name already stays, unless it is to go."""

    at: float
    client: int
    name: str
    every: int = 1  # of so many wants, one
    override: bool = False


@dataclass(frozen=True, slots=True)
class Unpublish:
    """Let go of what the client has published under a name."""

    at: float
    client: int
    name: str


@dataclass(frozen=True, slots=True)
class Leave:
    """The client closes in good order."""

    at: float
    client: int


Act: TypeAlias = (
    Submit
    | Release
    | Cancel
    | Want
    | Scatter
    | Ask
    | HoldLock
    | Trade
    | Retry
    | Replicate
    | Rebalance
    | RetireSome
    | Restart
    | SetLimit
    | Publish
    | Unpublish
    | Leave
)

# --- what goes wrong -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Crash:
    """A worker's process dies; a new one comes at the same address after `seconds`."""

    at: float
    worker: int
    seconds: float | None = None  # None: only once all is calm


@dataclass(frozen=True, slots=True)
class Retire:
    """A worker says that it leaves, and goes; a new one comes after `seconds`.

    Every second worker says that its time is over instead, and goes when it is sent away.
    """

    at: float
    worker: int
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class BreakConnection:
    """A worker loses its scheduler, and is back with what it holds after `seconds`."""

    at: float
    worker: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Freeze:
    """A worker's process stands still for `seconds`."""

    at: float
    worker: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Deafen:
    """Nothing that its scheduler says gets to a worker for `seconds`, though all that it says does.

    Then it hears all of that; or the connection breaks, and it connects anew.
    """

    at: float
    worker: int
    seconds: float
    breaks: bool = False


@dataclass(frozen=True, slots=True)
class SlowWorker:
    """A worker's threads take `factor` times as long for `seconds`."""

    at: float
    worker: int
    factor: float
    seconds: float


@dataclass(frozen=True, slots=True)
class SlowLink:
    """All between `a` and `b` takes `factor` times as long for `seconds`."""

    at: float
    a: str
    b: str
    factor: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Stall:
    """Nothing gets from `a` to `b`, or back, for `seconds`."""

    at: float
    a: str
    b: str
    seconds: float


@dataclass(frozen=True, slots=True)
class CutPeers:
    """Two workers can't reach each other for `seconds`, though both reach the scheduler."""

    at: float
    a: int
    b: int
    seconds: float


@dataclass(frozen=True, slots=True)
class ClientDies:
    """A client's process dies, or only loses its connection."""

    at: float
    client: int
    only_connection: bool = False


@dataclass(frozen=True, slots=True)
class LetGo:
    """A client releases, or cancels, some of what it holds: no fault, but as badly timed as one."""

    at: float
    client: int
    every: int = 1  # of so many futures, one
    is_cancel: bool = False


@dataclass(frozen=True, slots=True)
class Copy:
    """A worker is told to get copies of some results that are in memory."""

    at: float
    worker: int
    every: int = 1  # of so many results, one


@dataclass(frozen=True, slots=True)
class Spill:
    """A worker's memory is short for `seconds`: whenever a value comes, `nbytes` are to go to disk.

    Of writes and reads, one in `bad_every` fails meanwhile.
    """

    at: float
    worker: int
    nbytes: int
    bad_every: int = 0  # 0: none
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Pause:
    """A worker begins nothing for `seconds`; if it `leaks`, it asks for another in its place."""

    at: float
    worker: int
    seconds: float
    leaks: bool = False


@dataclass(frozen=True, slots=True)
class RestartScheduler:
    """The scheduler's process dies, and a new one, that knows nothing, takes its place."""

    at: float


MayWait: TypeAlias = (
    Crash
    | Retire
    | BreakConnection
    | Freeze
    | Deafen
    | Stall
    | CutPeers
    | LetGo
    | Copy
    | Spill
    | Pause
)


@dataclass(frozen=True, slots=True)
class Ambush:
    """A fault that waits for an occasion: the `nth` of its kind in the run, wherever it is.

    The fault then befalls a worker that takes part in the occasion (whatever worker it names), or
    what is between the two that do.
    """

    at: float  # no sooner
    occasion: str
    nth: int
    fault: MayWait
    befalls_other: bool = False  # the second of two, e.g. the holder of what is fetched


Fault: TypeAlias = (
    Ambush
    | Crash
    | Retire
    | BreakConnection
    | Freeze
    | Deafen
    | Pause
    | SlowWorker
    | SlowLink
    | Stall
    | CutPeers
    | ClientDies
    | Copy
    | LetGo
    | Spill
    | RestartScheduler
)

# --- the whole -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WorkerPlan:
    """One place where a worker may be."""

    nthreads: int = 1
    joins_at: float = 0.0
    resources: tuple[tuple[str, float], ...] = ()
    memory_limit: int = 0  # bytes; 0 = unlimited
    room_bytes: int = 0  # what would take its process above this waits for room; 0: nothing does


@dataclass(frozen=True, slots=True)
class Plan:
    """One run, before it happens."""

    seed: int
    workers: tuple[WorkerPlan, ...]
    nclients: int
    acts: tuple[Act, ...]
    faults: tuple[Fault, ...]
    weather: Weather = CALM
    calm_at: float = 3.0  # faults end, and every worker is back
    is_encoded: bool = False  # everything said goes through the codec
    settings: tuple[tuple[str, float], ...] = ()  # of the scheduler, where not the default
    features: tuple[str, ...] = ()  # what the swarm left on, for people
    sync_seconds: float | None = None  # until what is written is on disk; None: nothing is

    @property
    def memory_max(self) -> float:
        """Bytes of which every worker is known to have no more; infinite if none is limited."""
        return min([worker.memory_limit or inf for worker in self.workers], default=inf)

    @property
    def ntasks(self) -> int:
        """How many tasks are submitted in all."""
        return sum(len(act.tasks) for act in self.acts if isinstance(act, Submit))


def from_text(text: str) -> Plan:
    """The plan whose `repr` the text is.  It is evaluated, so it must be one's own.

    Raises:
        NameError, SyntaxError, TypeError: it isn't the text of a plan of this version.
    """
    names = dict(globals(), inf=inf)
    plan = eval(text, names)
    if not isinstance(plan, Plan):
        raise TypeError(f"the text is not of a plan, but of a {type(plan).__name__}")
    return plan
