"""Values on their way to disk and back: which are written, and what becomes of those that wait.

Those go first whose files are there, as that costs nothing; then the least recently used.  By
second chance: a value that was used since it was looked at last is passed over once.  What runs use
stays.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from shoal.ids import TaskId
from shoal.protocol.messages import ReplicasGone, RunReturned
from shoal.worker.machine.effects import Evict, ReadBack, Write
from shoal.worker.machine.forgetting import let_go, remove_run
from shoal.worker.machine.letting_in import is_lacking, is_under_way, may_favour, note_favour
from shoal.worker.machine.residing import await_values, move_out, serve
from shoal.worker.machine.state import WorkerState
from shoal.worker.model import words
from shoal.worker.model.entities import WAITING, Replica, Residence

LOOKS_MAX: Final = 2_000
"""Values that are looked at in one step; the next one goes on where this has stopped."""


def spill(state: WorkerState, nbytes: int, *, may_write: bool) -> int:
    """Have values of about `nbytes` leave memory; returns how many bytes are about to.

    What is being written already does not count.  Cost: O(values looked at), at most `LOOKS_MAX`.

    Args:
        may_write: False: the disk takes nothing just now, so only what is there already may go.
    """
    leaving_nbytes = _evict(state, nbytes, None)
    if may_write and leaving_nbytes < nbytes:
        leaving_nbytes += _begin_writes(state, nbytes - leaving_nbytes, None)
    is_last = leaving_nbytes < nbytes and not state.writes
    if is_last and _are_held_back(state) and may_favour(state):
        before, in_use = leaving_nbytes, _in_use(state)  # what runs that wait are to use comes last
        leaving_nbytes += _evict(state, nbytes - leaving_nbytes, in_use)
        if may_write and leaving_nbytes < nbytes:
            leaving_nbytes += _begin_writes(state, nbytes - leaving_nbytes, in_use)
        if leaving_nbytes > before:
            note_favour(state, leaving_nbytes - before)
    return leaving_nbytes


def _evict(state: WorkerState, nbytes: int, in_use: set[TaskId] | None) -> int:
    """Let go of values that have files, for about so many bytes; of how many it was."""
    leaving_nbytes = 0
    evicted: list[Replica] = []
    for _ in range(min(len(state.clean), LOOKS_MAX)):
        if leaving_nbytes >= nbytes:
            break
        replica = _next(state.clean, in_use)
        if replica is not None:
            evicted.append(replica)
            leaving_nbytes += replica.nbytes
    if evicted:
        _leave_memory(state, evicted)
        state.effects.append(Evict([replica.task for replica in evicted]))
    return leaving_nbytes


def _begin_writes(state: WorkerState, nbytes: int, in_use: set[TaskId] | None) -> int:
    """Have values of about so many bytes written; of how many it was."""
    resident, leaving_nbytes = state.resident, 0
    for _ in range(min(2 * len(resident), LOOKS_MAX)):
        if leaving_nbytes >= nbytes or not resident:
            break
        replica = _next(resident, in_use)
        if replica is None:
            continue
        size = replica.nbytes
        if state.writes and state.writing_nbytes + size > state.settings.writing_bytes_max:
            _keep_first(resident, replica)
            break
        assert replica.residence is not None
        write = replica.residence.work = Write(replica.task, size)
        state.writes[write] = replica
        state.writing_nbytes += size
        state.effects.append(write)
        leaving_nbytes += size
    return leaving_nbytes


def _next(queue: OrderedDict[TaskId, Replica], in_use: set[TaskId] | None) -> Replica | None:
    """Take out the first, unless a run needs it or it was used lately: then it is the last.

    `in_use`: what runs have in their hands; None: what any run needs, be it held back, is needed.
    """
    task, replica = queue.popitem(last=False)
    residence = replica.residence
    assert residence is not None
    is_needed = replica.npins and (in_use is None or task in in_use)
    if not is_needed and not residence.was_used:
        return replica
    residence.was_used = False
    queue[task] = replica
    return None


def _keep_first(queue: OrderedDict[TaskId, Replica], replica: Replica) -> None:
    queue[replica.task] = replica
    queue.move_to_end(replica.task, last=False)


def forget_files(state: WorkerState) -> list[TaskId]:
    """The files of values that are in memory as well are to make room for others; whose they are.

    Cost: O(those).
    """
    tasks = list(state.clean)
    for replica in state.clean.values():
        assert replica.residence is not None
        replica.residence.has_file = False
    state.resident.update(state.clean)
    state.clean.clear()
    return tasks


def on_written(state: WorkerState, write: Write) -> bool:
    """Its file is there; whether the value in memory is to be let go of.

    It is not if a run has come meanwhile that uses it, nor if all this is no longer of interest.
    """
    found = _end_write(state, write)
    if found is None:
        return False
    replica, residence = found
    residence.has_file = True
    if replica.npins and not (_are_held_back(state) and replica.task not in _in_use(state)):
        state.clean[replica.task] = replica
        return False
    _leave_memory(state, [replica])
    return True


def on_not_written(state: WorkerState, write: Write, *, is_for_good: bool) -> None:
    """It stays in memory; `is_for_good`: it can't be written at all."""
    found = _end_write(state, write)
    if found is None:
        return
    replica, _ = found
    if is_for_good:
        replica.residence = None
        state.record(replica.key, words.CANT_BE_WRITTEN)
    else:
        _keep_first(state.resident, replica)


def on_read(state: WorkerState, read: ReadBack) -> bool:
    """Its value was read; whether to keep it in memory: some run must still wait for it."""
    replica = state.reads.pop(read, None)
    if replica is None:
        return False
    residence = replica.residence
    assert residence is not None
    residence.work = None
    state.reading_nbytes -= read.nbytes
    waiters = list(residence.readers or ())
    residence.readers = None
    if not waiters:
        return False
    residence.in_memory = True
    residence.was_used = False  # what it was read for is no reason to keep it
    del state.absent[replica.task]
    state.clean[replica.task] = replica
    serve(state, replica, waiters)
    return True


def on_not_read(state: WorkerState, read: ReadBack) -> None:
    """Its file is not there, or not what was written: the replica is gone."""
    replica = state.reads.get(read)
    if replica is not None:
        _lose(state, replica)


def on_lost(state: WorkerState, task: TaskId) -> None:
    """The same, seen as a peer asked for it."""
    replica = state.absent.get(task)
    if replica is not None:
        _lose(state, replica)


def _lose(state: WorkerState, replica: Replica) -> None:
    """Runs that wait for it go back to the scheduler, which has it computed again."""
    residence = replica.residence
    assert residence is not None
    waiters = list(residence.readers or ())
    state.record(replica.key, words.FILE_LOST)
    if not replica.freed:
        state.outbox.append(ReplicasGone([replica.task]))
    for run in waiters:
        state.outbox.append(RunReturned(run.task, run.number))
        state.record(run.key, words.RETURNED, run.number)
        remove_run(state, run)
        let_go(state, run)
    if state.held.get(replica.task) is replica:  # else it went with the last of the runs
        del state.held[replica.task]
        state.dropped.add(replica.task)
        move_out(state, replica)


def _end_write(state: WorkerState, write: Write) -> tuple[Replica, Residence] | None:
    """What was written; None if it was dropped or replaced in the meantime."""
    replica = state.writes.pop(write, None)
    if replica is None:
        return None
    residence = replica.residence
    assert residence is not None
    state.writing_nbytes -= write.nbytes
    residence.work = None
    return replica, residence


def _in_use(state: WorkerState) -> set[TaskId]:
    """Values that runs have in their hands.  Cost: O(runs and their inputs)."""
    first = None if state.room is None else state.room.for_run
    return {
        replica.task
        for run in [*state.runs.values(), *state.older_runs.values()]
        if run.state != WAITING or run is state.excepted or run is first
        for replica in run.pins
    }


def _are_held_back(state: WorkerState) -> bool:
    """Whether runs wait for memory that their own inputs may have to make room in."""
    return state.pause is not None or (is_lacking(state) and not is_under_way(state))


def _leave_memory(state: WorkerState, replicas: Sequence[Replica]) -> None:
    """Cost: O(those), and O(runs and their inputs) if runs that are held back use any of them."""
    needed: set[Replica] = set()
    for replica in replicas:
        residence = replica.residence
        assert residence is not None
        residence.in_memory = False
        state.absent[replica.task] = replica
        state.record(replica.key, words.SPILLED)
        if replica.npins:
            needed.add(replica)
    if not needed:
        return
    for run in [*state.runs.values(), *state.older_runs.values()]:
        if not needed.isdisjoint(run.pins):  # it waits for them from now on
            if run.is_held_back:
                state.ready.remove(run)
            await_values(state, run)
