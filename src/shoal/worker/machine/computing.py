"""Runs, from RunTask to their answer."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.ids import RunId, TaskId
from shoal.protocol.messages import (
    InputsUnavailable,
    RunReturned,
    RunTask,
    TaskFailed,
    TaskFinished,
)
from shoal.protocol.slots import LongRunning, RunRejoined, RunRescheduled
from shoal.worker.machine import orphans
from shoal.worker.machine.effects import EndRuns, WithdrawRuns
from shoal.worker.machine.forgetting import let_go, remove_run
from shoal.worker.machine.gathering import keep, require, revive
from shoal.worker.machine.letting_in import release, those_that_fit
from shoal.worker.machine.residing import await_values, settle
from shoal.worker.machine.state import WorkerState
from shoal.worker.model import words
from shoal.worker.model.entities import (
    FAILED,
    FINISHED,
    HANDED,
    LONG_RUNNING,
    RESCHEDULED,
    Replica,
    Run,
    RunDeprived,
    RunEnded,
)
from shoal.worker.model.words import TO_THREADS


def enter(state: WorkerState, message: RunTask) -> None:
    """Start a run, now or when its inputs have come.  Cost: O(inputs)."""
    newest = state.runs.get(message.task)
    if newest is not None and (
        newest.number == message.run or (message.task, message.run) in state.older_runs
    ):
        state.record(message.key, "told again to run it", message.run)
        return
    run = Run(message)
    if message.inputs and not _has_inputs(state, run):
        return
    if newest is None:
        state.runs[message.task] = run
    elif newest.number < message.run:
        state.older_runs[message.task, newest.number] = newest
        state.runs[message.task] = run
    else:
        state.older_runs[message.task, message.run] = run
    if run.wants is None and run.unread is None:
        state.ready.append(run)
    else:
        state.record(message.key, words.WAITS, message.run)


def _has_inputs(state: WorkerState, run: Run) -> bool:
    """Pin the inputs that are here, and want the others; False if some can't be had."""
    message = run.message
    missing: list[TaskId] = []
    pins: list[Replica] = []
    for item in message.inputs:
        if isinstance(item, int):
            replica = state.held.get(item)
            if replica is None:
                missing.append(item)
            else:
                replica.freed = False  # the scheduler counts on it again
                pins.append(replica)
        elif item.value is None:
            replica = state.held.get(item.task)
            if replica is not None:
                if replica.freed:
                    revive(state, replica)
                pins.append(replica)
            elif not require(state, run, item):
                missing.append(item.task)
    for replica in pins:
        replica.npins += 1
        if replica.residence is not None:
            replica.residence.was_used = True
    run.pins = pins
    if missing:
        let_go(state, run)
        state.outbox.append(InputsUnavailable(message.task, message.run, missing))
        state.record(message.key, words.UNAVAILABLE, message.run)
        return False
    if state.absent:
        await_values(state, run)
    return True


def hand_over(state: WorkerState) -> list[Run]:
    """The runs that this step made ready, the most urgent first; of a paused worker the one that
    is excepted, if there is one."""
    runs = state.ready
    state.ready = []
    if state.pause is not None:
        state.ready = [run for run in runs if run is not state.excepted]
        runs = [run for run in runs if run is state.excepted]
    if len(runs) > 1:
        runs.sort(key=_by_urgency)
    if state.room is not None:
        runs = those_that_fit(state, runs)
    record, now = state.story.append, state.now
    for run in runs:
        run.state = HANDED
        message = run.message
        record((now, message.key, TO_THREADS, message.run))
    return runs


def _by_urgency(run: Run) -> tuple[float, int]:
    return -run.message.urgency, run.message.sequence


def on_recall(
    state: WorkerState, pairs: Iterable[tuple[TaskId, RunId]], *, unwanted: bool = False
) -> None:
    """Give back what has not begun, and is not about to while all else waits.

    Args:
        unwanted: what has begun is ended, if it was said that it may be: it has a timeout.
    """
    withdrawn: list[Run] = []
    ending: list[Run] = []
    for task, number in pairs:
        run = state.runs.get(task)
        if run is None or run.number != number:
            run = state.older_runs.get((task, number))
        if run is None:
            continue  # its answer is under way
        if unwanted and run.timeout_seconds and run.state in (HANDED, LONG_RUNNING):
            ending.append(run)
        if run.state == HANDED:
            withdrawn.append(run)
            continue
        if run.state == LONG_RUNNING or run is state.excepted:
            continue
        if run.wants is None and run.unread is None:
            state.ready.remove(run)
        state.outbox.append(RunReturned(task, number))
        state.record(run.key, words.RETURNED, number)
        remove_run(state, run)
        let_go(state, run)
    if withdrawn:
        state.effects.append(WithdrawRuns(withdrawn))
    if ending:
        state.effects.append(EndRuns(ending))


def on_seceded(state: WorkerState, run: Run, seconds: float) -> None:
    """A run gave its slot to others; whoever counts on it is told, if there is still anybody."""
    if run.state != HANDED:
        return
    run.state = LONG_RUNNING
    if run.reserved_bytes:
        release(state, run)
    message = run.message
    state.record(message.key, LONG_RUNNING, message.run)
    if not run.abandoned:
        state.outbox.append(LongRunning(message.task, message.run, seconds))


def on_rejoined(state: WorkerState, run: Run) -> None:
    """It has a slot again."""
    if run.state != LONG_RUNNING:
        return
    run.state = HANDED
    message = run.message
    state.record(message.key, "executing again", message.run)
    if not run.abandoned:
        state.outbox.append(RunRejoined(message.task, message.run))


def on_ended(state: WorkerState, ended: Iterable[RunEnded]) -> None:
    """Runs came back from the threads: tell, and set `kept`.  Cost: O(runs and their inputs)."""
    record, now, say = state.story.append, state.now, state.outbox.append
    for end in ended:
        run = end.run
        message = run.message
        task, number = message.task, message.run
        record((now, message.key, end.how, number))
        if run.reserved_bytes:
            release(state, run)
        if run.abandoned:
            orphans.on_ended(state, end)
            continue
        newest = state.runs.get(task)
        if newest is run:
            del state.runs[task]
        else:
            del state.older_runs[task, number]
        if run.pins:
            let_go(state, run)
        if end.how == FINISHED:
            replica = state.held.get(task)
            # A result of a younger run, or one that is on its way, must not be mixed up with this.
            if newest is run and (replica is None or replica.run <= number):
                if replica is None and task not in state.wants:
                    replica = state.held[task] = Replica(task, message.key, end.nbytes, number)
                    if end.nbytes >= state.settings.writable_nbytes_min:
                        settle(state, replica)
                else:
                    keep(state, task, message.key, end.nbytes, number)
                end.kept = True
            say(
                TaskFinished(
                    task, number, end.nbytes, end.seconds, end.value, end.kind, end.started_at
                )
            )
        elif end.how == FAILED:
            assert end.failure is not None
            say(TaskFailed(task, number, end.failure, end.seconds))
        elif end.how == RESCHEDULED:
            say(RunRescheduled(task, number))
        elif isinstance(end, RunDeprived):
            say(InputsUnavailable(task, number, end.missing, end.unreachable, end.lacking))
        else:
            say(RunReturned(task, number))
