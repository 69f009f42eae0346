"""What clients ask about the cluster and its tasks; nothing changes by it.

Free tags: 127 to 129, and 280 to 299, which metadata, topics and logs use too.
"""

from shoal.ids import Key
from shoal.protocol.messages import Message, Part
from shoal.protocol.subject import Subject


class WhoHas(Message, frozen=True, tag=110):
    """Key -> addresses of the workers that hold it, of `keys`, or of all that are in memory."""

    request: int
    keys: list[Key] | None = None


class HasWhat(Message, frozen=True, tag=111):
    """Worker -> keys that it holds."""

    request: int
    workers: list[str] | None = None


class NThreads(Message, frozen=True, tag=112):
    """Worker -> its number of threads."""

    request: int
    workers: list[str] | None = None


class SchedulerIdentity(Message, frozen=True, tag=113):
    """What the scheduler and its workers are."""

    request: int
    nworkers: int = -1  # describe so many of the workers; -1: all


class WorkerIdentity(Part, frozen=True):
    """A worker as `scheduler_info()` shows it."""

    address: str
    id: int
    name: str
    host: str
    nthreads: int
    memory_limit: int
    pid: int
    resources: dict[str, float] = {}
    status: str = "running"
    nprocessing: int = 0  # tasks that were given to it
    nbytes: int = 0  # of the results that it holds
    nresults: int = 0  # that it holds
    nsent: int = 0  # runs that it has been sent and not answered
    memory_bytes: int = 0  # of its process
    cpu_percent: float = 0.0  # of one CPU
    received_bytes: int = 0  # of results that came from elsewhere, in all its life
    heard_at: float = 0.0  # wall clock, for display
    local_directory: str = ""
    nanny: str = ""  # whoever keeps its process; nanny+<its address>: reached through it
    services: dict[str, int] = {}
    nlong_running: int = 0  # runs that have seceded
    spilled_bytes: int = 0  # of `nbytes`: on disk only
    spilled_disk_bytes: int = 0  # of the files that hold those
    unmanaged_old_bytes: int = 0  # of its process: no result, and there for long
    container_bytes: int = 0  # of all that share its container's memory, if that is limited
    container_limit_bytes: int = 0


class Identity(Part, frozen=True):
    """A scheduler as `scheduler_info()` shows it."""

    id: str
    address: str
    started_at: float  # wall clock, for display
    workers: list[WorkerIdentity]
    services: dict[str, int] = {}
    nworkers: int = 0  # all, described or not
    total_nthreads: int = 0
    total_memory: int = 0


class Story(Message, frozen=True, tag=118):
    """The recorded transitions of these keys, oldest first."""

    request: int
    keys: list[Key]
    causes: list[tuple[str, int]] = []  # those of these steps as well: what was said, which step


class Transition(Part, frozen=True):
    """One change of a task's state, as the story keeps it."""

    at: float  # monotonic seconds of the scheduler
    key: Key
    start: str
    finish: str
    cause: str
    step: int  # which application of the machine
    why: int = 0  # of a placement, where and for what reason


class TaskStates(Message, frozen=True, tag=124):
    """Key -> the state of its task, of `keys` that are known, or of all."""

    request: int
    keys: list[Key] | None = None


class DescribeTasks(Message, frozen=True, tag=125):
    """All about the tasks of these keys, as far as they are known."""

    request: int
    keys: list[Key]


class TaskDescription(Part, frozen=True):
    """A task as the scheduler sees it, but for its state, which is told by TaskStates."""

    key: Key
    nbytes: int = -1  # of its result in memory; -1: not known
    kind: str = ""  # name of the type of its result, if it is known
    retries: int = 0  # runs that may still fail before it does
    blame: int = 0  # workers that died as it ran there
    run: int = 0  # number of its present run; 0: none
    holders: list[str] = []  # addresses
    placed_on: str = ""  # address; "": nowhere
    dependencies: list[Key] = []
    dependents: list[Key] = []
    error: str = ""  # its text, if it failed
    traceback: str = ""


class Processing(Message, frozen=True, tag=126):
    """Worker -> key of each task that was given to it -> seconds that it is expected to take."""

    request: int
    workers: list[str] | None = None


SUBJECT = Subject(
    from_client={
        WhoHas: dict[str, list[str]],
        HasWhat: dict[str, list[str]],
        NThreads: dict[str, int],
        SchedulerIdentity: Identity,
        Story: list[Transition],
        TaskStates: dict[str, str],
        DescribeTasks: list[TaskDescription],
        Processing: dict[str, dict[str, float]],
    },
)
