"""What clients want done about results: failed ones tried again, others copied and moved."""

from collections.abc import Iterable, Iterator, Mapping

from shoal.ids import Key
from shoal.protocol.holding import RebalanceTasks, ReplicateTasks, RetryTasks, TaskRetried
from shoal.scheduler.machine.copying import (
    attend,
    attend_in_turn,
    begin_copies,
    call_when_copied,
    note_patience,
)
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.finishing import tell
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.machine.reducing import note_copies
from shoal.scheduler.machine.releasing import settle_all
from shoal.scheduler.machine.telling import ALL, report
from shoal.scheduler.model.copies import CopyCall, Goal
from shoal.scheduler.model.entities import ERRED, MEMORY, NO_RUN, RELEASED, Client, Task, Worker
from shoal.scheduler.policies.rebalance import EvenOut


def on_retry_tasks(core: Core, client: Client, message: RetryTasks) -> None:
    """Forget that these have failed, and what they need; whoever wants them is told.

    One that failed as not all that it needs was known can't be tried: it would run without that.
    Cost: O(what failed or is released among all that they depend on), which is looked at once.
    """
    settle_all(core)
    seen: dict[Task, None] = {}
    for number in message.tasks:
        task = client.tasks.get(number)
        if task is None:
            continue
        incomplete = core.state.incomplete
        if task.state == ERRED and task not in incomplete:
            for one in failed_anew(task, seen):
                if one not in incomplete:
                    _try_again(core, one)
        else:  # somebody else has it tried already, and it may have ended; or it never can be
            core.to_client(client, TaskRetried(number))
            tell(core, task, client, number)


def on_replicate_tasks(core: Core, client: Client, call: ReplicateTasks) -> None:
    """Have as many copies as are asked for, and no more; answered when they are there.

    They are begun as the step is settled, and in further ones if there are many.
    """
    tasks, is_complete = _in_memory(core, call.keys)
    report(core, (ALL,), "replicate", key_count=len(tasks), branching_factor=call.branching)
    copies = core.state.copies
    left = dict.fromkeys(tasks)
    for task in left:
        copies.goals[task] = Goal(call.ncopies, call.workers, call.branching)
        copies.refusals.pop(task, None)
        if task.who_has is not None and len(task.who_has) > 1:
            note_copies(core, task)
    copies.lowered.update(left)
    attend_in_turn(core, left)
    call_when_copied(core, CopyCall(client, call.request, left, answer=is_complete))


def on_rebalance_tasks(core: Core, client: Client, call: RebalanceTasks) -> None:
    """Move results until memory is even; answered when all have moved, or can't."""
    workers = _named(core, call.workers)
    asked = None if call.keys is None else dict.fromkeys(call.keys)
    movable = {worker: _movable(core, worker, asked) for worker in workers}
    coming_nbytes = core.state.copies.coming_nbytes
    moves = EvenOut(core.settings).moves(workers, movable, coming_nbytes)
    report(core, (ALL,), "rebalance", moved_keys=len(moves))
    begin_copies(
        core,
        [(move.task, move.recipient) for move in moves],
        moved_from={move.task: move.sender for move in moves},
    )
    moved = dict.fromkeys(move.task for move in moves)
    waits = CopyCall(client, call.request, moved, answer=len(moves))
    call_when_copied(core, waits)


def keep_copies(
    core: Core, task: Task, ncopies: int, workers: list[str], takers: Iterable[Worker]
) -> None:
    """A value that is about to be scattered to `takers` shall have so many copies from now on."""
    goal = core.state.copies.goals[task] = Goal(ncopies, workers, branching=2)
    goal.promised = dict.fromkeys(takers, core.now)
    attend(core)
    note_patience(core)


def failed_anew(task: Task, seen: dict[Task, None]) -> list[Task]:
    """`task` and all that failed of what it depends on, each once.

    Args:
        seen: what was looked at before, and is not again; added to.
    """
    if task in seen:
        return []
    seen[task] = None
    stack = [task]
    found: list[Task] = []
    while stack:
        one = stack.pop()
        if one.state == ERRED:
            found.append(one)
        for dependency in one.dependencies:
            if dependency.state in (ERRED, RELEASED) and dependency not in seen:
                seen[dependency] = None
                stack.append(dependency)
    return found


def _try_again(core: Core, task: Task) -> None:
    """Back to where it was before it ever ran."""
    core.move(task, RELEASED)
    task.failure = None
    task.retries = task.options.retries
    task.nfetch_failures = 0
    if task.options.actor:
        task.nbytes = -1  # another one is asked for
    if task.blame:
        task.blame = 0
        core.state.died_under.pop(task, None)
        core.state.footprints.overfilled.pop(task, None)
    for owner, number in task.wants:
        core.to_client(owner, TaskRetried(number))
    core.starting.append(task)


def _in_memory(core: Core, keys: Iterable[Key]) -> tuple[list[Task], bool]:
    """Tasks of these keys that are in memory and may be copied, and whether those are all."""
    tasks = core.state.tasks
    found: list[Task] = []
    is_complete = True
    for key in keys:
        task = tasks.get(key)
        if task is not None and task.state == MEMORY and not task.options.actor:
            found.append(task)
        else:
            is_complete = False
    return found, is_complete


def _movable(core: Core, worker: Worker, asked: Mapping[Key, None] | None) -> Iterator[Task]:
    """What may be moved away from a worker, as far as somebody wants to know.

    Args:
        asked: only these; None: any.
    """
    for task in worker.has_what:
        if (asked is None or task.key in asked) and _may_move(core, task):
            yield task


def _may_move(core: Core, task: Task) -> bool:
    """Whether there is one copy, that nothing which was sent to its holder is about to read."""
    if task.who_has is None or len(task.who_has) != 1 or task.options.actor:
        return False
    copies = core.state.copies
    if task in copies.on_way or task in copies.goals:
        return False
    holder = task.who_has[0]
    return not any(d.worker is holder and d.run != NO_RUN for d in task.dependents or ())


def _named(core: Core, names: list[str] | None) -> list[Worker]:
    """Workers that stay, of those that are named; None: of all."""
    state = core.state
    workers = state.workers.values() if names is None else state.workers_named(names)
    return [worker for worker in workers if not worker.is_leaving]


HANDLERS = Handlers(
    from_client={
        RetryTasks: on_retry_tasks,
        ReplicateTasks: on_replicate_tasks,
        RebalanceTasks: on_rebalance_tasks,
    },
)
