"""What is looked at across the cluster: stacks, versions, stories, states; and what replays a task.

The scheduler asks each worker, and answers with what all of them said.  Free tags: 317, 318, 327,
329 to 339.
"""

from typing import Any

import msgspec

from shoal.ids import Key
from shoal.protocol.messages import Message, Part, Replicas
from shoal.protocol.questions import Transition, WorkerIdentity
from shoal.protocol.subject import UNANSWERED, Subject

# --- client -> scheduler ---------------------------------------------------------------------


class SizesOfResults(Message, frozen=True, tag=310):
    """Key -> bytes of its result, of `keys`, or of all; or prefix -> bytes of all its results."""

    request: int
    keys: list[Key] | None = None
    by_prefix: bool = True


class CallStacks(Message, frozen=True, tag=311):
    """Worker -> key of each task that runs there -> its frames, as text."""

    request: int
    keys: list[Key] | None = None  # None: all that run


class WholeStory(Message, frozen=True, tag=312):
    """What the scheduler and workers have recorded of these, oldest first."""

    request: int
    keys: list[Key]
    causes: list[tuple[str, int]] = []  # of steps of the scheduler: what was said, which step
    runs: list[int] = []
    skips_unreachable: bool = False  # workers that do not answer are left out


class WorkerRecord(Part, frozen=True):
    """One entry of a worker's story."""

    at: float  # seconds since the epoch
    key: Key
    what: str
    run: int = 0  # 0: none


class Told(Part, frozen=True):
    """A story as several processes know it; `at` of all entries is in seconds since the epoch."""

    scheduler: list[Transition]
    workers: dict[str, list[WorkerRecord]]


class CallOfTask(Message, frozen=True, tag=313):
    """How to call a task, to do it elsewhere; that of what failed, if it was not the task itself.

    Refused if the task is not known, or is a value that was scattered.
    """

    request: int
    key: Key
    is_error: bool = False  # refused as well unless it failed


class TaskCall(Part, frozen=True):
    """What a worker is told in order to run a task."""

    key: Key
    code: bytes  # a pickled function or bundle
    argument: bytes | int  # pickled (args, kwargs) of a function, or the index in a bundle
    dependencies: list[Key] = []  # in the order of the arguments


class InstalledVersions(Message, frozen=True, tag=314):
    """What is installed where the scheduler and the workers run."""

    request: int
    packages: list[str] = []  # to be looked for beside those that always are


class Installed(Part, frozen=True):
    """`host` and `packages`, by process."""

    scheduler: dict[str, dict[str, Any]]
    workers: dict[str, dict[str, dict[str, Any]]]


class ClusterState(Message, frozen=True, tag=315):
    """All that the scheduler and the workers know, in plain types."""

    request: int
    exclude: list[str] = []  # names of fields that are left out, of each task's too
    format: str = "msgpack"  # or yaml
    url: str = ""  # write it there, and answer with nothing; "": answer with it
    options: bytes = b""  # pickled, for whoever opens the url


class HardwareSpeeds(Message, frozen=True, tag=316):
    """Bytes per second of disks, memory and network, by size: means over all workers."""

    request: int


# --- scheduler -> client ---------------------------------------------------------------------


class Members(Message, frozen=True, tag=319):
    """The workers that there are: to a client that watches, before its welcome."""

    workers: list[WorkerIdentity]


class MemberJoined(Message, frozen=True, tag=320):
    """A worker has joined, or is there anew."""

    worker: WorkerIdentity


class MemberLeft(Message, frozen=True, tag=321):
    """A worker has gone."""

    address: str


# --- scheduler -> worker ---------------------------------------------------------------------


class CallStacksHere(Message, frozen=True, tag=322):
    """Key of each task that runs -> its frames, as text."""

    request: int
    keys: list[Key] | None = None


class StoryHere(Message, frozen=True, tag=323):
    """What was recorded of these, oldest first."""

    request: int
    keys: list[Key]
    runs: list[int] = []


class InstalledHere(Message, frozen=True, tag=324):
    """What is installed: `host` and `packages`."""

    request: int
    packages: list[str] = []


class StateHere(Message, frozen=True, tag=325):
    """All that the worker knows, in plain types."""

    request: int
    exclude: list[str] = []


class SpeedsHere(Message, frozen=True, tag=326):
    """Bytes per second of the worker's disk and memory, by size; and of the way to a peer."""

    request: int
    peer: str = ""  # measure the way there, and nothing else


# --- to a worker from a peer -----------------------------------------------------------------


class SendBytes(Message, frozen=True, tag=328):
    """Send so many bytes out of band, as results travel; for measuring.  Answered by Replicas."""

    request: int
    nbytes: int


SUBJECT = Subject(
    from_client={
        SizesOfResults: dict[str, int],
        CallStacks: dict[str, dict[str, list[str]]],
        WholeStory: Told,
        CallOfTask: TaskCall,
        InstalledVersions: Installed,
        ClusterState: bytes,
        HardwareSpeeds: dict[str, dict[str, float]],
    },
    to_client={Members: UNANSWERED, MemberJoined: UNANSWERED, MemberLeft: UNANSWERED},
    to_worker={
        CallStacksHere: dict[str, list[str]],
        StoryHere: list[WorkerRecord],
        InstalledHere: dict[str, dict[str, Any]],
        StateHere: msgspec.Raw,  # a mapping, passed on as it came
        SpeedsHere: dict[str, dict[str, float]],
    },
    from_peer={SendBytes: Replicas},
)
