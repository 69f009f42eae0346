"""What clients and tasks agree on by name, beside the tasks: locks.

Free tags: 200 to 239.
"""

from shoal.protocol.messages import Message
from shoal.protocol.subject import UNANSWERED, Subject


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


SUBJECT = Subject(
    from_client={
        AcquireLock: bool,
        ReleaseLock: UNANSWERED,
        IsLocked: bool,
    },
)
