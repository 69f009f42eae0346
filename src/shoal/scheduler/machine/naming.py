"""Tasks that somebody wants by key alone, before anybody has said what they call.

While a scheduler recovers, or where a worker has a result from before, such a key may be known all
the same: to a worker that holds it, or to a client that is about to submit it.
"""

from shoal.ids import Key
from shoal.protocol.messages import TaskOptions
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.journaling import note_change
from shoal.scheduler.machine.placing import to_priority
from shoal.scheduler.model.entities import (
    ERRED,
    NO_OPTIONS,
    RELEASED,
    WAITING,
    Code,
    Task,
)
from shoal.scheduler.model.orphans import Orphan


def task_by_name(core: Core, key: Key) -> Task | None:
    """A task for a key that is not known as one; None if nothing can come of it."""
    orphans, recovery = core.state.orphans, core.state.recovery
    orphan = orphans.by_key.get(key)
    if orphan is None:
        if recovery is None:
            return None
        orphan = orphans.by_key[key] = Orphan()
    if recovery is not None:
        orphan.is_hoped_for = True
    task = new_scattered(core, key)
    orphans.named[task] = None
    return task


def new_scattered(core: Core, key: Key) -> Task:
    """A task without a run spec: its value comes from a client, and can't be computed again."""
    prefix = key.rpartition("-")[0] or "scattered"
    priority = to_priority(0.0, core.state.next_sequence)
    return core.state.new_task(key, None, b"", prefix, priority, NO_OPTIONS)


def give_spec(
    core: Core,
    task: Task,
    code: Code,
    argument: bytes | int,
    priority: int,
    options: TaskOptions,
) -> None:
    """Somebody says what a task calls that was known by key alone; the caller links its inputs."""
    del core.state.orphans.named[task]
    if task.state == WAITING:  # for somebody who was about to bring it
        core.state.scattering.pop(task, None)
        core.state.withheld.pop(task, None)
        core.move(task, RELEASED)
    elif task.state == ERRED:
        core.move(task, RELEASED)
        task.failure = None
    code.nusers += 1
    task.code = code
    task.argument = argument
    task.priority = priority
    task.options = options
    task.retries = options.retries
    note_change(core, task)
