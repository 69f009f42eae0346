"""What a client knows of one result that it wants: the noun of its machine."""

from typing import Any, Final

from shoal.errors import DataLost
from shoal.ids import ClientTaskId, Key, TaskId
from shoal.protocol.messages import Failure

PENDING: Final = "pending"
FINISHED: Final = "finished"
ERROR: Final = "error"
CANCELLED: Final = "cancelled"
LOST: Final = "lost"

_DATA_LOST: Final = f"{DataLost.__name__}: {DataLost.BEGINNING}"
"""How the failure begins of what was scattered and lost, and of what needed it."""

UNRESOLVED: Final = (PENDING, LOST)
STATUSES: Final = (PENDING, FINISHED, ERROR, CANCELLED, LOST)


class Record:
    """One want of one key: what all futures of it share."""

    __slots__ = (
        "failure",
        "holders",
        "key",
        "kind",
        "nbytes",
        "nfutures",
        "number",
        "reason",
        "status",
        "task",
        "value",
        "watchers",
    )

    def __init__(self, key: Key, number: ClientTaskId) -> None:
        self.key = key
        self.number = number  # ours, of this want
        self.status = PENDING
        self.nfutures = 0  # futures that hold it; at 0 it is released
        self.task = TaskId(-1)  # the scheduler's, to ask the holders with; -1 = not known
        self.nbytes = 0
        self.value: bytes | None = None  # the result, pickled, if it is small
        self.holders: list[str] = []
        self.kind = ""  # "module.qualname" of the result's type
        self.failure: Failure | None = None
        self.reason = ""  # why it was cancelled
        self.watchers: list[Any] | None = None  # whom the session tells; opaque here

    @property
    def is_gone(self) -> bool:
        """Whether there will be no result, though no task failed: cancelled, or lost for good."""
        if self.status != ERROR:
            return self.status == CANCELLED
        return self.failure is not None and self.failure.text.startswith(_DATA_LOST)

    def __repr__(self) -> str:
        return f"<Record {self.key!r} #{self.number} {self.status} nfutures={self.nfutures}>"
