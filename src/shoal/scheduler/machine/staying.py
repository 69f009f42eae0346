"""Results that can't be moved: what needs them runs where they are."""

from collections.abc import Sequence

from shoal.ids import TaskId
from shoal.scheduler.machine.core import Core
from shoal.scheduler.model.entities import Task, Worker


def stays_with(core: Core, task: Task, asker: Worker, immovable: Sequence[TaskId]) -> bool:
    """`asker` can't get these inputs of `task`, such as a result with an open socket: have it run
    on a holder of them.  False if none of those may, or if that was tried before.

    Cost: O(workers).
    """
    state, options = core.state, task.options
    task.nfetch_failures += 1
    if task.nfetch_failures >= core.settings.fetch_attempts_max:
        return False
    holders: list[Worker] = []
    for number in immovable:
        dependency = state.task_by_id.get(number)
        holders += (dependency and dependency.who_has) or ()
    if options.workers and not options.allow_other_workers:
        named = state.workers_named(options.workers)
        holders = [holder for holder in holders if holder in named]
    kept = [holder for holder in holders if holder is not asker and holder.takes_work]
    if kept:
        others = [worker for worker in state.workers.values() if worker not in kept]
        state.avoided[task] = dict.fromkeys(others)  # no holder, though it was avoided before
    return bool(kept)
