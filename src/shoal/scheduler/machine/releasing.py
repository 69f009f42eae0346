"""Letting go: results that nobody needs are freed, tasks that nothing refers to are forgotten."""

from collections.abc import Iterable
from sys import maxsize

from shoal.protocol.messages import ForgetCode
from shoal.scheduler.machine.admitting import hold_no_more
from shoal.scheduler.machine.barriers import forget_barrier, let_go_of_inputs
from shoal.scheduler.machine.copying import drop_attention
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.keeping import let_go_of_left
from shoal.scheduler.machine.orphans import adopt_all
from shoal.scheduler.machine.placing import unplace
from shoal.scheduler.machine.waiting import start_all, stop_needing_inputs
from shoal.scheduler.model.entities import (
    ERRED,
    FORGOTTEN,
    MEMORY,
    NEEDS_INPUTS,
    NO_WORKER,
    RELEASED,
    Code,
    Task,
    Worker,
)
from shoal.scheduler.model.state import unlink_dependencies, unlink_replica


def settle_needs(core: Core) -> None:
    """Start what is needed and let go of what is not, until neither changes anything.

    What is of no use any more may be so many tasks that others would wait too long until all are
    forgotten; then the rest is due in a step of its own.
    """
    state = core.state
    if state.letting_go and not state.of_no_use:
        core.nforgets_left -= let_go_of_left(core, core.nforgets_left)
    for _ in range(min(core.nforgets_left, len(state.of_no_use))):
        core.releasing.append(state.of_no_use.popitem()[0])
    while core.starting or core.releasing or core.adopting:
        start_all(core)
        if core.adopting:
            adopt_all(core)
        release_all(core)
    if state.of_no_use or state.letting_go:
        core.wake_by(core.now)


def settle_all(core: Core) -> None:
    """As `settle_needs`, with nothing left over: for handlers that look a key up.

    A release and a new task of the same key may come in one frame, and the new task must not find
    the old one.  Cost: O(tasks that are due).
    """
    state = core.state
    if core.releasing or state.of_no_use or state.letting_go:
        while state.letting_go:
            let_go_of_left(core, len(state.tasks) + 1)
        core.nforgets_left = maxsize
        settle_needs(core)


def release_all(core: Core) -> None:
    """Let go of every noted task that is indeed not needed, and of what only it needed."""
    while core.releasing:
        task = core.releasing.pop()
        if task.state == FORGOTTEN or task.is_needed:
            continue
        if task.who_has and len(task.who_has) > 1 and not _drop_surplus(core, task, task.who_has):
            core.state.of_no_use[task] = None
            continue
        if task.state not in (RELEASED, ERRED):
            _release(core, task)
        if task.dependents is not None:
            continue
        if core.nforgets_left > 0:
            core.nforgets_left -= 1
            _forget(core, task)
        else:
            core.state.of_no_use[task] = None


def drop_user(core: Core, code: Code) -> None:
    """A code has one user less; without any it is gone, here and on the workers."""
    code.nusers -= 1
    if code.nusers == 0:
        for worker in code.told:
            del worker.told[code]
            core.to_worker(worker, ForgetCode([code.id]))
        code.told.clear()
        del core.state.codes[code.id]


def _drop_surplus(core: Core, task: Task, holders: list[Worker]) -> bool:
    """Free copies of a result until few enough are left for this step to free them all.

    To tell ten thousand workers would keep us from everything else; False if the rest is due later,
    until when it is had as before.
    """
    if len(holders) <= max(1, core.nforgets_left):
        return True
    _free_copies(core, task, holders[: core.nforgets_left])
    core.nforgets_left = 0
    return False


def _free_copies(core: Core, task: Task, holders: Iterable[Worker]) -> None:
    """Have these drop the result.  `holders`: no list that changes with it."""
    for worker in holders:
        unlink_replica(task, worker)
        core.free(worker, task.id)


def _release(core: Core, task: Task) -> None:
    """End what is done for `task`, and drop its result."""
    if task.worker is not None:
        unplace(core, task, recall=True)
    if task.state == NO_WORKER:
        del core.state.unrunnable[task]
    if task.state in NEEDS_INPUTS:
        stop_needing_inputs(core, task)
    elif task.state == MEMORY:
        _free_copies(core, task, list(task.who_has or ()))
        task.value = None
        if core.state.barriers:
            let_go_of_inputs(core, task)
        doubled = core.state.reduction.doubled
        if doubled:
            doubled.pop(task, None)
        if core.attended is not None:
            core.attended[task] = None
    if task.code is None:
        core.state.scattering.pop(task, None)
        core.state.withheld.pop(task, None)
    core.move(task, RELEASED)


def _forget(core: Core, task: Task) -> None:
    """Take `task` out of every index; those that only it depended on may follow."""
    core.move(task, FORGOTTEN)
    if task.dependencies:
        core.releasing.extend(unlink_dependencies(task))
    state = core.state
    if state.of_no_use:
        state.of_no_use.pop(task, None)
    if state.barriers:
        forget_barrier(core, task)
    if state.incomplete:
        state.incomplete.pop(task, None)
    if task.blame:
        state.died_under.pop(task, None)
        state.footprints.overfilled.pop(task, None)
    if state.avoided:
        state.avoided.pop(task, None)
    if state.withheld:
        state.withheld.pop(task, None)
    if state.reruns:
        state.reruns.pop(task, None)
    if state.witnesses:
        state.witnesses.pop(task, None)
    if state.orphans.named:
        state.orphans.named.pop(task, None)
    if state.footprints.held:
        hold_no_more(core, task)
    if core.attended is not None:
        drop_attention(core, task)
    state.remove_task(task)
    if task.code is not None:
        drop_user(core, task.code)
        task.code = None
    task.failure = None
