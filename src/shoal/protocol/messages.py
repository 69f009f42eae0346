"""What crosses the wire for the sake of tasks and of connections, by direction.

Rules for whoever edits this or another subject's file: fields are only ever added, at the end and
with a default; a tag is never used twice; a class has one handler per receiving role, `on_<its
name>`, and one row in SUBJECT for each direction.  `directions.py` has all subjects.  What users
own (functions, arguments, values, exceptions) is bytes here, and nobody but the two ends opens it.

Free tags: 11 to 19 from clients, 25 to 39 to clients, 50 to 59 from workers, 68 to 79 to workers,
83 to 99 between workers.
"""

import msgspec

from shoal.ids import ClientTaskId, CodeId, Epoch, Key, RunId, TaskId
from shoal.protocol.subject import UNANSWERED, Subject


class Message(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Anything that crosses the wire: an array that starts with its tag."""


class Part(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A piece of a message, never sent by itself."""


class Failure(Part, frozen=True):
    """An exception on its way to a user.  Made and opened at the edges, opaque in between."""

    exception: bytes  # pickled exception with its traceback; b"" if only the text could be saved
    text: str  # "ValueError: not this way", for logs, views and errors about errors
    traceback_text: str = ""  # as Python would have printed it
    origin: Key = Key("")  # the task that raised it; dependents fail with the same failure
    worker: str = ""  # where it was raised


class TaskOptions(Part, frozen=True):
    """What a user may say about tasks."""

    priority: float = 0.0  # larger is sooner
    retries: int = 0  # runs that may fail before the task does
    workers: list[str] = []  # addresses, names or hosts that may run it; [] = any
    allow_other_workers: bool = False  # `workers` is a preference only
    resources: dict[str, float] = {}  # abstract amounts held while it runs
    actor: bool = False
    executor: str = ""  # which of the worker's; "" = its threads
    inside: Key = Key("")  # the task whose code submits it; "" = none
    limits: dict[str, int] = {}  # how many of this name may run at once; 0 = as is set elsewhere
    memory: int = 0  # bytes by which a worker grows for a run; 0 = nobody has said
    timeout: float = 0.0  # seconds that a run may take; 0 = as long as it likes


# --- client -> scheduler ---------------------------------------------------------------------


class RegisterClient(Message, frozen=True, tag=1):
    """A client introduces itself; answered by ClientWelcome."""

    name: str
    versions: dict[str, str] = {}
    watches_members: bool = False  # tell it of workers that come and go, as `looking` has it
    share: float = 1.0  # its weight beside other clients
    returning: bool = False  # it was here before, or with a scheduler that was lost
    workers: list[str] = []  # addresses of those that it knew then, if it comes back
    may_return: bool = False  # it looks for a scheduler that it has lost, and says all again


class DefineClientCode(Message, frozen=True, tag=2):
    """What the client will call `code` from now on: a pickled function or a bundle of tasks.

    Held for the client until it says ForgetClientCode, and as long as a task needs it.
    """

    code: CodeId
    payload: bytes


class ForgetClientCode(Message, frozen=True, tag=3):
    """The client will not submit anything with these again."""

    codes: list[CodeId]


class SubmitTasks(Message, frozen=True, tag=4):
    """New tasks in columns, dependencies before dependents, sooner ones first.

    Task `i` has the client's number `first + i`.  A large graph arrives in slices, so that its
    first tasks run while the rest is on its way; what later slices refer to is held until one of
    them lets go of it.  A task of a graph that is neither wanted nor held is needed by its
    dependents only.  A key that the scheduler knows keeps its first run spec.
    """

    first: ClientTaskId
    keys: list[Key]
    codes: list[CodeId]  # one for each task, or one for all
    arguments: list[bytes | int]  # pickled (args, kwargs) of a function, or the index in a bundle
    dependencies: list[
        list[ClientTaskId]
    ]  # one list for each task, or [] if none has any; distinct
    prefixes: list[str]  # names of prefixes
    prefix_indices: list[int]  # one into `prefixes` for each task, or [] if all are of the first
    options: TaskOptions | None = None
    wanted: list[int] | None = None  # indices of tasks whose results the client wants; None: all
    held: list[int] = []  # indices of tasks that later slices of the graph refer to
    let_go: list[ClientTaskId] = []  # held tasks that no slice after this one refers to
    graph: ClientTaskId | None = None  # number of the first task of the graph; None: no slices
    ntasks_ahead: int = 0  # tasks of the graph that are still to come after this message
    other_options: list[TaskOptions] = []  # of tasks for which `options` do not hold
    option_indices: list[int] = []  # 0: `options`, n: other_options[n - 1]; []: all `options`


class WantKey(Message, frozen=True, tag=6):
    """The client wants a result it knows only by name (a future that came from elsewhere)."""

    task: ClientTaskId
    key: Key


class ReleaseTasks(Message, frozen=True, tag=7):
    """The client no longer wants these."""

    tasks: list[ClientTaskId]


class CancelTasks(Message, frozen=True, tag=8):
    """End these and what depends on them; those that other clients want go on, unless forced."""

    tasks: list[ClientTaskId]
    force: bool = False
    reason: str = ""


class ClientHeartbeat(Message, frozen=True, tag=9):
    """The client lives."""


# --- scheduler -> client ---------------------------------------------------------------------


class ClientWelcome(Message, frozen=True, tag=20):
    """The client is registered; integers that follow are of this epoch."""

    epoch: Epoch
    scheduler_id: str = ""
    versions: dict[str, str] = {}
    services: dict[str, int] = {}  # what else the scheduler's process serves -> its port
    started_at: float = 0.0  # seconds since the epoch
    workers_versions: dict[str, dict[str, str]] = {}  # of those that have others than the client


class TaskInMemory(Message, frozen=True, tag=21):
    """A wanted result exists: here, if it is small, or at `holders`."""

    task: ClientTaskId
    id: TaskId  # what to ask the holders for
    nbytes: int
    value: bytes | None = None  # pickled, if small
    holders: list[str] = []
    kind: str = ""  # "module.qualname" of its type, if not `value`


class TaskErred(Message, frozen=True, tag=22):
    """A wanted task, or something it depends on, failed."""

    task: ClientTaskId
    failure: Failure


class TaskLost(Message, frozen=True, tag=23):
    """A wanted result has gone with its workers; it is being computed again."""

    task: ClientTaskId


class TaskCancelled(Message, frozen=True, tag=24):
    """There will be no result: cancelled, or the key is not known."""

    task: ClientTaskId
    reason: str


# --- worker -> scheduler ---------------------------------------------------------------------


class InventoryItem(Part, frozen=True):
    """One replica that a worker still holds from before its connection broke."""

    task: TaskId  # below 0: of the worker's own, as the epoch that it was of is over
    key: Key
    nbytes: int


class RunningItem(Part, frozen=True):
    """A run that goes on since before the connection broke; nobody waits for its answer."""

    task: TaskId  # as in the inventory
    key: Key


class RegisterWorker(Message, frozen=True, tag=40):
    """A worker introduces itself, and what it holds; answered by WorkerWelcome or Shutdown."""

    address: str  # where peers and clients reach it
    name: str
    nthreads: int
    memory_limit: int  # bytes; 0 = unlimited
    pid: int = 0
    host: str = ""
    epoch: Epoch = Epoch(0)  # of the inventory; 0 = it was never registered
    inventory: list[InventoryItem] = []
    resources: dict[str, float] = {}
    versions: dict[str, str] = {}
    predecessor: int = 0  # process id, on the same host, of the one whose place it takes
    predecessor_death: str = ""  # how that one ended, for people
    local_directory: str = ""  # where its tasks may leave files; it need not be there yet
    nanny: str = ""  # who keeps its process, if that can be reached
    services: dict[str, int] = {}  # what else its process serves -> the port
    has_nanny: bool = False  # somebody starts another in its place if he is asked to
    predecessor_memory_bytes: int = 0  # that one's, if that is what it was ended for; else 0
    predecessor_limit_bytes: int = 0  # what that one was allowed
    executing: list[RunningItem] = []
    keeps_orphans: bool = False  # what it has of an epoch that is over goes on, by key


class TaskFinished(Message, frozen=True, tag=41):
    """The run ended well; the result is in this worker's memory."""

    task: TaskId
    run: RunId
    nbytes: int
    seconds: float  # inside the user's function, waits included
    value: bytes | None = None  # the result itself, pickled, if small
    kind: str = ""  # "module.qualname" of its type, if not `value`
    started_at: float = 0.0  # wall clock of the worker, for display only


class TaskFailed(Message, frozen=True, tag=42):
    """The run raised, or could not be started (its code or an input can't be read)."""

    task: TaskId
    run: RunId
    failure: Failure
    seconds: float = 0.0
    immovable: list[TaskId] = []  # inputs that can't be sent or read: it may run where they are


class RunReturned(Message, frozen=True, tag=43):
    """The run was recalled before it started: it never ran; or it was ended, as it was unwanted."""

    task: TaskId
    run: RunId


class InputsUnavailable(Message, frozen=True, tag=44):
    """The run can't start: no holder gave these inputs.  It never ran.

    Or it has run, as an unpack, and these are transfers whose shards it did not get.
    """

    task: TaskId
    run: RunId
    missing: list[TaskId]
    unreachable: list[str] = []  # holders that could not be reached; the others just lack it
    lacking: list[str] = []  # holders that lack it, of what is no input of the task: shards


class ReplicasAdded(Message, frozen=True, tag=45):
    """This worker now holds copies of these: fetched as inputs, or put there by a client."""

    tasks: list[TaskId]
    nbytes: list[int]


class ReplicasGone(Message, frozen=True, tag=46):
    """This worker no longer holds these, though it was not told to free them."""

    tasks: list[TaskId]


class WorkerHeartbeat(Message, frozen=True, tag=47):
    """The worker lives."""

    memory_bytes: int = 0  # of its process
    nexecuting: int = 0
    nwaiting: int = 0  # tasks that wait for others' results; their threads have substitutes
    cpu_percent: float = 0.0  # of one CPU, since the last one
    managed_bytes: int = 0  # of results in memory, as they were measured
    spilled_bytes: int = 0  # of results that are on disk only, as they were measured in memory
    spilled_disk_bytes: int = 0  # of the files that hold them
    unmanaged_old_bytes: int = 0  # of the process, what is no result and has been there for long
    container_bytes: int = 0  # of all that share its container's memory, if that is limited
    container_limit_bytes: int = 0
    runs: list[RunId] = []  # that have been executing since an earlier one, the longest first
    run_seconds: list[float] = []  # for so long at least, in the same order
    received_bytes: int = -1  # from the scheduler, by the connection that there is; -1: not told
    heard: int = 0  # the latest `AskHearing` of that connection; 0: none has come


class WorkerLeaving(Message, frozen=True, tag=48):
    """The worker is about to close by itself, so what it was running is nobody's fault."""

    reason: str = ""


class VouchForWorker(Message, frozen=True, tag=49):
    """A nanny says that the process of its worker lives, which can't say so itself just now.

    It is all that is said on a connection of its own, in place of a registration.
    """

    address: str  # of the worker
    pid: int


# --- scheduler -> worker ---------------------------------------------------------------------


class WorkerWelcome(Message, frozen=True, tag=60):
    """The worker is registered; integers that follow are of this epoch."""

    epoch: Epoch
    worker_id: int
    heartbeat_seconds: float
    inline_bytes_max: int = 1024  # results up to this size travel with TaskFinished


class DefineCode(Message, frozen=True, tag=61):
    """A function or bundle that runs will call.  Said once to each worker, before the first use."""

    code: CodeId
    payload: bytes


class ForgetCode(Message, frozen=True, tag=62):
    """No run will call these again."""

    codes: list[CodeId]


class Input(Part, frozen=True):
    """A dependency that this worker does not hold: inline, or to be fetched."""

    task: TaskId
    key: Key
    nbytes: int
    holders: list[str] = []  # nearest first
    value: bytes | None = None  # the result itself, pickled, if small


class RunTask(Message, frozen=True, tag=63):
    """Run it once its inputs are local.

    Ends in exactly one of TaskFinished, TaskFailed, RunReturned, InputsUnavailable, or the loss of
    this worker.
    """

    task: TaskId
    run: RunId  # fencing token: an answer with another one is stale, and changes nothing
    key: Key
    code: CodeId
    argument: bytes | int  # pickled (args, kwargs) of a function, or the index in a bundle
    urgency: float  # of ready runs the most urgent starts first,
    sequence: int  # then the lowest sequence
    inputs: list[TaskId | Input] = []  # in the order of the arguments; an int is held here already


class RecallRuns(Message, frozen=True, tag=64):
    """Give these back if they have not started (RunReturned); else go on as if nothing was said.

    Those that have started and have a timeout are ended, and given back too, if nobody wants them.
    """

    runs: list[tuple[TaskId, RunId]]
    unwanted: bool = False  # nobody wants what they give; False: it may still be of use


class AskHearing(Message, frozen=True, tag=455):
    """Say in your signs of life that this has come."""

    number: int


class FreeReplicas(Message, frozen=True, tag=65):
    """Drop these from memory."""

    tasks: list[TaskId]


class AcquireReplicas(Message, frozen=True, tag=66):
    """Fetch copies of these and keep them; answered by ReplicasAdded as they arrive."""

    inputs: list[Input]


class Shutdown(Message, frozen=True, tag=67):
    """Close: end what runs, if it can be ended, and go."""

    reason: str


# --- to a worker from its peers and from clients, and back -----------------------------------


class ReplicaHeader(Part, frozen=True):
    """How to read one value whose large buffers follow the message, in order."""

    task: TaskId
    key: Key
    nbytes: int
    header: bytes  # pickle stream that refers to the buffers
    nbuffers: int


class GetReplicas(Message, frozen=True, tag=80):
    """Send these values; answered by Replicas."""

    request: int
    tasks: list[TaskId]
    epoch: Epoch = Epoch(0)  # in which the numbers mean something; in another they are missing
    accepts: list[str] = []  # ways in which large buffers may be compressed, the best first


class Replicas(Message, frozen=True, tag=81):
    """The values asked for, with their buffers out of band; `failed` could not be serialised."""

    request: int
    replicas: list[ReplicaHeader]
    missing: list[TaskId] = []
    failed: list[tuple[TaskId, Failure]] = []
    marks: list[tuple[str, int]] = []
    """How each buffer was compressed, and its bytes without that; [] = none was."""


class PutReplicas(Message, frozen=True, tag=82):
    """Keep these values (scattered by a client), their buffers out of band.

    Answered by Answer, or by Refusal if the worker is in another epoch, or in none just now.
    """

    request: int
    replicas: list[ReplicaHeader]
    epoch: Epoch = Epoch(0)


SUBJECT = Subject(
    from_client={
        RegisterClient: UNANSWERED,
        DefineClientCode: UNANSWERED,
        ForgetClientCode: UNANSWERED,
        SubmitTasks: UNANSWERED,
        WantKey: UNANSWERED,
        ReleaseTasks: UNANSWERED,
        CancelTasks: UNANSWERED,
        ClientHeartbeat: UNANSWERED,
    },
    to_client={
        ClientWelcome: UNANSWERED,
        TaskInMemory: UNANSWERED,
        TaskErred: UNANSWERED,
        TaskLost: UNANSWERED,
        TaskCancelled: UNANSWERED,
        Replicas: UNANSWERED,
        Shutdown: UNANSWERED,
    },
    from_worker={
        RegisterWorker: UNANSWERED,
        TaskFinished: UNANSWERED,
        TaskFailed: UNANSWERED,
        RunReturned: UNANSWERED,
        InputsUnavailable: UNANSWERED,
        ReplicasAdded: UNANSWERED,
        ReplicasGone: UNANSWERED,
        WorkerHeartbeat: UNANSWERED,
        WorkerLeaving: UNANSWERED,
        VouchForWorker: UNANSWERED,
    },
    to_worker={
        WorkerWelcome: UNANSWERED,
        DefineCode: UNANSWERED,
        ForgetCode: UNANSWERED,
        RunTask: UNANSWERED,
        RecallRuns: UNANSWERED,
        AskHearing: UNANSWERED,
        FreeReplicas: UNANSWERED,
        AcquireReplicas: UNANSWERED,
        Shutdown: UNANSWERED,
    },
    from_peer={GetReplicas: Replicas, PutReplicas: None},
    to_peer={Replicas: UNANSWERED},
)
