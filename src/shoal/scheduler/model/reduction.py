"""Results of which several workers hold a copy, and when to look whether those are too many."""

from collections import OrderedDict
from collections.abc import Mapping

from shoal.scheduler.model.entities import Task, Worker


class Reduction:
    """Rounds over results with several copies: each ends with those of no use dropped.

    Only what may have a copy too many is kept here: a result with one holder never is, and one
    whose copies are all asked for leaves, until its holders or its goal change.
    """

    __slots__ = ("doubled", "due_at", "interval_seconds", "is_on", "ndropped", "nleft")

    def __init__(self, *, is_on: bool, interval_seconds: float) -> None:
        self.doubled: OrderedDict[Task, None] = OrderedDict()  # the one looked at longest ago first
        self.is_on = is_on
        self.interval_seconds = interval_seconds  # between two rounds
        self.due_at: float | None = None  # when the next round begins; None: none is due
        self.nleft = 0  # to be looked at in steps to come of a round that has begun
        self.ndropped = 0  # copies, in all

    def __repr__(self) -> str:
        return f"<Reduction, {len(self.doubled)} results to look at>"


class Suggested:
    """Copies to be made and to be dropped, as code beside the scheduler suggests."""

    __slots__ = ("copies", "drops")

    def __init__(
        self,
        copies: Mapping[Task, Mapping[Worker, object]],
        drops: Mapping[Task, Mapping[Worker, object]],
    ) -> None:
        self.copies = copies  # result -> who shall get one
        self.drops = drops  # result -> who shall let go of its own
