"""Has this worker memory for this task, beside what it runs and keeps?

Only asked for tasks whose prefix weighs: whose footprint is not known yet, or may matter.  Room is
what the limit leaves below the pause threshold, without what is there at rest, without results that
are kept in memory, and without the growth that is expected of the runs that are out.
"""

from collections.abc import Iterable
from typing import Final

from shoal.scheduler.model.entities import Prefix, Task, Weight, Worker
from shoal.scheduler.model.estimates import footprint_bytes
from shoal.scheduler.model.settings import SchedulerSettings
from shoal.units import format_nbytes

CALM_SECONDS: Final = 0.5
"""A run of an unknown kind that has not grown for so long is taken to have all that it needs.

Longer than the imports that many begin with.  Workers tell every 4 MiB of such a run, so what
grows by 8 MiB a second is not calm.
"""

GROWS_ON: Final = 1.5
"""A run that goes on may be so much larger than it has said."""

SPREAD_MAX: Final = 64
"""Workers that run several of an unknown kind, after which nobody doubts any more."""

HELD_SECONDS: Final = 1.0
"""A task waits so long for memory while others pass it; then a worker is kept for it."""

INPUTS_LOOKED_AT: Final = 32
"""Inputs that are added up for one task, as in placement."""

UNLIMITED: Final = 1 << 62


class Admission:
    """Runs are added up: what each takes of its worker, until it has ended."""

    __slots__ = ("pause_ratio", "target_ratio")

    def __init__(self, settings: SchedulerSettings) -> None:
        self.pause_ratio = settings.memory_pause_ratio
        self.target_ratio = settings.memory_target_ratio

    def fits(self, task: Task, worker: Worker, now: float) -> bool:
        """Whether `worker` has memory for one more such run, as far as that is known.

        Of a kind that has never finished, one is sent first; then as many again as have stopped
        growing, so that what is coarse isn't kept to one thread; and that on one worker before it
        is done on two, and so on, so that not all are lost at once.

        Cost: O(runs that weigh there).
        """
        if not worker.memory_limit or (worker.nthreads == 1 and not worker.nwaiting):
            return True  # there, runs come one after the other
        if self.is_unknown(task) and not may_have_more(task.prefix, worker, now):
            return False
        return self.needs_bytes(task, worker) <= self.room_bytes(worker)

    def is_unknown(self, task: Task) -> bool:
        """Whether nobody can say what it takes: no user, and no run before it."""
        return not (task.prefix.ngauged or task.options.memory)

    def room_bytes(self, worker: Worker) -> int:
        """What may be taken there, beyond what is expected of the runs that are out."""
        room = self.empty_bytes(worker)
        for weight in worker.weights.values():
            room -= max(self.own_bytes(weight.task), weight.gauged_bytes)
        return room

    def empty_bytes(self, worker: Worker) -> int:
        """What may be taken there if nothing runs."""
        limit = worker.memory_limit
        if not limit:
            return UNLIMITED
        return int(limit * self.pause_ratio) - worker.rest_bytes - self.kept_bytes(worker)

    def kept_bytes(self, worker: Worker) -> int:
        """Results that stay in its memory: what is beyond the target goes to disk in time."""
        if self.target_ratio is None:
            return worker.nbytes
        return min(worker.nbytes, int(worker.memory_limit * self.target_ratio))

    def is_short(self, worker: Worker) -> bool:
        """Whether results fill so much of it that letting go of some is worth more than order."""
        limit = worker.memory_limit
        return limit > 0 and worker.nbytes > limit * (self.target_ratio or self.pause_ratio) / 2

    def own_bytes(self, task: Task) -> int:
        """What a run of it takes, wherever it is."""
        prefix, hint = task.prefix, task.options.memory
        if hint and not task.blame:
            return hint
        if prefix.ngauged:
            return max(hint, footprint_bytes(prefix))
        return max(hint, int(prefix.peak_bytes * GROWS_ON))

    def needs_bytes(self, task: Task, worker: Worker) -> int:
        """What a run of it takes there, with the inputs that `worker` has to fetch for it."""
        needs = max(self.own_bytes(task), _carried_bytes(task))
        for dependency in task.dependencies[:INPUTS_LOOKED_AT]:
            if dependency.value is None and dependency not in worker.has_what:
                needs += max(0, dependency.nbytes)
        return needs

    def roomiest(self, workers: Iterable[Worker]) -> Worker | None:
        """The one that has the most when nothing runs there; None if there is nobody."""
        return max(workers, key=self.empty_bytes, default=None)

    def why_not(self, task: Task, worker: Worker, now: float) -> str:
        """Why `worker` has no memory for it now, with numbers; "" if it has."""
        if self.fits(task, worker, now):
            return ""
        name = task.prefix.name
        if self.is_unknown(task) and self.needs_bytes(task, worker) <= self.room_bytes(worker):
            return (
                f"nobody knows yet what a run of {name!r} takes: one goes first on {worker.name}, "
                "which runs it"
            )
        needs = format_nbytes(self.needs_bytes(task, worker))
        room = self.room_bytes(worker)
        left = format_nbytes(max(0, room))
        running = self.empty_bytes(worker) - room
        return (
            f"waits for memory: needs about {needs} ({self._learnt_from(task)}), worker "
            f"{worker.name} has {left} left of {format_nbytes(worker.memory_limit)}: "
            f"{format_nbytes(self.kept_bytes(worker))} kept, {format_nbytes(running)} running, "
            f"{format_nbytes(worker.rest_bytes)} at rest"
        )

    def _learnt_from(self, task: Task) -> str:
        prefix = task.prefix
        if task.options.memory and not task.blame:
            return "as was said with it"
        if not prefix.ngauged:
            return f"as much as runs of {prefix.name!r} have taken so far, and they go on"
        times = "1 run" if prefix.ngauged == 1 else f"{prefix.ngauged} runs"
        return f"learnt from {times} of {prefix.name!r}"


def _carried_bytes(task: Task) -> int:
    """What an argument takes that is sent with the run: as bytes, and as the value that it is."""
    argument = task.argument
    return 2 * len(argument) if isinstance(argument, bytes) else 0


def may_have_more(prefix: Prefix, worker: Worker, now: float) -> bool:
    """Whether `worker` may have one more run of a kind of which nobody knows what it takes."""
    same = _weights_of(prefix, worker)
    ncalm = sum(has_calmed(weight, now) for weight in same)
    if len(same) != 1:
        return len(same) < 2 * ncalm or not same
    spread = prefix.spread
    if not ncalm or len(spread) >= SPREAD_MAX:
        return ncalm > 0
    return not spread or len(spread) < 2 * sum(_is_full(prefix, each, now) for each in spread)


def calms_at(prefix: Prefix, worker: Worker, now: float) -> float | None:
    """When `may_have_more` may have another answer just because time has passed; None: never."""
    weights = _weights_of(prefix, worker)
    for each in list(prefix.spread)[:SPREAD_MAX]:
        weights += _weights_of(prefix, each)
    times = [_calm_from(weight) for weight in weights]
    return min((at for at in times if at > now), default=None)


def has_calmed(weight: Weight, now: float) -> bool:
    """Whether a run has not grown for so long that it is taken to have all that it needs."""
    return now >= _calm_from(weight)


def _calm_from(weight: Weight) -> float:
    return weight.changed_at + CALM_SECONDS


def _weights_of(prefix: Prefix, worker: Worker) -> list[Weight]:
    return [weight for weight in worker.weights.values() if weight.task.prefix is prefix]


def _is_full(prefix: Prefix, worker: Worker, now: float) -> bool:
    """Whether all threads of a worker are busy, and what of this kind runs there is calm."""
    is_busy = worker.nsent - worker.nwaiting >= worker.nthreads
    return is_busy and all(has_calmed(weight, now) for weight in _weights_of(prefix, worker))
