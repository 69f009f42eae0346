"""Where values of replicas are: in memory, on disk, or on their way between the two.

Only values of some size have a `Residence`; all others stay in memory, and cost nothing here.
"""

from __future__ import annotations

from collections import deque

from shoal.ordered import OrderedSet
from shoal.worker.machine.effects import ReadBack, Write
from shoal.worker.machine.letting_in import fits
from shoal.worker.machine.state import WorkerState
from shoal.worker.model import words
from shoal.worker.model.entities import Replica, Residence, Run


def settle(state: WorkerState, replica: Replica) -> None:
    """Its value has come, and is large enough to be written if memory is short."""
    replica.residence = Residence()
    state.resident[replica.task] = replica


def move_out(state: WorkerState, replica: Replica) -> None:
    """The replica is no more, or its value was replaced: what is done about the old one is void."""
    residence = replica.residence
    if residence is None:
        return
    stop_work(state, residence)
    state.resident.pop(replica.task, None)
    state.clean.pop(replica.task, None)
    state.absent.pop(replica.task, None)
    replica.residence = None


def stop_work(state: WorkerState, residence: Residence) -> None:
    """Whoever writes or reads the value is not listened to any more."""
    work = residence.work
    residence.work = None
    if isinstance(work, Write):
        del state.writes[work]
        state.writing_nbytes -= work.nbytes
    elif isinstance(work, ReadBack):
        del state.reads[work]
        state.reading_nbytes -= work.nbytes


def replace(state: WorkerState, replica: Replica) -> None:
    """A value has come in place of the old one; runs that waited for that have this one."""
    residence = replica.residence
    waiters = list(residence.readers) if residence is not None and residence.readers else []
    move_out(state, replica)
    if replica.nbytes >= state.settings.writable_nbytes_min:
        settle(state, replica)
    serve(state, replica, waiters)


def await_values(state: WorkerState, run: Run) -> None:
    """Have a run wait for those of its inputs that are on disk.  Cost: O(its inputs)."""
    for replica in run.pins:
        residence = replica.residence
        if residence is None or residence.in_memory:
            continue
        if residence.readers is None:
            residence.readers = OrderedSet()
        if not residence.readers and residence.work is None:  # else it is asked for already
            state.unasked.append(replica)
        residence.readers.add(run)
        if run.unread is None:
            run.unread = OrderedSet()
        run.unread.add(replica)


def begin_reads(state: WorkerState) -> None:
    """Have values read for the runs that wait for them.  Called once at the end of a step.

    One is read in any case; more only if results don't come faster than they can be written.  A
    paused worker reads for the run that goes on all the same.
    """
    reads, unasked = state.reads, state.unasked
    if state.pause is not None:
        unread = None if state.excepted is None else state.excepted.unread
        unasked = deque(unread or ())
    while unasked:
        if reads and (state.is_holding or len(reads) >= state.settings.reads_max):
            return
        replica = unasked[0]
        residence = replica.residence
        if residence is not None and residence.readers and residence.work is None:
            if not fits(state, replica.nbytes, residence.readers.first()):
                return
            read = residence.work = ReadBack(replica.task, replica.nbytes)
            reads[read] = replica
            state.reading_nbytes += replica.nbytes
            state.effects.append(read)
            state.record(replica.key, words.READ_BACK)
        unasked.popleft()


def serve(state: WorkerState, replica: Replica, waiters: list[Run]) -> None:
    """The value is in memory: runs that waited for it alone are ready."""
    for run in waiters:
        unread = run.unread
        if unread is not None:
            unread.discard(replica)
            if not unread:
                run.unread = None
                if run.wants is None:
                    state.ready.append(run)


def stop_waiting(run: Run) -> None:
    """The run is over, and waits for no value any more."""
    if run.unread:
        for replica in run.unread:
            residence = replica.residence
            if residence is not None and residence.readers:
                residence.readers.discard(run)
    run.unread = None
