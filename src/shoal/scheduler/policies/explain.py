"""What does this task wait for, or why did it run where it did?  In lines for people.

Computed when somebody asks, of what is known at that moment.  Cost: O(workers) for each task; looks
at queues, backlogs, inputs and what a task depends on are bounded for all tasks together.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from shoal.ids import Key, WorkerId
from shoal.protocol.keys import to_text
from shoal.protocol.questions import Transition
from shoal.scheduler.model import reasons
from shoal.scheduler.model.demands import has_left, offers
from shoal.scheduler.model.entities import (
    ERRED,
    MEMORY,
    NO_RUN,
    NO_WORKER,
    PROCESSING,
    QUEUED,
    RELEASED,
    WAITING,
    Task,
    Worker,
)
from shoal.scheduler.model.state import SchedulerState
from shoal.scheduler.policies.again import why_again
from shoal.scheduler.policies.backlogs import Backlogs, work_of
from shoal.scheduler.policies.blocked import Blocked
from shoal.scheduler.policies.causes import Cause, Causes
from shoal.scheduler.policies.memory import Admission
from shoal.scheduler.policies.queuing import LateBinding
from shoal.scheduler.policies.standing_in_line import Lines
from shoal.scheduler.policies.words import (
    NAMED_MAX,
    amounts,
    not_taking,
    shown,
    work_in_words,
)
from shoal.units import format_nbytes, format_seconds

NESTING_MAX: Final = 100
"""Tasks within tasks that are followed."""

INPUTS_LOOKED_AT: Final = 10_000
"""Inputs of tasks that were sent that are looked at for all that is asked about at once."""

JUST_NOW_SECONDS: Final = 0.01

LATE_SECONDS: Final = 0.1
"""The scheduler is busy, if what is due waits for so long."""

FAR_LONGER: Final = 5
"""Times what such tasks take: then it is said that this one takes far longer."""

HAS_ALL: Final = "it has all inputs, and is about to be placed"

PLACED_BECAUSE: Final = {
    reasons.HAD_ROOM: "of the workers with room, and with what it needs, it had the least to do",
    reasons.IN_ROW: "it had the tasks before this one, and their results are needed together",
    reasons.HELD_INPUTS: "it held inputs, and there it was expected to begin first",
    reasons.AWAY: "it had the least to do: there it was expected to begin first, inputs moved",
    reasons.FOLLOWED: "it had made the inputs, which are small, and had a thread to spare",
    reasons.NAMED: "of the workers that may run it, it was expected to begin first there",
    reasons.ELSEWHERE: "it was not to run where it had been",
    reasons.FEWEST_ACTORS: "it is an actor, and that worker had the fewest",
    reasons.EARLY: "it had the least to do as all was placed at once",
    reasons.RECALLED: "it had nothing to do, and the worker that had it had not begun it",
    reasons.ROOMIEST: "workers died under it as their memory was full, and this one has the most",
}


class Explaining:
    """Looks at one scheduler's state; changes nothing."""

    __slots__ = (
        "_any_takes_work",
        "_backlogs",
        "_blocked",
        "_causes",
        "_lines",
        "_ninputs_left",
        "admission",
        "now",
        "queuing",
        "state",
    )

    def __init__(
        self, state: SchedulerState, queuing: LateBinding, admission: Admission, now: float
    ) -> None:
        self.state = state
        self.queuing = queuing
        self.admission = admission
        self.now = now
        self._lines = Lines(state)
        self._causes = Causes(state, self._is_kept)
        self._any_takes_work = any(worker.takes_work for worker in state.workers.values())
        self._backlogs = Backlogs()
        self._blocked = Blocked(state, now)
        self._ninputs_left = INPUTS_LOOKED_AT

    def lines(
        self,
        task: Task,
        records: Sequence[Transition],
        moves: Sequence[tuple[float, Key, WorkerId, WorkerId]],
    ) -> Iterator[str]:
        """What is to be said of `task`: how it is and why, then where it was placed and why.

        Args:
            records: of its transitions, those that are still known.
            moves: of it, from one worker's backlog to another.
        """
        yield f"{to_text(task.key)!r} is {_state_of(task)}:"
        for line in self.why(task):
            yield "  " + line
        if task.state not in (MEMORY, ERRED):
            for line in (
                *why_again(self.state, task, self.now),
                *self._recovering(),
                *self._busy(),
            ):
                yield "  " + line
        for line in self._story(task, records, moves):
            yield "  " + line

    def why(self, task: Task) -> Iterator[str]:
        """What it waits for, where it is, or why it failed."""
        return self._inputs_missing(task) if task.state == WAITING else self._why(task)

    def _why(self, task: Task) -> Iterator[str]:
        if task.state == WAITING:
            if task.code is None:
                yield self._not_brought(task)
            else:
                yield "it waits for its inputs" if task.nwaiting else HAS_ALL
        elif task.state == QUEUED:
            yield from self._queued(task)
        elif task.state == NO_WORKER:
            yield from self._unrunnable(task)
        elif task.state == PROCESSING:
            yield from self._on_its_worker(task)
        elif task.state == MEMORY:
            yield self._held(task)
        elif task.state == ERRED and task.failure is not None:
            origin = task.failure.origin
            of_whom = "" if origin == task.key else f"its input {to_text(origin)!r} failed: "
            yield of_whom + task.failure.text.strip().partition("\n")[0]
        elif task.state == RELEASED:
            yield self._not_begun(task)

    def _not_brought(self, task: Task) -> str:
        """Who has a scattered value, or will."""
        keeper = self.state.withheld.get(task)
        if keeper is None:
            return "it is a value that a client is to bring"
        silent = format_seconds(self.now - keeper.heard_at)
        return f"it was scattered, and only {shown([keeper])} has it, silent for {silent}"

    def _not_begun(self, task: Task) -> str:
        """What becomes of it, or has become."""
        if not task.is_needed:
            return "nobody wants its result any more"
        orphan = self.state.orphans.by_key.get(task.key)
        if orphan is None:
            return "it is about to be begun"
        if orphan.runners:
            return f"{shown(orphan.runners)} runs it since before the scheduler was lost"
        if orphan.asked:
            return f"{shown(orphan.asked)} has it since before the scheduler was lost"
        return "a worker that is about to come back may have it, as the scheduler was lost"

    def _recovering(self) -> Iterator[str]:
        """Nothing is run yet, as those may come back who have the results."""
        recovery = self.state.recovery
        if recovery is None or not recovery.holds_back:
            return
        left = format_seconds(max(0.0, recovery.until - self.now))
        whom = "workers that had results"
        if recovery.awaited:
            names = ", ".join(islice(recovery.awaited, NAMED_MAX))
            count = len(recovery.awaited)
            whom = f"{count} worker{'' if count == 1 else 's'} ({names})"
        yield (
            f"the scheduler was lost, and has come back: it has nothing run until {whom} came back "
            f"as well, or for {left} more"
        )

    def _busy(self) -> Iterator[str]:
        """W13: nothing is decided at once."""
        seconds = self.state.lateness.latest(self.now)
        if seconds >= LATE_SECONDS:
            late = format_seconds(seconds)
            yield f"the scheduler is busy: what was due lately had to wait {late}"

    def _inputs_missing(self, task: Task) -> Iterator[str]:
        """W01: how many it lacks, and what it waits for in the end."""
        nmissing = task.nwaiting
        if task.code is None or not nmissing:
            yield from self._why(task)
            return
        if self.state.barriers:
            yield from self._shuffling(task, [d for d in task.dependencies if d.state != MEMORY])
        cause, is_all = self._causes.of(task)
        waits = f"it waits for {nmissing} of {len(task.dependencies)} inputs"
        if cause is None:
            yield waits
        else:
            yield from self._on_cause(cause, waits)
        if not is_all:
            yield "so much has to be done before it that not all of that was looked at"

    def _on_cause(self, cause: Cause, waits: str) -> Iterator[str]:
        """Which one it is, why that is not there, and how much is between the two."""
        last, back = cause.task, len(cause.path)
        where = "" if last.worker is None else f" on {shown([last.worker])}"
        which = "next is" if cause.ends_by_itself else "what keeps it is"
        steps = f", {back} steps back" if back > 1 else ""
        yield f"{waits}; {which} {to_text(last.key)!r} ({last.state}{where}){steps}"
        for line in (*self._why(last), *why_again(self.state, last, self.now)):
            yield f"  {to_text(last.key)!r}: {line}"
        for between in cause.path[:-1]:
            if between in self.state.reruns:
                for line in why_again(self.state, between, self.now):
                    yield f"  {to_text(between.key)!r}: {line}"
                break
        if cause.ends_by_itself and back > 1:
            yield self._how_long(cause)

    def _how_long(self, cause: Cause) -> str:
        """What the tasks on the way take, as far as that is known."""
        work = work_in_words(work_of(map(self._known_us, cause.path)))
        return f"with that one {len(cause.path)} tasks in a row go before it, {work}"

    def _known_us(self, task: Task) -> int:
        """What it is expected to run; -1: none of its kind has ended yet."""
        return self.queuing.expected_us(task) if task.prefix.duration_us >= 0 else -1

    def _is_kept(self, task: Task) -> bool:
        """Whether a limit, memory, or workers that begin nothing keep a ready task."""
        worker, limits = task.worker, task.options.limits
        if task.state == QUEUED:
            if not self._any_takes_work:
                return True
            if limits and self.state.limits.reached(limits):
                return True
        elif task.run != NO_RUN:
            if self._blocked.lines(task.key):
                return True
        elif worker is not None and not worker.takes_work:
            return True
        return task in self.state.footprints.held

    def _shuffling(self, task: Task, missing: Sequence[Task]) -> Iterator[str]:
        """Of which shuffles it waits for shards, how many input partitions those lack, and why."""
        for barrier in (task, *missing):
            shuffle = self.state.barriers.get(barrier)
            if shuffle is None:
                continue
            nmissing = sum(d.state != MEMORY for d in barrier.dependencies)
            lost = [name for transfer, name in shuffle.lost.items() if transfer.state != MEMORY]
            again = ""
            if lost:
                verb = "is" if len(lost) == 1 else "are"
                names = list(dict.fromkeys(name or "its holder" for name in lost))
                gone = ", ".join(names[:NAMED_MAX])
                again = f"; {len(lost)} {verb} computed again, as shards went with worker {gone}"
            yield (
                f"the barrier of shuffle {shuffle.id!r} waits for {nmissing} of {shuffle.ninputs} "
                f"input partitions{again}"
            )

    def _queued(self, task: Task) -> Iterator[str]:
        """W02, W05, W07: what keeps it here, though it is ready."""
        workers = list(self.state.workers.values())
        if not workers:
            yield from self._nobody_there("")
            return
        able = [worker for worker in workers if worker.takes_work]
        if len(able) < len(workers):
            yield from not_taking(workers)
        options = task.options
        reached = self.state.limits.reached(options.limits) if options.limits else ""
        if reached:
            nruns = self.state.limits.nruns.get(reached, 0)
            yield f"of the tasks that name {reached!r} no more may run at once: {nruns} do"
        for holder in holders_outside(self.state, task) if options.inside else ():
            yield (
                f"{to_text(holder.key)!r}, which has submitted it, has what it needs, and keeps "
                "that until it ends: if it waits for this one, it may wait for ever"
            )
        if options.workers:
            named = self.state.workers_named(options.workers)
            able = [w for w in able if w in named or options.allow_other_workers]
        if options.resources:
            enough = [w for w in able if offers(w, options.resources)]
            free = [w for w in enough if has_left(w, options.resources)]
            needs = amounts(options.resources)
            yield (
                f"it needs {needs}: {len(enough)} of {len(able)} workers have so much, "
                f"{len(free)} of them have it left now"
            )
            able = free
        open_ones = [worker for worker in able if self.queuing.has_room(worker)]
        if task.prefix.weighs:
            for worker in islice(open_ones, NAMED_MAX):
                why = self.admission.why_not(task, worker, self.now)
                if why:
                    yield f"{shown([worker])}: {why}"
        if able and not open_ones:
            nthreads = sum(worker.nthreads for worker in able)
            yield f"the {nthreads} threads of {shown(able)} have enough to do"
        yield from self._lines.ahead(task)

    def _nobody_there(self, waited: str) -> Iterator[str]:
        """W12: and what clusters that adapt do about it."""
        yield f"no worker is there{waited}"
        for client, said in self.state.adapting.items():
            yield f"{client.name} adapts: {said}"

    def _unrunnable(self, task: Task) -> Iterator[str]:
        """W05, W06, W12: nobody who is there may run it."""
        workers = list(self.state.workers.values())
        since = self.state.unrunnable.get(task)
        seconds = 0.0 if since is None else self.now - since
        waited = f", for {format_seconds(seconds)} now" if seconds >= JUST_NOW_SECONDS else ""
        if not workers:
            yield from self._nobody_there(waited)
            return
        options = task.options
        candidates = workers
        if options.workers:
            named = self.state.workers_named(options.workers)
            names = ", ".join(map(str, options.workers[:NAMED_MAX]))
            if not named:
                yield (
                    f"it may run on {names} only, and none of that name or address is there"
                    f"{waited}; there are {shown(workers)}"
                )
                if not options.allow_other_workers:
                    return
            else:
                candidates = list(named)
        yield from not_taking(candidates)
        if options.resources:
            most = ", ".join(
                f"{name}={max(worker.resources.get(name, 0.0) for worker in candidates):g}"
                for name in options.resources
            )
            yield (
                f"it needs {amounts(options.resources)} of one worker, and none has so much"
                f"{waited}; the most that one has: {most}"
            )

    def _on_its_worker(self, task: Task) -> Iterator[str]:
        """W03, W04, W10, W11: how far it is where it was placed."""
        worker = task.worker
        if worker is None:
            return
        backlog = self._backlogs.of(worker, self._known_us)
        if task.run == NO_RUN:
            ahead = backlog.before(task)
            work = f", {work_in_words(ahead, worker.nthreads)}" if ahead.ntasks else ""
            if ahead.ntasks or backlog.is_all:
                at_least = "" if backlog.is_all else "at least "
                before = f"{at_least}{ahead.ntasks} tasks go before it there{work}"
            else:
                before = "others may go before it there"
            yield (
                f"it is placed on {shown([worker])} and not sent: {before}; another worker may "
                "take it"
            )
            if not worker.takes_work:
                yield from not_taking([worker])
            elif task.prefix.weighs:
                why = self.admission.why_not(task, worker, self.now)
                if why:
                    yield why
            return
        blocked = self._blocked.lines(task.key)
        if task.run in worker.executing:
            yield self._executing(task, worker, worker.executing[task.run], bool(blocked))
        elif backlog.nsent_before(task) >= worker.nbegun_max:
            yield f"{shown([worker])} has it, and runs {worker.nthreads} others first"
        elif backlog.is_all:
            yield f"{shown([worker])} runs it, or fetches what it needs{self._expected(task)}"
        else:
            yield f"{shown([worker])} has it, and may run others first"
        yield from blocked
        yield from self._fetched(task, worker)

    def _executing(self, task: Task, worker: Worker, since: float, is_blocked: bool) -> str:
        """W11: for how long, which may be far longer than is usual."""
        seconds = self.now - since
        usual = task.prefix.duration_us * 1e-6
        far = seconds >= max(FAR_LONGER * usual, 1.0) and usual >= 0 and not is_blocked
        return (
            f"{shown([worker])} has been executing it for {format_seconds(seconds)} or more"
            f"{self._expected(task)}{_limit_of(task)}"
            f"{': far less. `client.call_stack` shows where it is' if far else ''}"
        )

    def _fetched(self, task: Task, worker: Worker) -> Iterator[str]:
        """How much of what a task needs comes from elsewhere."""
        inputs = task.dependencies[: self._ninputs_left]
        self._ninputs_left -= len(inputs)
        lacks = [d for d in inputs if d.value is None and d not in worker.has_what]
        if lacks:
            at_least = "" if len(inputs) == len(task.dependencies) else "at least "
            nbytes = sum(max(0, d.nbytes) for d in lacks)
            holders = dict.fromkeys(h for d in lacks for h in islice(d.who_has or (), NAMED_MAX))
            yield (
                f"{at_least}{len(lacks)} inputs come from elsewhere, {format_nbytes(nbytes)} "
                f"from {shown(holders)}"
            )

    def _expected(self, task: Task) -> str:
        if task.prefix.duration_us < 0:
            return " (no such task has ended yet)"
        return f"; such take {format_seconds(self.queuing.expected_us(task) * 1e-6)}"

    def _held(self, task: Task) -> str:
        size = format_nbytes(max(0, task.nbytes))
        if task.who_has:
            return f"its result, {size}, is on {shown(task.who_has)}"
        return f"its result, {size}, is with the scheduler"

    def _story(
        self,
        task: Task,
        records: Sequence[Transition],
        moves: Sequence[tuple[float, Key, WorkerId, WorkerId]],
    ) -> Iterator[str]:
        """Where it was placed the last time, and why."""
        placed = next((r for r in reversed(records) if r.finish == PROCESSING and r.why), None)
        if placed is None:
            return
        number, reason = divmod(placed.why, reasons.STEPS)
        because = PLACED_BECAUSE.get(reason, "")
        yield f"placed {self._ago(placed.at)} on {self._name(WorkerId(number))}: {because}"
        for at, _, victim, thief in moves:
            if at >= placed.at:
                yield (
                    f"taken {self._ago(at)} by {self._name(thief)}, which had "
                    f"nothing to do, from {self._name(victim)}, which would have come to it later"
                )

    def _ago(self, at: float) -> str:
        seconds = self.now - at
        return f"{format_seconds(seconds)} ago" if seconds >= JUST_NOW_SECONDS else "just now"

    def _name(self, number: WorkerId) -> str:
        worker = self.state.worker_by_id.get(number)
        return "a worker that has left" if worker is None else shown([worker])


def holders_outside(state: SchedulerState, task: Task) -> Iterator[Task]:
    """The tasks that have submitted this one, directly or not, and that have now something of what
    it needs: places of its limit, or resources."""
    needs = {*task.options.limits, *task.options.resources}
    for _ in range(NESTING_MAX):
        outer = state.tasks.get(task.options.inside) if task.options.inside else None
        if outer is None:
            return
        task = outer
        if task.state == PROCESSING and task.run != NO_RUN:
            has = task.options
            if not (needs.isdisjoint(has.limits) and needs.isdisjoint(has.resources)):
                yield task


def _limit_of(task: Task) -> str:
    """When a run of it is ended."""
    timeout = task.options.timeout
    return f"; it is ended after {format_seconds(timeout)}" if timeout else ""


def _state_of(task: Task) -> str:
    if task.state == PROCESSING:
        return "placed (processing)" if task.run == NO_RUN else "sent (processing)"
    return task.state
