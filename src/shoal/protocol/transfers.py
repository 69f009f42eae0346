"""Values between clients and workers, where the scheduler has a part in it.

Free tags: 130 to 132.
"""

from shoal.ids import ClientTaskId, Key, TaskId
from shoal.protocol.messages import Message, Part, Replicas
from shoal.protocol.subject import Subject


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
    nearby: str = ""  # address of the worker that takes them if it stays and none is named


class Placement(Part, frozen=True):
    """Where one scattered value shall go, and the number to put it under."""

    task: TaskId
    workers: list[str]


class FetchThroughScheduler(Message, frozen=True, tag=121):
    """The scheduler fetches these values from their holders for a client that can't reach them.

    Answered by Replicas.
    """

    request: int
    tasks: list[TaskId]


SUBJECT = Subject(
    from_client={
        PlaceScatter: list[Placement],
        FetchThroughScheduler: Replicas,
    },
)
