"""What clients and tasks agree on by name, beside the tasks: locks, events, queues, variables,
channels.

A claim is one attempt to hold, to wait for or to hand over something; the client numbers its claims
and uses each number once.  `by` is the key of the task that attempts it, "" if none does.  Values
are pieces that nobody here opens: a pickle, and its large buffers; `keys` are of the futures in it.
A name is in its canonical form, as a key is: it need not be a text.
Free tags: 225 to 239.
"""

from shoal.ids import Key
from shoal.protocol.messages import Message, Part
from shoal.protocol.subject import UNANSWERED, Subject

# --- locks, which several claims may hold if it is a semaphore -----------------------------------


class AcquireLock(Message, frozen=True, tag=122):
    """Answered True once `claim` holds the lock; False if it was taken and the claim waits not,
    or ReleaseLock ended it before its turn came."""

    request: int
    name: str
    claim: int  # the client's number for it, used once
    waits: bool = True


class ReleaseLock(Message, frozen=True, tag=10):
    """End a claim to a lock, whether it is held or still waited for; see AcquireLock."""

    name: str
    claim: int


class IsLocked(Message, frozen=True, tag=123):
    """Whether somebody holds the lock."""

    request: int
    name: str


class AcquireLease(Message, frozen=True, tag=200):
    """As AcquireLock, of what so many claims may hold at once; ReleaseLock ends it too.

    Refused if it is known with another number, or must be known and is not.
    """

    request: int
    name: str
    claim: int
    leases_max: int = 1
    waits: bool = True
    by: str = ""
    registers: bool = False  # as RegisterLock does
    must_exist: bool = False


class RegisterLock(Message, frozen=True, tag=201):
    """Have it known, held or not, for as long as this client is there and nobody closes it."""

    request: int
    name: str
    leases_max: int


class CountLeases(Message, frozen=True, tag=202):
    """How many claims hold it."""

    request: int
    name: str


class CloseLock(Message, frozen=True, tag=203):
    """Forget it; how many claims held it, which hold it no more.  Who waits for it is refused."""

    request: int
    name: str


class AcquireJointly(Message, frozen=True, tag=204):
    """Answered True once `claim` holds `count` of these names, all of them together; False as for
    AcquireLock.  These names are no locks of AcquireLock."""

    request: int
    names: list[str]
    claim: int
    count: int
    waits: bool = True
    by: str = ""


class ReleaseJointly(Message, frozen=True, tag=205):
    """End a claim of AcquireJointly, whether it is held or still waited for."""

    claim: int


# --- events --------------------------------------------------------------------------------------


class AwaitEvent(Message, frozen=True, tag=206):
    """Answered True once the event is set; False if EndWait came first."""

    request: int
    name: str
    claim: int
    by: str = ""


class EndWait(Message, frozen=True, tag=207):
    """Wait for the event no longer; see AwaitEvent."""

    name: str
    claim: int


class SetEvent(Message, frozen=True, tag=208):
    """Set or clear the event; answered once that is done."""

    request: int
    name: str
    is_set: bool


class IsEventSet(Message, frozen=True, tag=209):
    """Whether the event is set."""

    request: int
    name: str


# --- queues and variables ------------------------------------------------------------------------


class SharedValue(Part, frozen=True):
    """What a queue or a variable has kept."""

    value: list[bytes]
    has_futures: bool = False


class PutInQueue(Message, frozen=True, tag=210):
    """Answered True once the value is in the queue; False if EndPut came first.

    Refused if a key is not known, and so can't be kept.
    """

    request: int
    name: str
    claim: int
    value: list[bytes]
    keys: list[Key] = []
    size_max: int = 0  # of the queue; 0: as others say, or no limit
    by: str = ""


class EndPut(Message, frozen=True, tag=211):
    """Put it no more, unless it is in the queue already; see PutInQueue."""

    name: str
    claim: int


class TakeFromQueue(Message, frozen=True, tag=212):
    """Answered with so many values once there are so many; they are back in the queue unless
    EndTake says that they were received."""

    request: int
    name: str
    claim: int
    count: int = 1  # 0: all that there are, now
    size_max: int = 0
    by: str = ""


class EndTake(Message, frozen=True, tag=213):
    """The values of TakeFromQueue were received; or nobody waits for them any more."""

    name: str
    claim: int
    is_received: bool


class QueueSize(Message, frozen=True, tag=214):
    """How many values are in the queue."""

    request: int
    name: str


class CloseQueue(Message, frozen=True, tag=215):
    """This client is done with the queue, which goes if no other uses it."""

    name: str


class SetVariable(Message, frozen=True, tag=216):
    """Give the variable a value; answered once that is done, or refused as PutInQueue is."""

    request: int
    name: str
    value: list[bytes]
    keys: list[Key] = []


class GetVariable(Message, frozen=True, tag=217):
    """Answered once the variable has a value; its futures are kept until EndGet."""

    request: int
    name: str
    claim: int
    by: str = ""


class EndGet(Message, frozen=True, tag=218):
    """The futures in the value of GetVariable were received; or nobody waits for it any more."""

    name: str
    claim: int


class DeleteVariable(Message, frozen=True, tag=219):
    """The variable has no value any more."""

    name: str


# --- channels ------------------------------------------------------------------------------------


class Subscribe(Message, frozen=True, tag=220):
    """Be told what is published in the channel from now on."""

    name: str
    claim: int


class Unsubscribe(Message, frozen=True, tag=221):
    """Be told no more; see Subscribe."""

    name: str
    claim: int


class Publish(Message, frozen=True, tag=222):
    """Tell all subscribers of the channel."""

    name: str
    value: list[bytes]


class Published(Message, frozen=True, tag=223):
    """Something was published, for the subscription `claim`."""

    claim: int
    value: list[bytes]


# --- who holds what ------------------------------------------------------------------------------


class DescribeCoordination(Message, frozen=True, tag=224):
    """All of the above that is known: who holds it, who waits."""

    request: int
    kind: str = ""  # "": of every kind
    name: str = ""  # "": of every name


class Claimant(Part, frozen=True):
    """Who holds something, or waits for it."""

    client: str  # its id
    task: str  # the key of the task that does; "": none
    worker: str  # where that task was placed; "": not known
    seconds: float  # for which it has held or waited


class NamedDescription(Part, frozen=True):
    """One lock, event, queue, variable or channel."""

    kind: str  # "lock", "joint lock", "event", "queue", "variable", "channel"
    name: str
    holders: list[Claimant] = []
    waiting: list[Claimant] = []
    size: int = 0  # leases that are held; values that are in it; 1 if it is set
    size_max: int = 0  # 0: no limit


SUBJECT = Subject(
    from_client={
        AcquireLock: bool,
        ReleaseLock: UNANSWERED,
        IsLocked: bool,
        AcquireLease: bool,
        RegisterLock: None,
        CountLeases: int,
        CloseLock: int,
        AcquireJointly: bool,
        ReleaseJointly: UNANSWERED,
        AwaitEvent: bool,
        EndWait: UNANSWERED,
        SetEvent: None,
        IsEventSet: bool,
        PutInQueue: bool,
        EndPut: UNANSWERED,
        TakeFromQueue: list[SharedValue],
        EndTake: UNANSWERED,
        QueueSize: int,
        CloseQueue: UNANSWERED,
        SetVariable: None,
        GetVariable: SharedValue,
        EndGet: UNANSWERED,
        DeleteVariable: UNANSWERED,
        Subscribe: UNANSWERED,
        Unsubscribe: UNANSWERED,
        Publish: UNANSWERED,
        DescribeCoordination: list[NamedDescription],
    },
    to_client={Published: UNANSWERED},
)
