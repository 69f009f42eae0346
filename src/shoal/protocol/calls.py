"""Requests and the answers to them.

A call is answered by exactly one Answer or Refusal with its `request` number, on the same
connection.  The type of an answer's value stands beside the call, in `ANSWERS`.
"""

from typing import Any, Final

import msgspec

from shoal.ids import ClientTaskId, Key, TaskId
from shoal.protocol.messages import (
    AcquireReplicas,
    CancelTasks,
    ClientHeartbeat,
    ClientWelcome,
    DefineClientCode,
    DefineCode,
    Failure,
    ForgetClientCode,
    ForgetCode,
    FreeReplicas,
    GetReplicas,
    InputsUnavailable,
    Message,
    Part,
    PutReplicas,
    RecallRuns,
    RegisterClient,
    RegisterWorker,
    ReleaseLock,
    ReleaseTasks,
    Replicas,
    ReplicasAdded,
    ReplicasGone,
    RunReturned,
    RunTask,
    Shutdown,
    SubmitTasks,
    TaskCancelled,
    TaskErred,
    TaskFailed,
    TaskFinished,
    TaskInMemory,
    TaskLost,
    WantKey,
    WorkerHeartbeat,
    WorkerLeaving,
    WorkerWelcome,
)


class Answer(Message, frozen=True, tag=100):
    """The value a call asked for."""

    request: int
    value: msgspec.Raw = msgspec.Raw(b"\xc0")  # msgpack; of the type in ANSWERS


class Refusal(Message, frozen=True, tag=101):
    """The call failed, and why."""

    request: int
    failure: Failure


# --- client -> scheduler ---------------------------------------------------------------------


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


class AwaitWorkers(Message, frozen=True, tag=114):
    """Answered once at least `nworkers` workers are connected."""

    request: int
    nworkers: int


class PlaceScatter(Message, frozen=True, tag=115):
    """Where shall these values go?  They are wanted from now on, under the client's numbers.

    Keys that are in memory already are answered with no workers: there is nothing to send.
    """

    request: int
    first: ClientTaskId  # number of the first key; the others follow
    keys: list[Key]
    nbytes: list[int]
    workers: list[str] = []  # addresses, names or hosts that may take them; [] = any
    ncopies: int = 1  # 0 = one on each of the workers
    again: bool = False  # a worker did not take them; numbers that are not wanted any more are not


class RunOnScheduler(Message, frozen=True, tag=116):
    """Call a function in the scheduler's process; `dask_scheduler=` is given if it takes it."""

    request: int
    payload: bytes  # pickled (function, args, kwargs)
    wait: bool = True


class RunOnWorkers(Message, frozen=True, tag=117):
    """Call a function in workers' processes, outside the task system; `workers` None = all."""

    request: int
    payload: bytes  # pickled (function, args, kwargs)
    workers: list[str] | None = None
    wait: bool = True


class Story(Message, frozen=True, tag=118):
    """The recorded transitions of these keys, oldest first."""

    request: int
    keys: list[Key]


class TerminateCluster(Message, frozen=True, tag=119):
    """Close every worker, then the scheduler."""

    request: int


class CloseWorkers(Message, frozen=True, tag=120):
    """Let these workers (addresses or names) go; what they ran is run elsewhere, without blame."""

    request: int
    workers: list[str]


class FetchThroughScheduler(Message, frozen=True, tag=121):
    """The scheduler fetches these values from their holders for a client that can't reach them.

    Answered by Replicas.
    """

    request: int
    tasks: list[TaskId]


class AcquireLock(Message, frozen=True, tag=122):
    """Answered True once `claim` holds the lock; False if it was taken and the claim waits not,
    or ReleaseLock ended it before its turn came."""

    request: int
    name: str
    claim: int  # the client's number for it, used once
    waits: bool = True


class IsLocked(Message, frozen=True, tag=123):
    """Whether somebody holds the lock."""

    request: int
    name: str


class TaskStates(Message, frozen=True, tag=124):
    """Key -> the state of its task, of `keys` that are known, or of all."""

    request: int
    keys: list[Key] | None = None


class DescribeTasks(Message, frozen=True, tag=125):
    """All about the tasks of these keys, as far as they are known."""

    request: int
    keys: list[Key]


class Processing(Message, frozen=True, tag=126):
    """Worker -> key of each task that was given to it -> seconds that it is expected to take."""

    request: int
    workers: list[str] | None = None


# --- scheduler -> worker ---------------------------------------------------------------------


class RunFunction(Message, frozen=True, tag=140):
    """Call a function beside the tasks; `dask_worker=` is given if it takes it."""

    request: int
    payload: bytes  # pickled (function, args, kwargs)
    wait: bool = True


# --- answers ---------------------------------------------------------------------------------


class Placement(Part, frozen=True):
    """Where one scattered value shall go, and the number to put it under."""

    task: TaskId
    workers: list[str]


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


class Identity(Part, frozen=True):
    """A scheduler as `scheduler_info()` shows it."""

    id: str
    address: str
    started_at: float  # wall clock, for display
    workers: list[WorkerIdentity]
    services: dict[str, int] = {}


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


class Outcome(Part, frozen=True):
    """What one worker made of RunFunction: a pickled value, or a failure."""

    value: bytes = b""
    failure: Failure | None = None


class Transition(Part, frozen=True):
    """One change of a task's state, as the story keeps it."""

    at: float  # monotonic seconds of the scheduler
    key: Key
    start: str
    finish: str
    cause: str
    step: int  # which application of the machine


ANSWERS: Final[dict[type[Message], Any]] = {
    WhoHas: dict[str, list[str]],
    HasWhat: dict[str, list[str]],
    NThreads: dict[str, int],
    SchedulerIdentity: Identity,
    AwaitWorkers: int,
    PlaceScatter: list[Placement],
    RunOnScheduler: Outcome,
    RunOnWorkers: dict[str, Outcome],
    Story: list[Transition],
    TerminateCluster: None,
    CloseWorkers: list[str],
    TaskStates: dict[str, str],
    DescribeTasks: list[TaskDescription],
    Processing: dict[str, dict[str, float]],
    AcquireLock: bool,
    IsLocked: bool,
    RunFunction: Outcome,
    PutReplicas: None,
}

Call = (
    WhoHas
    | HasWhat
    | NThreads
    | SchedulerIdentity
    | AwaitWorkers
    | PlaceScatter
    | RunOnScheduler
    | RunOnWorkers
    | Story
    | TerminateCluster
    | CloseWorkers
    | FetchThroughScheduler
    | TaskStates
    | DescribeTasks
    | Processing
    | AcquireLock
    | IsLocked
)

ClientToScheduler = (
    RegisterClient
    | DefineClientCode
    | ForgetClientCode
    | SubmitTasks
    | WantKey
    | ReleaseTasks
    | CancelTasks
    | ClientHeartbeat
    | ReleaseLock
    | Call
)
SchedulerToClient = (
    ClientWelcome
    | TaskInMemory
    | TaskErred
    | TaskLost
    | TaskCancelled
    | Answer
    | Refusal
    | Replicas
    | Shutdown
)
WorkerToScheduler = (
    RegisterWorker
    | TaskFinished
    | TaskFailed
    | RunReturned
    | InputsUnavailable
    | ReplicasAdded
    | ReplicasGone
    | WorkerHeartbeat
    | WorkerLeaving
    | Answer
    | Refusal
)
SchedulerToWorker = (
    WorkerWelcome
    | DefineCode
    | ForgetCode
    | RunTask
    | RecallRuns
    | FreeReplicas
    | AcquireReplicas
    | RunFunction
    | Shutdown
)
ToWorkerFromPeer = GetReplicas | PutReplicas
FromWorkerToPeer = Replicas | Answer | Refusal

_encoder = msgspec.msgpack.Encoder()


def answer(request: int, value: object) -> Answer:
    """An Answer with `value` (builtin types or Parts) encoded."""
    return Answer(request, msgspec.Raw(_encoder.encode(value)))


def answered(call: type[Message], reply: Answer) -> Any:
    """The value of an answer to `call`, of the type that ANSWERS declares.

    Raises:
        msgspec.ValidationError: it is of another type, so the two ends are of different versions.
    """
    return msgspec.msgpack.decode(reply.value, type=ANSWERS[call])
