"""What clients ask about who is there, and have done about it: wait for workers, let them go.

Free tags: 260 to 279, for what is done to the cluster as a whole: its workers and their memory.
"""

from shoal.protocol.messages import Message
from shoal.protocol.subject import Subject


class AwaitWorkers(Message, frozen=True, tag=114):
    """Answered once at least `nworkers` workers are connected."""

    request: int
    nworkers: int


class CloseWorkers(Message, frozen=True, tag=120):
    """Let these workers (addresses or names) go; what they ran is run elsewhere, without blame."""

    request: int
    workers: list[str]


class TerminateCluster(Message, frozen=True, tag=119):
    """Close every worker, then the scheduler."""

    request: int


SUBJECT = Subject(
    from_client={
        AwaitWorkers: int,
        CloseWorkers: list[str],
        TerminateCluster: None,
    },
)
