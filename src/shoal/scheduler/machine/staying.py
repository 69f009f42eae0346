"""Results that can't be moved: what needs them runs where they are."""

from collections.abc import Sequence

from msgspec.structs import replace

from shoal.ids import TaskId
from shoal.scheduler.machine.core import Core
from shoal.scheduler.model.demands import is_demanding
from shoal.scheduler.model.entities import Task, Worker


def stays_with(core: Core, task: Task, asker: Worker, immovable: Sequence[TaskId]) -> bool:
    """`asker` can't get these inputs of `task`, such as a result with an open socket: have it run
    on a holder of them.  False if none of those may, or if that was tried too often.

    One that needs resources, or is limited, is for those holders from now on, unless they go: else
    it would be sent to whoever has something left, again and again, before they have.

    Cost: O(workers).
    """
    state, options = core.state, task.options
    task.nfetch_failures += 1
    if task.nfetch_failures >= core.settings.fetch_attempts_max:
        return False
    holders: list[Worker] = []
    for number in immovable:
        dependency = state.task_by_id.get(number)
        if dependency is None:
            continue
        if not dependency.who_has or asker in dependency.who_has:
            return True  # it was lost meanwhile, and is made anew, or was by `asker`
        holders += dependency.who_has
    is_bound = bool(options.workers) and not options.allow_other_workers
    if is_bound:
        named = state.workers_named(options.workers)
        holders = [holder for holder in holders if holder in named]
    kept = [holder for holder in holders if holder.takes_work]
    if kept:
        others = [worker for worker in state.workers.values() if worker not in kept]
        state.avoided[task] = dict.fromkeys(others)  # no holder, though it was avoided before
        if is_demanding(options) and not is_bound:
            places = [worker.address for worker in kept]
            task.options = replace(options, workers=places, allow_other_workers=True)
    return bool(kept)
