"""Tasks that may take much memory: they are sent where there is room for them, and else held.

Queued ones have queues of their own, a line for each prefix that weighs and each size said,
so that what takes less passes them.  One that was passed for long, and one under which a worker
died, has a worker kept for it: what takes much and is less urgent is not sent there any more, and
nothing at all if it needs the worker for itself.
"""

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from itertools import islice
from typing import Final, TypeAlias

from shoal.ids import TaskId
from shoal.scheduler.machine.core import Core
from shoal.scheduler.model.demands import is_demanding
from shoal.scheduler.model.entities import NO_RUN, PROCESSING, QUEUED, Task, Weight, Worker
from shoal.scheduler.model.footprints import Footprints, Held, Line, line_of
from shoal.scheduler.model.queue import TaskQueue
from shoal.scheduler.policies.memory import HELD_SECONDS, calms_at

HEADS_MAX: Final = 16
"""Lines of which one worker is offered the most urgent task."""

OFFERS_MAX: Final = 500
"""Times that a worker is offered tasks in one step: at worst a few milliseconds."""

SIFTED_MAX: Final = 256
"""Tasks that one look at the queue moves to the queues of those that weigh."""

_Head: TypeAlias = tuple[int, TaskId, Task, Line]
"""Priority, number, and the most urgent queued task of a line of those that weigh."""

STALE_MAX: Final = 256
"""Entries of tasks that have gone which such a queue may keep beside as many live ones."""


def queue_heavy(core: Core, task: Task) -> None:
    """Put a task whose state is queued, and whose prefix weighs, where it waits for room."""
    footprints = core.state.footprints
    line = line_of(task)
    queue = footprints.queues.get(line)
    if queue is None:
        queue = footprints.queues[line] = TaskQueue()
    head = queue.peek()
    queue.push(task)
    if head is None or task.priority < head.priority:
        heappush(footprints.heads, (task.priority, task.id, task, line))
        core.has_new_heavy = True
    if queue.nentries > 2 * task.prefix.ntasks[QUEUED] + STALE_MAX:
        queue.compact()


def light_head(core: Core) -> Task | None:
    """The most urgent task of the queue, once those that weigh were moved to queues of their own.

    None also if there are more of those than one look moves; the others' turn comes at once.
    """
    queue, footprints = core.state.queue, core.state.footprints
    if not (footprints.is_mixed and footprints.is_limited):
        return queue.peek()
    for _ in range(SIFTED_MAX):
        task = queue.peek()
        if task is None:
            footprints.is_mixed = False
        if task is None or not task.prefix.weighs:
            return task
        queue.pop()
        queue_heavy(core, task)
    core.wake_by(core.now)
    return None


def heavies_for(core: Core, before: int | None) -> Iterator[tuple[Task, Worker]]:
    """Queued tasks that weigh, each with a worker that has room for it: the caller sends it.

    Workers take turns, the least loaded first, and each takes the most urgent that it has memory
    for.  Only workers about which something is new are asked, unless there is a new task; and so
    many in one step, the others in the next.

    Args:
        before: only tasks more urgent than this priority.
    """
    is_open = core.state.open
    if core.has_new_heavy:
        workers = list(is_open.from_lowest())
    else:
        workers = [worker for worker in core.refill if worker in is_open]
    asked = dict.fromkeys(workers)
    while workers:
        again: list[Worker] = []
        for worker in workers:
            if not core.queuing.has_room(worker):
                continue
            if core.noffers_left <= 0:
                ask_later(core, worker)
                continue
            core.noffers_left -= 1
            task = next_heavy(core, worker, before)
            if task is not None:
                yield task, worker
                again.append(worker)
        if not again and core.roomier is not None and core.roomier not in asked:
            again.append(core.roomier)  # for which others have left a task
            asked[core.roomier] = None
        core.roomier = None
        workers = again


def next_heavy(core: Core, worker: Worker, before: int | None) -> Task | None:
    """The most urgent queued task that weighs and that `worker` has room for, taken out.

    None if there is none that is more urgent than `before`, or at the head of the first few lines.
    """
    footprints = core.state.footprints
    passed: list[_Head] = []
    found: Task | None = None
    line: Line | None = None
    while (entry := _next_head(footprints, passed)) is not None:
        _, _, task, line = entry
        if before is not None and task.priority >= before:
            break
        if core.queuing.must_wait(task, worker):
            hold(core, task, worker)
        elif may_begin(core, task, worker, waits_for_roomier=True):
            passed.pop()
            found = task
            break
    for entry in passed:
        heappush(footprints.heads, entry)
    if found is not None and line is not None:
        queue = footprints.queues[line]
        queue.pop()
        following = queue.peek()
        if following is None:
            del footprints.queues[line]
        else:
            heappush(footprints.heads, (following.priority, following.id, following, line))
    return found


def next_bound(core: Core, before: int | None) -> int | None:
    """The priority of the most urgent that was not asked for yet, as it is less urgent."""
    if before is None:
        return None
    footprints = core.state.footprints
    passed: list[_Head] = []
    bound: int | None = None
    while bound is None and (entry := _next_head(footprints, passed)) is not None:
        bound = entry[0] if entry[0] >= before else None
    for entry in passed:
        heappush(footprints.heads, entry)
    return bound


def _next_head(footprints: Footprints, passed: list[_Head]) -> _Head | None:
    """Of the lines of those that weigh, the one whose head is most urgent.

    It is taken out of the heap, and added to `passed`; None once those are many.
    Cost: O(log lines), and once for each entry that does not hold any more.
    """
    heads, queues = footprints.heads, footprints.queues
    while heads and len(passed) < HEADS_MAX:
        entry = heappop(heads)
        _, _, task, line = entry
        queue = queues.get(line)
        if queue is None:
            continue
        head = queue.peek()
        if head is task:
            if not passed or passed[-1][2] is not task:
                passed.append(entry)
                return entry
        elif head is None:
            del queues[line]
        elif task.state != QUEUED or line_of(task) != line:  # it has gone: the next takes its place
            heappush(heads, (head.priority, head.id, head, line))
    return None


def may_begin(core: Core, task: Task, worker: Worker, *, waits_for_roomier: bool = False) -> bool:
    """Whether `worker` has memory for a task whose prefix weighs; else that it is held is noted.

    A worker that runs nothing takes any: it has never more, unless another has.

    Args:
        waits_for_roomier: whether the task may as well run on any other.
    """
    if worker.reserved_for is not None and is_kept_from(core, task, worker):
        return False
    if core.admission.fits(task, worker, core.now):
        return True
    if is_alone(worker) and not (waits_for_roomier and _is_for_roomier(core, task, worker)):
        return True
    hold(core, task, worker)
    return False


def is_kept_from(core: Core, task: Task, worker: Worker) -> bool:
    """Whether a more urgent task waits for memory there, which `task` would take from it."""
    kept_for = worker.reserved_for
    if kept_for is None or kept_for is task:
        return False
    if not _waits_for(core, kept_for, worker):
        worker.reserved_for = None
        return False
    return kept_for.priority < task.priority


def hold(core: Core, task: Task, worker: Worker) -> None:
    """`task` has to wait, as `worker` has no room for it, and it may be passed for a while."""
    held = core.state.footprints.held.get(task)
    if held is None:
        held = core.state.footprints.held[task] = Held(core.now)
    if core.admission.is_unknown(task):
        at = calms_at(task.prefix, worker, core.now)
        if at is not None:
            core.wake_by(at)
    is_for_some = task.worker is None and is_demanding(task.options)  # whose turn others see to
    if not is_for_some and (task.blame or core.now >= held.since + HELD_SECONDS):
        _keep_worker_for(core, task, held)


def weigh(core: Core, task: Task, worker: Worker) -> None:
    """A run is sent whose prefix weighs: what it takes is counted until it has ended."""
    if core.state.footprints.held:
        hold_no_more(core, task, worker)
    if worker.memory_limit:
        prefix = task.prefix
        if not prefix.ngauged and any(w.task.prefix is prefix for w in worker.weights.values()):
            prefix.spread[worker] = None
        worker.weights[task.run] = Weight(task, core.now)


def hold_no_more(core: Core, task: Task, sent_to: Worker | None = None) -> None:
    """`task` waits for memory no more; a worker that was kept for it is there for others again.

    Unless that is where it is sent: what needs all of a worker goes on having it for itself.
    """
    footprints = core.state.footprints
    held = footprints.held.pop(task, None)
    worker = None if held is None else held.worker
    if worker is None or worker.reserved_for is not task:
        return
    worker.reserved_for = None
    if worker.runs_suspect and worker is not sent_to:
        worker.runs_suspect = any(each.blame and each.run != NO_RUN for each in worker.processing)
        ask_later(core, worker)


def ask_later(core: Core, worker: Worker) -> None:
    """There is something new about `worker`, to which another step attends."""
    core.state.footprints.unasked[worker] = None
    core.wake_by(core.now)


def ask_postponed(core: Core) -> None:
    """Attend to some of the workers that were left to this step."""
    unasked = core.state.footprints.unasked
    for worker in list(islice(unasked, OFFERS_MAX)):
        del unasked[worker]
        core.refill[worker] = None
    if unasked:
        core.wake_by(core.now)


def is_alone(worker: Worker) -> bool:
    """Whether nothing runs there but what waits for other tasks; nor a run that was given up."""
    if worker.nsent > worker.nwaiting:
        return False
    return all(run == weight.task.run for run, weight in worker.weights.items())


def look_again(core: Core) -> None:
    """Time has passed for kinds that nobody knows: ask for all that is held."""
    _ask_for_queued(core)
    for task in core.state.footprints.held:
        if task.worker is not None:
            core.refill[task.worker] = None


def look_at_known(core: Core) -> None:
    """A kind has become known: ask for all that is held, in several steps if that is much."""
    _ask_for_queued(core)
    ask_holders(core, core.state.footprints.held)


def _ask_for_queued(core: Core) -> None:
    """Offer what is queued to all workers."""
    core.has_new_heavy = True
    core.has_new_demand = core.has_new_demand or bool(core.state.demands)


def ask_holders(core: Core, held: Iterable[Task]) -> None:
    """Attend to the workers on which these are held; to some at once, to the others later."""
    for nth, task in enumerate(held):
        if task.worker is None:
            continue
        if nth < OFFERS_MAX:
            core.refill[task.worker] = None
        else:
            ask_later(core, task.worker)


def _is_for_roomier(core: Core, task: Task, worker: Worker) -> bool:
    """Whether another worker has more memory than this one, and enough.

    Cost: O(workers) once in a step.
    """
    step, best = core.roomiest
    if step != core.step:
        there = [worker for worker in core.state.workers.values() if worker.takes_work]
        best = core.admission.roomiest(there)
        core.roomiest = (core.step, best)
    if best is None or best is worker:
        return False
    if core.admission.empty_bytes(best) < core.admission.own_bytes(task):
        return False
    core.roomier = best
    return True


def _waits_for(core: Core, task: Task, worker: Worker) -> bool:
    """Whether `worker` is still kept for `task`."""
    held = core.state.footprints.held.get(task)
    waits = task.state == QUEUED or (task.state == PROCESSING and task.run == NO_RUN)
    return held is not None and held.worker is worker and waits


def _keep_worker_for(core: Core, task: Task, held: Held) -> None:
    """Let nothing that weighs and is less urgent begin where `task` shall run before it has."""
    worker = held.worker
    if task.worker is not None:
        worker = task.worker
    elif worker is None or not worker.takes_work or worker not in core.state.loads:
        free = [
            w
            for w in core.state.workers.values()
            if w.takes_work and (w.reserved_for is None or not _waits_for(core, w.reserved_for, w))
        ]
        worker = core.admission.roomiest(free)
    held.worker = worker
    if worker is None:
        return
    worker.reserved_for = task
    needs_all = task.blame > 0 or (
        core.admission.needs_bytes(task, worker) > core.admission.empty_bytes(worker)
    )
    if needs_all and worker.nsent > worker.nwaiting:
        worker.runs_suspect = True
        core.state.open.discard(worker)
