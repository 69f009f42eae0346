"""What the memory of a worker's process brings about: runs that are held back, and what runs took.

A paused worker begins nothing: no run, no fetch.  What it was sent stays, ready, until its memory
is free again, or the scheduler recalls it.  With one exception: where nothing executes, and reading
a run's inputs from disk has filled memory, that run goes on; else they would be let go of, the
worker would resume, and read them again, for ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shoal.protocol.memory import PauseChanged, RunsGauged
from shoal.worker.machine.effects import HoldRuns
from shoal.worker.machine.letting_in import release
from shoal.worker.machine.state import WorkerState
from shoal.worker.model import words
from shoal.worker.model.entities import HANDED, WAITING, Run


def pause(state: WorkerState, why: str, *, by_hand: bool) -> None:
    """Begin nothing from now on, and take back what no thread has begun.  Cost: O(runs).

    `by_hand`: somebody wants it so, whatever memory there is; the two reasons end apart.
    """
    if by_hand:
        state.pause_by_hand = why
    else:
        state.shortage = why
    _pause_or_resume(state, why)


def resume(state: WorkerState, why: str, *, by_hand: bool) -> None:
    """Begin what has waited for this, unless there is the other reason to wait.

    It follows as the effects are taken.
    """
    if by_hand:
        state.pause_by_hand = None
    else:
        state.shortage = None
    _pause_or_resume(state, why)


def _pause_or_resume(state: WorkerState, why: str) -> None:
    """The scheduler hears of each change, that of a reason included; `why`: if it goes on."""
    before = state.pause
    state.pause = state.pause_by_hand if state.shortage is None else state.shortage
    if state.pause == before:
        return
    state.excepted = None
    if before is None and not _take_back(state):
        _except_one(state)
    if state.pause is not None:
        say_pause(state)
    elif state.connected:
        state.outbox.append(PauseChanged(False, why))


def hold(state: WorkerState) -> None:
    """Results come faster than they are written: hand nothing over for a moment.  Cost: O(runs).

    Nobody is told, unlike of a pause, and all else goes on.
    """
    state.is_holding = True
    _take_back(state)


def _take_back(state: WorkerState) -> bool:
    """What no thread has begun is ready again, and `on_held` follows; False: there is nothing."""
    runs = [*state.runs.values(), *state.older_runs.values()]
    handed = [run for run in runs if run.state == HANDED and not run.abandoned]
    if handed:
        state.effects.append(HoldRuns(handed))
    return bool(handed)


def _except_one(state: WorkerState) -> None:
    """Choose the run that goes on though memory is short, if there has to be one."""
    if state.shortage is None or state.pause_by_hand is not None:
        return
    runs = [*state.runs.values(), *state.older_runs.values()]
    if any(run.state == HANDED for run in runs):
        return  # it ends, and lets go of what it uses
    for run in runs:
        if run.state == WAITING and not run.wants and _reads(run):
            state.excepted = run
            state.record(run.key, words.EXCEPTED, run.number)
            return


def _reads(run: Run) -> bool:
    """Whether its inputs were on disk, or are."""
    residences = [replica.residence for replica in run.pins]
    return any(each is not None and (each.has_file or not each.in_memory) for each in residences)


def say_pause(state: WorkerState) -> None:
    """Tell the scheduler, if the worker is paused."""
    if state.pause is not None and state.connected:
        state.outbox.append(PauseChanged(True, state.pause))


def on_held(state: WorkerState, runs: Iterable[Run]) -> None:
    """The threads gave these back, and have not begun them: they are ready, and wait."""
    for run in runs:
        run.state = WAITING
        if run.reserved_bytes:
            release(state, run)
        state.ready.append(run)
        state.record(run.key, words.HELD_BACK, run.number)
    if state.pause is not None:
        _except_one(state)


def on_gauged(state: WorkerState, gauged: Sequence[tuple[Run, int]]) -> None:
    """By so many bytes the process has grown for these runs; their scheduler is told."""
    told = [(run, nbytes) for run, nbytes in gauged if not run.abandoned]
    if told and state.connected:
        state.outbox.append(
            RunsGauged(
                [run.task for run, _ in told],
                [run.number for run, _ in told],
                [nbytes for _, nbytes in told],
            )
        )
