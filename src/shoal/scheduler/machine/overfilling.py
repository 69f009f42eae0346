"""Workers that died as their memory was full, and what no worker has enough memory for.

What ran on such a worker runs alone next, then on the worker with the most memory, and then it has
failed, with numbers.  What was seen of it before the death is what its prefix takes at least.
"""

from collections.abc import Sequence
from typing import Final

from shoal.errors import KilledWorker
from shoal.protocol.exceptions import to_failure
from shoal.protocol.keys import to_text
from shoal.protocol.messages import RegisterWorker
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.errors import KilledByMemory, NotEnoughMemory
from shoal.scheduler.machine.journaling import note_change
from shoal.scheduler.machine.on_memory import reconsider
from shoal.scheduler.machine.waiting import fail
from shoal.scheduler.model.entities import MEMORY, Task, Worker
from shoal.scheduler.model.footprints import PLACES_KEPT, LastSeen, Overfilled
from shoal.scheduler.policies.memory import INPUTS_LOOKED_AT

FULL_RATIO: Final = 0.6
"""Of its limit: a worker that had grown to this when it died is taken to have died of it.

It tells of a run that has grown by half again, so it may have had half as much more.
"""

MORE: Final = 1.1
"""Times the memory of another: then a worker is one with more, on which it may go well."""

LAST_SEEN_MAX: Final = 1000
"""Workers that died of which it is known how they were then."""

BESIDE_RATIO: Final = 0.1
"""Of its limit: results of others that a worker had are part of why it died if they were more."""

FORGIVEN_MAX: Final = 3
"""Deaths for which a task is not blamed as there was so much beside it; more are held against it.
"""

NALONE_MAX: Final = 2
"""Deaths of workers that ran nothing else, after which nobody with as little is tried again."""


def note_death(core: Core, worker: Worker, blamed: Sequence[Task]) -> None:
    """A worker has died, and these may be the cause: learn what they take, if memory was it."""
    limit = worker.memory_limit
    if not limit or not blamed:
        return
    admission = core.admission
    others = worker.rest_bytes + admission.kept_bytes(worker)
    beside = _beside_bytes(core, worker, blamed[0]) if len(blamed) == 1 else 0
    seen = LastSeen(
        worker.address, others, admission.empty_bytes(worker), beside, nblamed=len(blamed)
    )
    last_seen = core.state.footprints.last_seen
    last_seen[worker.host, worker.pid] = seen
    if len(last_seen) > LAST_SEEN_MAX:
        del last_seen[next(iter(last_seen))]
    gauged = {weight.task: weight.gauged_bytes for weight in worker.weights.values()}
    nbytes = max(worker.memory_bytes, others + sum(gauged.values()))
    if nbytes < FULL_RATIO * limit:
        return  # if it was memory all the same, its nanny will say so
    is_one_kind = len({task.prefix.name for task in blamed}) == 1
    share = max(0, limit - others) // len(blamed) if is_one_kind else 0
    for task in blamed:
        _learn_at_least(core, task, max(share, gauged.get(task, 0)))
        _note_place(core, task, seen, nbytes, limit)


def hear_of_death(core: Core, victim: tuple[str, int], message: RegisterWorker) -> None:
    """A nanny says what a worker died of: its memory, with numbers that nobody had, or not that.

    `victim`: its host and process id.
    """
    seen = core.state.footprints.last_seen.pop(victim, None)
    if seen is None:
        return
    nbytes = message.predecessor_memory_bytes
    limit = message.predecessor_limit_bytes or message.memory_limit
    for task, victims in core.state.died_under.items():
        if victim in victims:
            _forget_place(core, task, seen)
            if nbytes:
                _note_place(core, task, seen, nbytes, limit)
            if nbytes and seen.nblamed == 1 and task.state != MEMORY:
                _learn_at_least(core, task, max(0, nbytes - seen.others_bytes))


def _beside_bytes(core: Core, worker: Worker, task: Task) -> int:
    """Results in its memory that `task` had no need of, and that could have been on disk."""
    inputs = task.dependencies[:INPUTS_LOOKED_AT]
    needed = sum(each.nbytes for each in inputs if each in worker.has_what and each.nbytes > 0)
    return max(0, core.admission.kept_bytes(worker) - needed)


def _had_room_without(core: Core, seen: LastSeen, nbytes: int, limit: int) -> bool:
    """Whether the worker would have lived if results of others had been on disk."""
    beside = seen.beside_bytes
    return beside >= BESIDE_RATIO * limit and nbytes - beside <= core.admission.pause_ratio * limit


def _learn_at_least(core: Core, task: Task, nbytes: int) -> None:
    """Such runs take so much, or more: one goes first, as if nothing was known of them."""
    prefix = task.prefix
    prefix.peak_bytes = max(prefix.peak_bytes, nbytes)
    prefix.ngauged = 0
    reconsider(core, prefix)


def _note_place(core: Core, task: Task, seen: LastSeen, nbytes: int, limit: int) -> None:
    """Memory was full there, as the task ran."""
    over = core.state.footprints.overfilled.setdefault(task, Overfilled())
    over.places = [*over.places[1 - PLACES_KEPT :], (seen.address, nbytes, limit)]
    if _count(core, over, seen, (nbytes, limit), 1):
        over.roomiest_bytes = max(over.roomiest_bytes, seen.empty_bytes)


def _count(
    core: Core, over: Overfilled, seen: LastSeen, place: tuple[int, int], ntimes: int
) -> bool:
    """It was full there once more, or, for -1, it was not after all; `place`: bytes and limit.

    Returns whether it counts against the task: it ran alone, and nothing else could have gone.
    """
    if seen.nblamed != 1:
        return False
    if _had_room_without(core, seen, *place):
        over.nbeside += ntimes
        return False
    over.nalone += ntimes
    return True


def _forget_place(core: Core, task: Task, seen: LastSeen) -> None:
    """What was guessed of a death is not so, or not known as well as it is now."""
    overfilled = core.state.footprints.overfilled
    over = overfilled.get(task)
    if over is None or all(place[0] != seen.address for place in over.places):
        return
    place = next(p for p in reversed(over.places) if p[0] == seen.address)
    over.places.remove(place)
    _count(core, over, seen, place[1:], -1)
    if not over.places:
        del overfilled[task]


def is_hopeless(core: Core, task: Task, gone: Worker) -> bool:
    """Whether the task is not run again, now that `gone` has died under it.

    Too many have; or it fills any worker that is there, as far as was seen.  Deaths of workers that
    had room for it, but for results of others, are not held against it: a few of them.
    """
    allowed = core.settings.allowed_failures
    over = core.state.footprints.overfilled.get(task)
    forgiven = 0 if over is None else min(over.nbeside, FORGIVEN_MAX, allowed)
    if task.blame - forgiven > allowed:
        return True
    if over is None or over.nalone < NALONE_MAX:
        return False
    names = task.options.workers
    able = core.state.workers_named(names) if names else core.state.workers.values()
    return not any(
        core.admission.empty_bytes(worker) > MORE * over.roomiest_bytes
        for worker in able
        if worker.takes_work and worker is not gone
    )


def blame(core: Core, task: Task, worker: Worker) -> None:
    """It may have been executing on `worker`, which died."""
    task.blame += 1
    note_change(core, task)
    core.state.died_under.setdefault(task, []).append((worker.host, worker.pid))


def killed(core: Core, task: Task, worker: Worker, reason: str) -> KilledWorker:
    """The error of a task under which workers died, the last of them `worker`.

    What they died of is told as far as it is known: their successors may not have told yet.
    """
    victims, deaths = core.state.died_under.get(task, ()), core.state.deaths
    causes = [deaths[victim] for victim in victims if victim in deaths]
    over = core.state.footprints.overfilled.get(task)
    if over is None:
        return KilledWorker(task.key, worker.address, task.blame, reason, causes)
    return KilledByMemory(
        task.key, worker.address, task.blame, reason, causes, over.places, over.nalone
    )


def needs_roomiest(core: Core, task: Task) -> bool:
    """Whether it filled a worker, by itself but for results, so that only one with more may do."""
    over = core.state.footprints.overfilled.get(task)
    return over is not None and over.nalone + over.nbeside > 0


def fail_if_too_large(core: Core, task: Task) -> bool:
    """Fail a ready task whose inputs no worker has memory for together; whether it was one.

    A lone input is with a worker that had memory for it, so one that claims more is no more: an
    object says what it likes of its size, and an array that repeats one number takes next to none.
    """
    nbytes = sum(max(0, dependency.nbytes) for dependency in task.dependencies)
    limit = core.state.footprints.limit_max
    if not limit or nbytes <= limit or len(task.dependencies) == 1:
        return False
    largest = sorted(task.dependencies, key=lambda dependency: -dependency.nbytes)[:3]
    error = NotEnoughMemory(
        to_text(task.key),
        nbytes,
        limit,
        [(to_text(dependency.key), dependency.nbytes) for dependency in largest],
        len(task.dependencies),
    )
    fail(core, task, to_failure(error, task.key))
    return True
