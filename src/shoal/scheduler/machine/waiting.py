"""From released to ready, and to failed: what a task needs before it can run."""

from shoal.errors import ActorReleased, DataLost
from shoal.protocol.exceptions import to_failure
from shoal.protocol.keys import to_text
from shoal.protocol.messages import Failure, TaskErred
from shoal.scheduler.machine.core import Core
from shoal.scheduler.model.entities import (
    ERRED,
    MEMORY,
    NEEDS_INPUTS,
    NO_WORKER,
    PROCESSING,
    RELEASED,
    WAITING,
    Task,
)


def start_all(core: Core) -> None:
    """Begin every noted task that is still needed, and what it needs, however deep.

    One that nobody needs, since what depends on it has failed at once, is let go; one that a worker
    has from before is noted, and waits.
    """
    orphans = core.state.orphans.by_key
    while core.starting:
        task = core.starting.pop()
        if task.state == RELEASED:
            if not task.is_needed:
                core.releasing.append(task)
            elif orphans and task.key in orphans:
                core.adopting.append(task)
            else:
                begin(core, task)


def begin(core: Core, task: Task) -> None:
    """Wait for `task`'s inputs, which are started in turn; ready if there is none to wait for."""
    if task.nbytes >= 0 and task.options.actor:  # it has lived, and what it knew is gone
        fail(core, task, to_failure(ActorReleased(to_text(task.key), "", ""), task.key))
        return
    for dependency in task.dependencies:
        if dependency.state == ERRED:
            assert dependency.failure is not None
            fail(core, task, dependency.failure)
            return
    awaited = core.state.scattering, core.state.withheld
    if task.code is None and not any(task in one for one in awaited):  # it was let go of before
        fail(core, task, to_failure(DataLost(task.key, ""), task.key))
        return
    core.move(task, WAITING)
    for dependency in task.dependencies:
        dependency.nwaiters += 1
    if task.code is not None:
        count_missing_inputs(core, task)


def count_missing_inputs(core: Core, task: Task) -> None:
    """Set how many inputs a waiting task waits for; note it as ready if there are none."""
    nwaiting = 0
    for dependency in task.dependencies:
        if dependency.state != MEMORY:
            nwaiting += 1
            if dependency.state == RELEASED:
                core.starting.append(dependency)
    task.nwaiting = nwaiting
    if nwaiting == 0:
        core.ready.append(task)


def wait_again(core: Core, task: Task) -> None:
    """Go back to waiting from a later state; nothing is placed any more."""
    if task.state == PROCESSING:
        assert task.worker is None
    if task.state == NO_WORKER:
        core.stranded_before[task] = core.state.unrunnable.pop(task)
    for dependency in task.dependencies:
        if dependency.state == ERRED:
            assert dependency.failure is not None
            assert task.state == PROCESSING, "what was not sent waits again before an input fails"
            fail(core, task, dependency.failure)
            return
    core.move(task, WAITING)
    count_missing_inputs(core, task)


def stop_needing_inputs(core: Core, task: Task) -> None:
    """`task` leaves the states that need inputs: those that only it was after may be released."""
    for dependency in task.dependencies:
        dependency.nwaiters -= 1
        if dependency.nwaiters == 0:
            core.releasing.append(dependency)


def fail(core: Core, task: Task, failure: Failure) -> None:
    """`task` and everything that waits for it fail with `failure`.  Cost: O(those).

    None of them is placed any more.
    """
    failing = [task]
    while failing:
        task = failing.pop()
        if task.state == ERRED:
            continue
        assert task.worker is None
        if task.state in NEEDS_INPUTS:
            stop_needing_inputs(core, task)
        core.move(task, ERRED)
        if core.state.reruns:
            core.state.reruns.pop(task, None)
        if task.code is None:
            core.state.withheld.pop(task, None)
        task.failure = failure
        task.prefix.nfailed += 1
        for client, number in task.wants:
            core.to_client(client, TaskErred(number, failure))
        if task.dependents is not None:
            failing.extend(d for d in task.dependents if d.state == WAITING)
        if not task.is_needed:
            core.releasing.append(task)
