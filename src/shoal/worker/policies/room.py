"""Is there memory for what is about to come: a run's growth, a result of a peer's, one from disk?

What the process has is looked at now and then.  What was let in is counted beside it until it is
there, so that nothing is let in on the strength of a look that it has made untrue.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from shoal.worker.model.entities import Replica, Run

CALM_SHARE: Final = 3
"""Below its bound by a third of it, and by what runs are known to take, a worker need not count."""

FAVOURS_MAX: Final = 100
"""So many times may inputs of runs that wait leave memory for another one, however small they are.

They are read again as soon as there is room for them, which is before there is room for much."""

ARGUMENT_BYTES_MIN: Final = 1 << 20
"""An argument that came with its run takes as much again once it is unpickled, if it is larger."""


class Favours:
    """For so many bytes more may inputs of runs that wait leave memory for another one."""

    __slots__ = ("least_bytes", "left_bytes")

    def __init__(self, needed_bytes: int) -> None:
        self.left_bytes = needed_bytes
        self.least_bytes = -(-needed_bytes // FAVOURS_MAX)  # however small it is, it counts as this


class Room:
    """What one worker's memory leaves below a bound, and who has been promised some of it."""

    __slots__ = (
        "_kind_of",
        "_kinds",
        "_margin_bytes",
        "_nthreads",
        "bound_bytes",
        "reserved_bytes",
        "favours",
        "for_run",
        "grown_bytes",
        "is_forced",
        "is_near",
        "is_overdue",
        "lacking_bytes",
        "process_bytes",
    )

    def __init__(
        self,
        bound_bytes: int,
        nthreads: int,
        kinds: Mapping[str, float],
        kind_of: Callable[[Run], str],
    ) -> None:
        """`kinds`: bytes that runs of a kind take, as it is learnt; `kind_of`: that of a run."""
        self.bound_bytes = bound_bytes
        self._nthreads = nthreads
        self._kinds, self._kind_of = kinds, kind_of
        self._margin_bytes = bound_bytes / CALM_SHARE
        self.process_bytes = 0  # at the last look
        self.reserved_bytes = 0  # by runs that were let in and have not ended
        self.grown_bytes = 0  # of that, what was there at the last look
        self.is_near = False  # so little was left then that what comes is counted
        self.lacking_bytes = 0  # for the first of those that wait
        self.for_run: Run | None = None  # that one, or the run that it is for
        self.favours: dict[Run | None, Favours] = {}  # that were done to this one since a run began
        self.is_forced = False  # nothing more can be had: the first is let in all the same
        self.is_overdue = False  # whatever goes on: it is at a standstill

    def look(self, process_bytes: int, grown_bytes: int, coming_bytes: int) -> None:
        """The process has so much; of that, runs that go on have taken `grown_bytes`.

        Cost: O(kinds), which are a few hundred at most, and O(1) while nothing is learnt.
        """
        self.process_bytes, self.grown_bytes = process_bytes, grown_bytes
        largest = max(self._kinds.values(), default=0.0)
        self._margin_bytes = max(self.bound_bytes / CALM_SHARE, self._nthreads * largest)
        self.is_near = self.gets_near(coming_bytes)

    def excess_bytes(self, coming_bytes: int) -> int:
        """How much too large it is: with all that was promised, and what is on its way."""
        promised = max(0, self.reserved_bytes - self.grown_bytes)
        return self.process_bytes + promised + coming_bytes - self.bound_bytes

    def gets_near(self, coming_bytes: int) -> bool:
        """Whether so little is left, with what comes, that runs have to be counted as well."""
        return self.excess_bytes(coming_bytes) + self._margin_bytes > 0

    def growth_bytes(self, run: Run) -> int:
        """What a run is expected to add to what is there; of an unknown kind, as much as its
        inputs have, and the argument that it unpickles."""
        argument = run.message.argument
        least = len(argument) if isinstance(argument, bytes) else 0
        if least < ARGUMENT_BYTES_MIN:
            least = 0
        known = self._kinds.get(self._kind_of(run)) if self._kinds else None
        if known is None:
            return least + sum(_large_bytes(replica) for replica in run.pins)
        return max(least, int(known))


def _large_bytes(replica: Replica) -> int:
    return 0 if replica.residence is None else replica.nbytes
