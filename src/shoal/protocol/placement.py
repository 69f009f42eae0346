"""What placing tasks goes by, as workers say it, and why tasks are where they are.

Tags 370 to 379.
"""

from shoal.ids import Key
from shoal.protocol.messages import Message
from shoal.protocol.subject import UNANSWERED, Subject


class TransfersGauged(Message, frozen=True, tag=370):
    """How long results took to come from these peers, since the worker last said so.

    Without those that were small: they take their time whatever their size.  Columns of one length.
    """

    peers: list[str]  # addresses
    nbytes: list[int]
    seconds: list[float]


class ExplainTasks(Message, frozen=True, tag=371):
    """Lines that say what each task waits for, or why it ran where it did; for people."""

    request: int
    keys: list[Key]


SUBJECT = Subject(
    from_worker={TransfersGauged: UNANSWERED},
    from_client={ExplainTasks: list[str]},
)
