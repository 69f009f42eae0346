"""Tasks that are run again: what became of their last run, or result, is kept until they end."""

from collections.abc import Iterator

from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.model.entities import ERRED, MEMORY, Task, Worker
from shoal.scheduler.model.reruns import DIED, LOST, RAISED, SILENT, Rerun
from shoal.scheduler.model.state import SchedulerState


def note_lost(core: Core, task: Task, worker: Worker | None) -> None:
    """The result went with its last holder, if that is known; those that went together share it."""
    name = "" if worker is None else worker.name
    latest = next(reversed(core.state.reruns.values()), None)
    if latest is None or (latest.kind, latest.at, latest.worker) != (LOST, core.now, name):
        latest = Rerun(LOST, core.now, name)
    _note(core.state, task, latest)


def note_raised(core: Core, task: Task, worker: Worker, text: str) -> None:
    """It raised this, and is tried again."""
    line = text.strip().partition("\n")[0]
    _note(core.state, task, Rerun(RAISED, core.now, worker.name, line))


def note_died(core: Core, task: Task, worker: Worker) -> None:
    """Its worker was lost, to which it had been sent."""
    _note(core.state, task, Rerun(DIED, core.now, worker.name))


def note_silent(core: Core, task: Task, worker: Worker) -> None:
    """Its worker is suspect, to which it had been sent."""
    _note(core.state, task, Rerun(SILENT, core.now, worker.name))


def _note(state: SchedulerState, task: Task, rerun: Rerun) -> None:
    """The latest ones are last."""
    state.reruns.pop(task, None)
    state.reruns[task] = rerun


def are_run_again(state: SchedulerState) -> Iterator[str]:
    """What is said to be run again is known, and has not ended."""
    for task in state.reruns:
        if state.tasks.get(task.key) is not task:
            yield f"{task!r} is to be run again, and has gone"
        elif task.state in (MEMORY, ERRED):
            yield f"{task!r} is to be run again, and has ended"


HANDLERS = Handlers(invariant=are_run_again)
