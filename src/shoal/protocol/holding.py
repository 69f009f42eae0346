"""What clients want done about results: failed ones tried again, others copied and moved.

Free tags: 270 to 279.
"""

from shoal.ids import ClientTaskId, Key
from shoal.protocol.messages import Message
from shoal.protocol.subject import UNANSWERED, Subject


class RetryTasks(Message, frozen=True, tag=265):
    """Run these again, and what they need that failed, as if none of it had run before."""

    tasks: list[ClientTaskId]


class TaskRetried(Message, frozen=True, tag=266):
    """A wanted task that had failed is run again."""

    task: ClientTaskId


class ReplicateTasks(Message, frozen=True, tag=267):
    """Have so many copies of each of these results, from now on and as long as they are needed.

    Answered once they are there, or can't be for now: True; False if a key is not in memory.
    """

    request: int
    keys: list[Key]
    ncopies: int = 0  # 0 = one on each of the workers, those that come later too
    workers: list[str] = []  # addresses, names or hosts that shall have them; [] = any
    branching: int = 2  # copies made at once from each that is there


class RebalanceTasks(Message, frozen=True, tag=268):
    """Move results from full workers to emptier ones; answered with how many were moved."""

    request: int
    keys: list[Key] | None = None  # None: all
    workers: list[str] | None = None  # among these; None: all


SUBJECT = Subject(
    from_client={
        RetryTasks: UNANSWERED,
        ReplicateTasks: bool,
        RebalanceTasks: int,
    },
    to_client={TaskRetried: UNANSWERED},
)
