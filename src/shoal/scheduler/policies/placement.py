"""Which worker shall run this ready task?  And which shall hold this scattered value?"""

from collections.abc import Iterable
from math import inf

from shoal.scheduler.model.demands import has_left
from shoal.scheduler.model.entities import Task, Worker, aliases_of
from shoal.scheduler.model.settings import SchedulerSettings
from shoal.scheduler.model.ways import Ways

INPUTS_LOOKED_AT = 32
"""Inputs weighed per task: more cost time and hardly change the choice."""

HOLDERS_LOOKED_AT = 8
"""Holders of one input that are candidates: of something held everywhere, any will do."""

OUT_OF_REACH_US = 10**16
"""Delay of a fetch from a peer that could not be reached lately: any other way is better."""

IN_LINE_RATIO = 0.5
"""Of what a task takes: so long may it stand in line for an input behind others, in any case."""

CROWDED_US = 10**15
"""Delay of a fetch from holders that have others to send it to: it is better to wait for those.

Both are longer than the work of any backlog, which is a day and more once a million tasks wait for
one result: else all workers would be sent there at once, and stand in line.
"""


class EarliestStart:
    """Place a task where it is expected to start first.

    It starts once the worker's queue has drained and its missing inputs have arrived.  The two
    overlap in practice; adding them is pessimistic, but equally so for every candidate.

    Away from its inputs it is placed only where it would begin at once: a worker that is busy takes
    it later, if it is still to be had, and until then nothing is moved in vain.
    """

    __slots__ = ("latency_us", "ways")

    def __init__(self, settings: SchedulerSettings, ways: Ways) -> None:
        self.ways = ways
        self.latency_us = settings.fetch_latency_seconds * 1e6

    def choose(self, task: Task, least_loaded: Worker | None, now: float) -> Worker | None:
        """The best among the holders of its inputs and the least loaded worker; None if no worker.

        That one counts only if it has slots for all that is placed there, unless nobody else does.
        Ties go to the candidate that was met first.  Cost: O(inputs x holders), both bounded.
        """
        candidates: dict[Worker, None] = {}
        for dependency in task.dependencies[:INPUTS_LOOKED_AT]:
            holders = dependency.who_has
            if holders is not None:
                for worker in holders if len(holders) == 1 else first(holders, HOLDERS_LOOKED_AT):
                    if worker.takes_work:
                        candidates[worker] = None
        if least_loaded is not None and (
            not candidates
            or (begins_at_once(least_loaded) and not self.follows_its_like(task, candidates))
        ):
            candidates[least_loaded] = None
        if len(candidates) == 1:
            return next(iter(candidates))
        return self.best(task, candidates, now)

    def follows_its_like(self, task: Task, holders: Iterable[Worker]) -> bool:
        """Whether others of its kind, of which none has ended, are before it where an input is that
        they share.

        How long they take is a guess then, and known soon.  By the guess everybody who is idle
        would be sent that input for a few of them, which its holder may have done sooner.  What
        more tasks need than there are workers has to go everywhere in any case.
        """
        kind = task.prefix
        if kind.duration_us >= 0 or not any(holder.guessed is kind for holder in holders):
            return False
        nworkers = self.ways.nworkers
        return any(
            1 < dependency.nwaiters <= nworkers
            for dependency in task.dependencies[:HOLDERS_LOOKED_AT]
        )

    def best(self, task: Task, candidates: Iterable[Worker], now: float) -> Worker | None:
        """The candidate where `task` would start first; None if there are none."""
        best: Worker | None = None
        least = 0.0
        for worker in candidates:
            delay = (worker.sent_us + worker.backlog_us) / worker.nthreads
            if best is not None and delay >= least:
                continue
            delay += self.fetch_shares_us(task, worker, now)
            if best is None or delay < least:
                best, least = worker, delay
        return best

    def fewest_actors(self, task: Task, candidates: Iterable[Worker], now: float) -> Worker | None:
        """The candidate with the fewest actors, and of those, where `task` would start first."""
        workers = list(candidates)
        least = min([len(worker.actors) for worker in workers], default=0)
        return self.best(task, [w for w in workers if len(w.actors) == least], now)

    def fetch_us(self, task: Task, worker: Worker, now: float, enough_us: float = inf) -> float:
        """Microseconds until the inputs that `worker` lacks have arrived there.

        Large ones that are on their way to others are shared out by all who hold them; those that
        are on their way there already will be there, whatever else is placed there.  So what very
        many need is copied by ever more workers, and not by all of them from the first.

        Once it is `enough_us` in sum, it is not asked how much more it is.
        """
        total = 0.0
        has_what, duration_us = worker.has_what, task.prefix.duration_us
        for dependency in task.dependencies[:INPUTS_LOOKED_AT]:
            if dependency not in has_what and dependency.value is None:
                total += self._travel_us(dependency, worker, duration_us, now)
                if total >= enough_us:
                    break
        return total

    def fetch_shares_us(self, task: Task, worker: Worker, now: float) -> float:
        """As `fetch_us`, but what many others need as well counts in part.

        `worker` will run some of them; so what all need binds nobody to those who hold it.
        """
        total = 0.0
        ways, has_what = self.ways, worker.has_what
        nworkers, duration_us = ways.nworkers, task.prefix.duration_us
        is_plain = ways.near == ways.far and not (ways.moving or worker.cannot_reach)
        for dependency in task.dependencies[:INPUTS_LOOKED_AT]:
            if dependency in has_what or dependency.value is not None:
                continue
            if is_plain and dependency.nwaiters <= nworkers:  # as below, and cheaper
                total += self.latency_us + dependency.nbytes / ways.far
            else:
                travel_us = self._travel_us(dependency, worker, duration_us, now)
                if dependency.nwaiters > nworkers and travel_us < CROWDED_US:
                    travel_us *= nworkers / dependency.nwaiters
                total += travel_us
        return total

    def _travel_us(self, result: Task, worker: Worker, duration_us: int, now: float) -> float:
        """Microseconds until `result` has arrived at `worker`, which lacks it.

        `duration_us`: of the task that needs it there; -1: it is not known.
        """
        ways, holders = self.ways, result.who_has
        if holders is None:
            return 0.0  # it is lost, and nothing that needs it will run before it is back
        travel_us = result.nbytes / ways.far
        if ways.near != ways.far:
            for holder in first(holders, HOLDERS_LOOKED_AT):
                if holder.host == worker.host:
                    travel_us = result.nbytes / ways.near
                    break
        if ways.moving and (takers := ways.moving.get(result)):
            if worker in takers:
                travel_us = 0.0
            elif (
                ways.nsendings_left(result) > 0
                or len(takers) * travel_us < len(holders) * duration_us * IN_LINE_RATIO
            ):
                travel_us *= 1 + len(takers) / len(holders)
            else:
                travel_us += CROWDED_US
        if worker.cannot_reach and all(
            worker.cannot_reach.get(holder.id, now) > now
            for holder in first(holders, HOLDERS_LOOKED_AT)
        ):
            travel_us += OUT_OF_REACH_US
        return self.latency_us + travel_us


def begins_at_once(worker: Worker) -> bool:
    """Whether one more task that is placed on `worker` could be sent to it right now."""
    return len(worker.processing) - worker.nwaiting < worker.slots_max


def has_inputs_to_move(task: Task) -> bool:
    """Whether it matters for `task`'s inputs where it runs: is any too large to travel along?"""
    for dependency in task.dependencies:  # noqa: SIM110
        if dependency.value is None:
            return True
    return False


def idle_holder(task: Task) -> Worker | None:
    """A holder of the first input with a thread to spare; None if there is none.

    For tasks whose inputs are all small: they may run anywhere, but the links of a chain had better
    follow each other on one worker, which then hears of nothing else.
    """
    holders = task.dependencies[0].who_has if task.dependencies else None
    if holders is None:
        return None
    for worker in first(holders, HOLDERS_LOOKED_AT):
        if worker.nsent < worker.nthreads and not worker.backlog and worker.takes_work:
            return worker
    return None


def may_run_on(task: Task, worker: Worker) -> bool:
    """Whether the task's restrictions name `worker`, or nobody.

    Other workers are for when none of those named is connected, so nothing is moved to them: it
    would be placed where it came from.
    """
    if task.options.resources and not has_left(worker, task.options.resources):
        return False
    if task.options.actor:  # it was placed with regard to all other actors
        return False
    names = task.options.workers
    return not names or any(name in names for name in aliases_of(worker))


def choose_scatter(workers: list[Worker], cursor: int) -> Worker:
    """The worker for the next scattered value: in turns, each as often as it has threads.

    `cursor`: how many values were placed before.  Cost: O(workers).
    """
    turn = cursor % sum(worker.nthreads for worker in workers)
    for worker in workers:
        turn -= worker.nthreads
        if turn < 0:
            return worker
    raise AssertionError("a turn is less than the number of threads")


def first(workers: list[Worker], n: int) -> list[Worker]:
    """The first `n` of `workers`, without a copy when there are no more."""
    return workers if len(workers) <= n else workers[:n]
