"""Ready tasks that no connected worker may run, and how long they wait before they fail.

For ever, unless it is set: a worker may still come.  The time of one that only some workers may run
counts from when none of those was left; that of tasks that any worker may run from when there was
none at all, while one of them waited.
"""

from collections import deque
from collections.abc import Iterable, Iterator

from shoal.errors import NoValidWorkerError, NoWorkerError
from shoal.protocol.exceptions import to_failure
from shoal.protocol.keys import to_text
from shoal.protocol.messages import Failure
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.machine.telling import NAMES_MAX, SCHEDULER, report
from shoal.scheduler.machine.waiting import fail
from shoal.scheduler.model.entities import NO_WORKER, QUEUED, Task, Worker
from shoal.scheduler.model.state import SchedulerState

ERRORS_MAX = 1000
"""Tasks of one step that get an error of their own, which takes 0.1 ms; the others share one."""

STALE_MAX = 256
"""Entries of tasks that wait no more which are kept beside as many live ones."""


def strand(core: Core, task: Task) -> None:
    """No connected worker may run this ready task: it waits for another to come.

    If it did so before this step, its time goes on from then.
    """
    core.move(task, NO_WORKER)
    state, before = core.state, core.stranded_before.pop(task, None)
    since = state.unrunnable[task] = core.now if before is None else before
    told_after = core.settings.stranded_warning_seconds
    if before is None and told_after is not None:
        state.untold.append((since, task))
        if len(state.untold) > 2 * len(state.unrunnable) + STALE_MAX:
            due = (entry for entry in state.untold if _waits_since(state, *entry))
            state.untold = deque(dict.fromkeys(due))
        core.wake_by(since + told_after)
    seconds = core.settings.no_workers_seconds
    if seconds is None:
        return
    core.wake_by(since + seconds)
    if before is None:
        state.stranded.append((since, task))
        if len(state.stranded) > 2 * len(state.unrunnable) + STALE_MAX:
            live = (entry for entry in state.stranded if _waits_since(state, *entry))
            state.stranded = deque(dict.fromkeys(live))


def _waits_since(state: SchedulerState, since: float, task: Task) -> bool:
    """Whether an entry of `stranded` still holds."""
    return state.unrunnable.get(task) == since


def watch_queue(core: Core, gone: Worker | None = None) -> None:
    """Note since when tasks are queued while there is nobody to run them.

    To be called only if the wait is limited.  Cost: O(workers).

    Args:
        gone: who is about to be removed.
    """
    state = core.state
    seconds = core.settings.no_workers_seconds
    if seconds is None or state.workerless_since is not None or state.queue.peek() is None:
        return
    workers = state.workers.values()
    if not any(worker is not gone and not worker.is_leaving for worker in workers):
        state.workerless_since = core.now
        core.wake_by(core.now + seconds)


def note_empty_queue(core: Core) -> None:
    """If nobody waits in the queue any more, whoever comes next has all the time there is."""
    state = core.state
    if state.workerless_since is not None and state.queue.peek() is None:
        state.workerless_since = None


def note_worker(core: Core, worker: Worker) -> None:
    """Somebody came, or stays after all: what is queued will be run."""
    core.state.workerless_since = None


def on_worker_gone(core: Core, worker: Worker) -> None:
    """It may have been the last."""
    if core.settings.no_workers_seconds is not None:
        watch_queue(core, worker)


def fail_overdue(core: Core) -> None:
    """Those that have waited long enough fail, and what depends on them.

    Cost: O(those), and those that wait no more.
    """
    seconds = core.settings.no_workers_seconds
    if seconds is None:
        return
    state = core.state
    overdue: list[Task] = []
    stranded = state.stranded
    while stranded and stranded[0][0] + seconds <= core.now:
        since, task = stranded.popleft()
        if _waits_since(state, since, task):
            del state.unrunnable[task]
            overdue.append(task)
    since_queued = state.workerless_since
    if since_queued is not None and since_queued + seconds <= core.now:
        state.workerless_since = None
        overdue.extend(iter(state.queue.pop, None))
    if overdue:
        names = {to_text(task.key) for task in overdue[:NAMES_MAX]}
        report(core, (SCHEDULER,), "no-workers-timeout-exceeded", keys=names)
        _fail_all(core, overdue, seconds)
    while stranded and not _waits_since(state, *stranded[0]):
        stranded.popleft()
    if stranded:
        core.wake_by(stranded[0][0] + seconds)
    if state.workerless_since is not None:
        core.wake_by(state.workerless_since + seconds)


def _fail_all(core: Core, tasks: Iterable[Task], seconds: float) -> None:
    failure: Failure | None = None
    for count, task in enumerate(tasks):
        if failure is None or count < ERRORS_MAX:
            failure = to_failure(_error_of(task, seconds), task.key)
        fail(core, task, failure)


def _error_of(task: Task, seconds: float) -> Exception:
    options, key = task.options, to_text(task.key)
    if task.state == QUEUED:
        return NoWorkerError(key, seconds)
    return NoValidWorkerError(key, (), options.workers, options.resources, seconds)


def stranded_are_timed(state: SchedulerState) -> Iterator[str]:
    """Where the wait is limited, each that waits is known by its time, and the times rise."""
    if state.settings.no_workers_seconds is None:
        return
    times = [since for since, _ in state.stranded]
    if times != sorted(times):
        yield "stranded tasks are not in the order of their times"
    timed = dict.fromkeys(state.stranded)
    for task, since in state.unrunnable.items():
        if (since, task) not in timed:
            yield f"nobody sees to it that {task!r} fails in time"


HANDLERS = Handlers(
    worker_joined=note_worker,
    worker_gone=on_worker_gone,
    woken=fail_overdue,
    invariant=stranded_are_timed,
)
