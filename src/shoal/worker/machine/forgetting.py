"""Letting go: of replicas, of the inputs of ended runs, of what nobody wants fetched any more."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.ids import TaskId
from shoal.worker.machine.effects import ForgetCodes, WithdrawRuns
from shoal.worker.machine.residing import move_out, stop_waiting
from shoal.worker.machine.state import WorkerState
from shoal.worker.model import words
from shoal.worker.model.entities import HANDED, LONG_RUNNING, OVER, Run, Want


def free(state: WorkerState, tasks: Iterable[TaskId]) -> None:
    """The scheduler no longer counts on these being here.  Cost: O(tasks)."""
    for task in tasks:
        replica = state.held.get(task)
        if replica is not None:
            if replica.npins:
                replica.freed = True  # a run uses it; never pull a value from under one
                state.record(replica.key, "freed, but in use")
            else:
                del state.held[task]
                if replica.residence is not None:
                    move_out(state, replica)
                state.dropped.add(task)
                state.record(replica.key, words.FREED)
        want = state.wants.get(task)
        if want is not None:
            want.acquire = False
            want.freed = True
            if not want.waiters:
                abandon(state, want)


def let_go(state: WorkerState, run: Run) -> None:
    """The run is over: its inputs may go, if nobody else is interested."""
    run.state = OVER
    if run.unread:
        stop_waiting(run)
    if run.pins:
        for replica in run.pins:
            replica.npins -= 1
            if replica.freed and not replica.npins:
                del state.held[replica.task]
                if replica.residence is not None:
                    move_out(state, replica)
                state.dropped.add(replica.task)
                state.record(replica.key, words.GONE)
        run.pins = []
    if run.wants:
        for want in run.wants:
            want.waiters.discard(run)
            if not want.waiters and not want.acquire:
                abandon(state, want)
        run.wants = None


def abandon(state: WorkerState, want: Want) -> None:
    """Nobody waits for it: don't ask for it; if it is under way, its arrival settles it."""
    if want.in_flight:
        return
    del state.wants[want.task]
    peer = want.peer
    if peer is not None:
        peer.queue.discard(want)
        peer.queued_nbytes -= want.nbytes
        want.peer = None
        if not peer.queue:
            state.starved.discard(peer)
            if not peer.nrequests:
                del state.peers[peer.address]


def remove_run(state: WorkerState, run: Run) -> None:
    """Take it out of the tables."""
    if state.runs.get(run.task) is run:
        del state.runs[run.task]
    else:
        del state.older_runs[run.task, run.number]


def lose_scheduler(state: WorkerState) -> None:
    """The connection broke: nothing that was asked for matters now, results stay.

    Runs that have begun go on.  What they give is kept if there is still nobody to be told.
    """
    state.connected = False
    withdrawn: list[Run] = []
    for run in [*state.runs.values(), *state.older_runs.values()]:
        run.abandoned = True
        if run.state == HANDED:
            withdrawn.append(run)
        elif run.state != LONG_RUNNING:
            state.record(run.key, words.ABANDONED, run.number)
            remove_run(state, run)
            let_go(state, run)
    for want in list(state.wants.values()):
        want.acquire = False
        if not want.waiters:
            abandon(state, want)
    if withdrawn:
        state.effects.append(WithdrawRuns(withdrawn))
    if state.codes:  # the scheduler tells them anew, and won't say when to forget what it told us
        state.effects.append(ForgetCodes(list(state.codes)))
        state.codes.clear()
    state.outbox.clear()  # said to nobody
    state.added.clear()
    state.ready.clear()
    state.excepted = None
