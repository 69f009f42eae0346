"""Tasks that nobody waits for: run to their end, listed, cancelled by their keys.

And those that a task waits for whose worker may die.

Free tags: 195 to 199.
"""

from shoal.ids import ClientTaskId, Key
from shoal.protocol.messages import Message
from shoal.protocol.subject import UNANSWERED, Subject


class DetachTasks(Message, frozen=True, tag=190):
    """Run these to their end, even if the client that submitted them goes."""

    tasks: list[ClientTaskId]


class CancelKeys(Message, frozen=True, tag=191):
    """End the tasks of these keys, and what depends on them, as far as this client wants it or
    nobody waits for it; forced, for everybody."""

    keys: list[Key]
    force: bool = False
    reason: str = ""


class DetachedTasks(Message, frozen=True, tag=192):
    """Key -> state of each task that was detached and has not ended."""

    request: int


class ServeTasks(Message, frozen=True, tag=193):
    """The client belongs to the tasks of a worker: what it wants is kept a while if it is lost."""


class JournalStopped(Message, frozen=True, tag=194):
    """Nothing is written to the scheduler's journal any more: what is detached and published goes
    with the scheduler."""

    why: str


SUBJECT = Subject(
    from_client={
        ServeTasks: UNANSWERED,
        DetachTasks: UNANSWERED,
        CancelKeys: UNANSWERED,
        DetachedTasks: dict[str, str],
    },
    to_client={JournalStopped: UNANSWERED},
)
