"""What clients ask about who is there, and have done about it: wait for workers, let them go.

No tag is free.
"""

from shoal.protocol.messages import Message, Part
from shoal.protocol.subject import UNANSWERED, Subject


class AwaitWorkers(Message, frozen=True, tag=114):
    """Answered once at least `nworkers` workers are connected."""

    request: int
    nworkers: int


class CloseWorkers(Message, frozen=True, tag=120):
    """Let these workers (addresses or names) go; what they ran is run elsewhere, without blame."""

    request: int
    workers: list[str]


class Closing(Part, frozen=True):
    """Which workers may go if none is named."""

    n: int | None = None  # so many
    target: int | None = None  # so many are left
    minimum: int | None = None  # at least so many are left
    memory_ratio: float | None = None  # memory that is left, for each byte that is held
    group: str = ""  # go or stay together if they have this in common: "host", "" = none
    kept: list[str] = []  # addresses of those that stay in any case


class RetireWorkers(Message, frozen=True, tag=260):
    """Let these workers go as soon as nothing is held by them alone; nothing new is given to them.

    Answered, when all is decided, by address -> "", or why that worker stays and goes on working.
    """

    request: int
    workers: list[str] | None = None  # addresses, names or hosts; None: those that `closing` means
    closing: Closing | None = None
    removes: bool = True  # False: they stay connected, and are given nothing
    patience_seconds: float = 30.0  # without any progress, until a worker stays


class RestartWorkers(Message, frozen=True, tag=261):
    """Have processes of workers replaced; what they ran or held is computed again elsewhere.

    Answered by address -> "OK", "removed" (nobody has started another) or "timed out".  Unless
    everything is let go of, workers without a nanny are not touched, and with one of those nothing
    is done: it is "no nanny".
    """

    request: int
    workers: list[str] | None = None  # addresses or names; None: all
    timeout_seconds: float = 30.0
    waits: bool = True  # for the others to come
    lets_go: bool = False  # first of all, every want of every client is cancelled


class SetResources(Message, frozen=True, tag=262):
    """A worker (address or name) has these amounts from now on; answered with all that it has."""

    request: int
    worker: str
    resources: dict[str, float]


class ResourcesChanged(Message, frozen=True, tag=263):
    """This worker has these amounts from now on, beside those that are not named."""

    resources: dict[str, float]


class TimeIsOver(Message, frozen=True, tag=264):
    """This worker closes: first others shall have what only it holds, then it is sent away.

    It goes even if nobody can take that, or they make no progress for so long.
    """

    reason: str  # as it is told when it is sent away
    patience_seconds: float


class LeavingChanged(Message, frozen=True, tag=269):
    """This worker is given nothing more, and stays connected; or it is to work again after all."""

    is_leaving: bool


class TerminateCluster(Message, frozen=True, tag=119):
    """Close every worker, then the scheduler."""

    request: int


SUBJECT = Subject(
    from_client={
        AwaitWorkers: int,
        CloseWorkers: list[str],
        RetireWorkers: dict[str, str],
        RestartWorkers: dict[str, str],
        SetResources: dict[str, float],
        TerminateCluster: None,
    },
    from_worker={ResourcesChanged: UNANSWERED, TimeIsOver: UNANSWERED},
    to_worker={LeavingChanged: UNANSWERED},
)
