"""Results that some workers could not get: what needs them runs where they are.

It is noted with the result, not with each of those that need it: they may be very many.
"""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from shoal.ids import TaskId
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.model.demands import is_demanding
from shoal.scheduler.model.entities import Task, Worker
from shoal.scheduler.model.state import SchedulerState
from shoal.scheduler.policies.staying import (
    candidates,
    holders_to_wait_for,
    inputs_in_doubt,
    may_have,
)


def stays_with(core: Core, task: Task, asker: Worker, immovable: Sequence[TaskId]) -> bool:
    """`asker` can't get these inputs of `task`, such as a result with an open socket: others that
    need them are told apart by that from now on.

    Whether `task` may run on a holder of them; False if none of those may, or if that was tried too
    often.  Cost: O(holders).
    """
    state = core.state
    task.nfetch_failures += 1
    is_there_anew = False
    holders: list[Worker] = []
    for number in immovable:
        result = state.task_by_id.get(number)
        if result is None:
            continue
        if not result.who_has or result in asker.has_what:
            is_there_anew = True  # it was lost meanwhile, and is made anew, or was by `asker`
        else:
            state.witnesses.setdefault(result, {})[asker] = None
            holders += result.who_has
    if task.nfetch_failures >= core.settings.fetch_attempts_max:
        return False
    if is_there_anew:
        return True
    options = task.options
    if options.workers and not options.allow_other_workers:
        named = state.workers_named(options.workers)
        holders = [holder for holder in holders if holder in named]
    return any(holder.takes_work for holder in holders)


def able_with_inputs(core: Core, task: Task) -> list[Worker]:
    """Of the workers that may run `task`, some that can get its inputs.  Nobody, if anybody can, as
    far as is known, or if nobody can: then it is placed as any other.

    Cost: O(inputs x holders); with restrictions, O(workers that they name) as well.
    """
    state, options = core.state, task.options
    inputs = inputs_in_doubt(task, state.witnesses)
    if not inputs:
        return []
    able = candidates(task, inputs, state.loads.lowest(), state.witnesses)
    if options.workers:
        named = state.workers_named(options.workers)
        able_named = [worker for worker in named if worker.takes_work]
        able_named = [w for w in able_named if may_have(task, inputs, w, state.witnesses)]
        able = able_named or (able if options.allow_other_workers else [])
    avoided = state.avoided.get(task, {})
    return [worker for worker in able if worker not in avoided] or able


def may_get_inputs(core: Core, task: Task, worker: Worker) -> bool:
    """Whether `worker` holds or may get all inputs of `task`, as far as is known."""
    witnesses = core.state.witnesses
    return may_have(task, inputs_in_doubt(task, witnesses), worker, witnesses)


def bind_to_holders(core: Core, task: Task) -> None:
    """What needs resources, or is limited, is for who holds inputs that stay where they are, unless
    those go: else it would be sent to whoever has something left, again and again, before they
    have."""
    options, witnesses = task.options, core.state.witnesses
    if not is_demanding(options) or (options.workers and not options.allow_other_workers):
        return
    inputs = inputs_in_doubt(task, witnesses)
    if inputs and (holders := holders_to_wait_for(task, inputs, witnesses)):
        places = [holder.address for holder in holders]
        task.options = replace(options, workers=places, allow_other_workers=True)


def forget_witness(core: Core, worker: Worker) -> None:
    """What a worker could not get matters no more once it has gone.  Cost: O(such results)."""
    witnesses = core.state.witnesses
    for result, workers in list(witnesses.items()):
        workers.pop(worker, None)
        if not workers:
            del witnesses[result]


def witnesses_are_there(state: SchedulerState) -> Iterator[str]:
    """What could not be had is known, and who could not have it is there."""
    for result, workers in state.witnesses.items():
        if state.tasks.get(result.key) is not result:
            yield f"{result!r} could not be had, and has gone"
        if not workers:
            yield f"nobody could not have {result!r}"
        for worker in workers:
            if state.workers.get(worker.address) is not worker:
                yield f"{worker} could not have {result!r}, and has gone"


HANDLERS = Handlers(worker_gone=forget_witness, invariant=witnesses_are_there)
