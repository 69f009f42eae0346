"""How much may be out on one worker at once?  What is beyond that stays with the scheduler."""

from math import ceil, inf

from shoal.scheduler.model.entities import Task, Worker
from shoal.scheduler.model.settings import SchedulerSettings

EARLY_SATURATION = 1.1
"""Of a worker's threads, what is sent to it when tasks are placed early: placed is not sent."""


class LateBinding:
    """A few runs per thread whatever they take, and beyond that only what is very short.

    The slots keep every thread busy while an answer travels.  The pipe lets no-op tasks travel in
    batches: about a millisecond of expected work, which is all that a newly arrived urgent task may
    have to wait for.  A prefix that never finished counts as long, so its pipe is empty.
    """

    __slots__ = ("pipe_runs_max", "pipe_us", "places_early", "saturation", "unknown_us")

    def __init__(self, settings: SchedulerSettings) -> None:
        self.places_early = settings.worker_saturation == inf
        self.saturation = EARLY_SATURATION if self.places_early else settings.worker_saturation
        self.pipe_us = round(settings.pipe_seconds * 1e6)
        self.pipe_runs_max = settings.pipe_runs_max
        self.unknown_us = round(settings.unknown_duration_seconds * 1e6)

    def slots(self, nthreads: int) -> int:
        """Runs that may be out on a worker whatever they take; at least one."""
        return max(1, ceil(self.saturation * nthreads))

    def has_room(self, worker: Worker) -> bool:
        """Whether one more run may be sent to `worker`; those that wait for others don't count.

        Tasks that are held there only until the first of their kind has ended do: they let go of
        inputs, and what brings more of those must not take their place.  One slot is left.
        """
        nexecuting = worker.nsent - worker.nwaiting
        if worker.nheld:
            nexecuting += min(worker.nheld, worker.slots_max - 1)
        if not worker.takes_work or (worker.runs_suspect and nexecuting > 0):
            return False
        if nexecuting < worker.slots_max:
            return True
        return worker.sent_us < self.pipe_us * worker.nthreads and worker.nsent < self.pipe_runs_max

    @staticmethod
    def must_wait(task: Task, worker: Worker) -> bool:
        """Whether `task` has to wait until nothing else executes on `worker`.

        So has a task that was running on a worker that died: it runs alone, so that next time it
        is known which task it was, and those beside it are not condemned with it.  Runs that wait
        for other tasks may be beside it: it may be what they wait for.
        """
        return task.blame > 0 and worker.nsent > worker.nwaiting

    def expected_us(self, task: Task) -> int:
        """How long `task` is expected to run, in microseconds; at least one."""
        duration_us = task.prefix.duration_us
        if duration_us > 0:
            return duration_us
        return self.unknown_us if duration_us < 0 else 1
