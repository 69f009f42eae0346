"""What outlives the scheduler that it was for: results and runs that are known by their keys.

In another life of the scheduler all numbers mean nothing.  What is held goes on under a number of
our own, below zero, until the scheduler gives it a new one, or has it dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from shoal.ids import Epoch, Key, RunId, TaskId
from shoal.protocol.messages import InventoryItem, RunningItem
from shoal.protocol.orphans import OrphanFinished, OrphansGone
from shoal.worker.machine.effects import Drop, ForgetCodes, Renumber, TellAdopted
from shoal.worker.machine.forgetting import let_go, remove_run
from shoal.worker.machine.gathering import settle_want
from shoal.worker.machine.residing import move_out, settle, stop_work
from shoal.worker.machine.state import WorkerState
from shoal.worker.model import words
from shoal.worker.model.entities import (
    ELSEWHERE,
    FINISHED,
    HANDED,
    LONG_RUNNING,
    Replica,
    Run,
    RunEnded,
)


def inventory(state: WorkerState) -> list[InventoryItem]:
    """What is held, for whoever is about to let us in.  Cost: O(replicas)."""
    return [
        InventoryItem(replica.task, replica.key, replica.nbytes)
        for replica in state.held.values()
        if not replica.freed
    ]


def executing(state: WorkerState) -> list[RunningItem]:
    """What goes on from before, and nobody waits for.  Cost: O(runs)."""
    abandoned = [run for run in _begun(state) if run.abandoned]
    state.told_runs = [*abandoned, *state.orphan_runs]
    return [RunningItem(run.task, run.key) for run in state.told_runs]


def enter_epoch(state: WorkerState, epoch: Epoch) -> None:
    """The scheduler that has let us in is not the one that was lost.  Cost: O(replicas + runs).

    Whatever was to be fetched, read, or begun is for nobody any more; what is here stays.
    """
    _drop_now(state)
    going = [*state.orphan_runs, *_begun(state)]
    for run in [*state.older_runs.values(), *state.runs.values()]:
        run.abandoned = True
        run.pins = []
        run.wants = None
        run.unread = None
    _forget_plans(state)
    newest = {run.key: run for run in going}
    state.unwanted_runs.add_all([run for run in going if newest[run.key] is not run])
    renamed: list[tuple[TaskId, TaskId]] = []
    state.orphan_runs.clear()
    for run in newest.values():
        before = run.task
        run.message = replace(run.message, task=_own_number(state))
        state.orphan_runs.add(run)
        state.record(run.key, words.ORPHANED, run.number)
        renamed.append((before, run.task))
    _renumber(state, _orphan_replicas(state), renamed)
    state.epoch = epoch


def say_ended(state: WorkerState, *, is_new_epoch: bool) -> None:
    """We are let in: of what was said to go on, some has ended since it was said.

    Cost: O(those).
    """
    for run in state.told_runs:
        if run in state.orphan_runs or (run.task >= 0 and not is_new_epoch):
            continue
        replica = state.orphans.get(run.key)
        if replica is None:
            state.outbox.append(OrphansGone([run.key]))
        else:
            state.outbox.append(OrphanFinished(run.key, replica.nbytes))
    state.told_runs = []


def _begun(state: WorkerState) -> list[Run]:
    """Runs of this epoch, or the last, that can't be stopped, oldest first."""
    runs = [*state.older_runs.values(), *state.runs.values()]
    return [run for run in runs if run.state in (HANDED, LONG_RUNNING)]


def _forget_plans(state: WorkerState) -> None:
    state.runs.clear()
    state.older_runs.clear()
    state.excepted = None
    for residence in [r.residence for r in state.held.values() if r.residence is not None]:
        residence.readers = None
    state.unasked.clear()
    if state.codes:
        state.effects.append(ForgetCodes(list(state.codes)))
        state.codes.clear()
    state.wants.clear()
    state.peers.clear()
    state.fetches.clear()
    state.incoming_nbytes = 0
    state.unqueued.clear()
    state.starved.clear()
    state.added.clear()
    state.ready.clear()


def _orphan_replicas(state: WorkerState) -> list[tuple[TaskId, TaskId]]:
    """Numbers of our own for all that is held: (before, after); of two results of a key, and of
    what only ended runs were to use, let go."""
    pairs: list[tuple[TaskId, TaskId]] = []
    held = list(state.held.values())
    newest: dict[Key, Replica] = {}
    for replica in held:
        other = newest.get(replica.key)
        if not replica.freed and (other is None or other.task < replica.task):
            newest[replica.key] = replica
    state.orphans.clear()
    dropped: list[TaskId] = []
    for replica in held:
        replica.npins = 0
        replica.run = ELSEWHERE
        if newest.get(replica.key) is not replica:
            del state.held[replica.task]
            move_out(state, replica)
            dropped.append(replica.task)
            continue
        state.orphans[replica.key] = replica
        if replica.task >= 0:
            pairs.append((replica.task, _own_number(state)))
    if dropped:
        state.effects.append(Drop(dropped))
    return pairs


def adopt(state: WorkerState, keys: Sequence[Key], tasks: Sequence[TaskId]) -> None:
    """The scheduler has given orphans numbers, under which it counts on them.  Cost: O(keys)."""
    pairs: list[tuple[TaskId, TaskId]] = []
    gone: list[Key] = []
    told: list[tuple[Key, TaskId, int]] = []
    for key, task in zip(keys, tasks, strict=True):
        replica = state.orphans.pop(key, None)
        if replica is None:
            gone.append(key)
            continue
        here = state.held.get(task)
        if here is not None:  # it has come from elsewhere meanwhile
            _drop_one(state, replica)
            here.freed = False
            replica = here
        else:
            pairs.append((replica.task, task))
        state.record(key, words.ADOPTED)
        told.append((key, task, replica.nbytes))
    if pairs:
        _drop_now(state)
        _renumber(state, pairs, [])
        for _, task in pairs:
            settle_want(state, state.held[task])
    if told:
        state.effects.append(TellAdopted(told))
    if gone:
        state.outbox.append(OrphansGone(gone))


def free(state: WorkerState, keys: Iterable[Key]) -> None:
    """Nobody wants these.  Cost: O(keys), and O(runs of before) if there are any."""
    unwanted = dict.fromkeys(keys)
    for key in unwanted:
        replica = state.orphans.pop(key, None)
        if replica is not None:
            _drop_one(state, replica)
            state.record(key, words.FREED)
    for run in list(state.orphan_runs):
        if run.key in unwanted:
            state.orphan_runs.remove(run)
            state.unwanted_runs.add(run)


def on_ended(state: WorkerState, end: RunEnded) -> None:
    """A run has ended whose scheduler is gone, or was out of reach meanwhile; sets `kept`.

    If nobody could be told so far, its result is in the inventory of whoever lets us in next.
    """
    run = end.run
    task = run.task
    if run in state.orphan_runs:
        state.orphan_runs.remove(run)
        if end.how == FINISHED:
            before = state.orphans.pop(run.key, None)
            if before is not None:
                _drop_one(state, before)
            state.orphans[run.key] = _keep(state, end, ELSEWHERE)
            state.outbox.append(OrphanFinished(run.key, end.nbytes))
        else:
            state.outbox.append(OrphansGone([run.key]))
    elif run in state.unwanted_runs:
        state.unwanted_runs.remove(run)
    else:
        is_newest = state.runs.get(task) is run
        remove_run(state, run)
        let_go(state, run)
        is_told_later = is_newest and not state.connected and end.how == FINISHED
        if is_told_later and task not in state.held:
            state.added.append(_keep(state, end, run.number))


def _keep(state: WorkerState, end: RunEnded, number: RunId) -> Replica:
    """The result is here, under the task's number that the run has."""
    message = end.run.message
    replica = Replica(message.task, message.key, end.nbytes, number)
    state.held[message.task] = replica
    if end.nbytes >= state.settings.writable_nbytes_min:
        settle(state, replica)
    end.kept = True
    return replica


def _renumber(
    state: WorkerState,
    pairs: list[tuple[TaskId, TaskId]],
    runs: list[tuple[TaskId, TaskId]],
) -> None:
    """Values keep their places, and have other numbers, as runs have.  Cost: O(those).

    Who writes or reads one of them under the old number is not listened to any more.
    """
    if not (pairs or runs):
        return
    for before, task in pairs:
        replica = state.held.pop(before)
        replica.task = task
        state.held[task] = replica
        residence = replica.residence
        if residence is None:
            continue
        stop_work(state, residence)
        for places in (state.resident, state.clean, state.absent):
            places.pop(before, None)
        if not residence.in_memory:
            state.absent[task] = replica
        elif residence.has_file:
            state.clean[task] = replica
        else:
            state.resident[task] = replica
    state.effects.append(Renumber(pairs, runs))
    state.drops_at = len(state.effects)


def _drop_one(state: WorkerState, replica: Replica) -> None:
    del state.held[replica.task]
    move_out(state, replica)
    state.dropped.add(replica.task)


def _drop_now(state: WorkerState) -> None:
    """What was let go of before is dropped by the numbers that it had then."""
    dropped = [task for task in state.dropped if task not in state.held]
    state.dropped.clear()
    if dropped:
        state.effects.append(Drop(dropped))


def _own_number(state: WorkerState) -> TaskId:
    """Below zero, and never used before."""
    state.last_own_number -= 1
    return TaskId(state.last_own_number)
