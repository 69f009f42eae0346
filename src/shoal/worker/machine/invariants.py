"""What must hold of a worker's state between any two steps, as sentences for what doesn't."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.ids import TaskId
from shoal.worker.machine.gathering import has_room
from shoal.worker.machine.letting_in import is_lacking
from shoal.worker.machine.state import WorkerState
from shoal.worker.model.entities import HANDED, LONG_RUNNING, OVER, WAITING, Run


def broken(state: WorkerState) -> Iterator[str]:
    """All broken invariants.  Call it after `take_effects`.  Cost: O(everything)."""
    yield from runs_are_booked_once(state)
    yield from pins_are_counted(state)
    yield from wants_have_one_source(state)
    yield from peers_are_accounted(state)
    yield from values_are_somewhere(state)
    yield from reservations_add_up(state)
    yield from orphans_are_held(state)
    yield from nothing_is_kept_for_nobody(state)
    yield from steps_leave_nothing_behind(state)


def _all_runs(state: WorkerState) -> list[Run]:
    return [*state.runs.values(), *state.older_runs.values()]


def runs_are_booked_once(state: WorkerState) -> Iterator[str]:
    """A run in a table is waiting for inputs or handed; the newest of a task is in `runs`."""
    for task, run in state.runs.items():
        if run.task != task:
            yield f"{run} is entered under task {task}"
    for (task, number), run in state.older_runs.items():
        newest = state.runs.get(task)
        if run.task != task or run.number != number:
            yield f"{run} is entered under {task}#{number}"
        if newest is not None and newest.number <= number:
            yield f"{run} is not older than {newest}"
    for run in _all_runs(state):
        if run.state == OVER:
            yield f"{run} is over and still in a table"
        may_wait = state.pause is not None or state.is_holding or run.wants or run.unread
        if run.state == WAITING and not may_wait and not is_lacking(state):
            yield f"{run} waits for nothing"
        if run.state in (HANDED, LONG_RUNNING) and (run.wants or run.unread):
            yield f"{run} was handed over without {list(run.wants or run.unread or ())}"
        if run.abandoned and run.state == WAITING:
            yield f"{run} waits though nobody wants its answer"


def pins_are_counted(state: WorkerState) -> Iterator[str]:
    """A replica's pins are the uses of it by runs in the tables, and it is there for them."""
    npins: dict[TaskId, int] = {}
    for run in _all_runs(state):
        for replica in run.pins:
            npins[replica.task] = npins.get(replica.task, 0) + 1
            if state.held.get(replica.task) is not replica:
                yield f"{run} uses {replica}, which is not held"
    for task, replica in state.held.items():
        if replica.npins != npins.get(task, 0):
            yield f"{replica} has {replica.npins} pins, but {npins.get(task, 0)} uses"


def wants_have_one_source(state: WorkerState) -> Iterator[str]:
    """A want is queued for one peer, or in one request; it and its waiters know each other."""
    requested: dict[TaskId, int] = {}
    for fetch, wants in state.fetches.items():
        if not wants:
            yield f"a request to {fetch.peer} is about nothing"
        for want in wants:
            requested[want.task] = requested.get(want.task, 0) + 1
            if state.wants.get(want.task) is not want or not want.in_flight:
                yield f"{want} is asked of {fetch.peer}, but not in flight"
    for task, want in state.wants.items():
        if want.in_flight and requested.get(task, 0) != 1:
            yield f"{want} is in {requested.get(task, 0)} requests"
        if want.peer is None:
            if state.pause is None:
                yield f"{want} is wanted, but asked of nobody"
        elif state.peers.get(want.peer.address) is not want.peer:
            yield f"{want} has a peer that is not in the table"
        elif want.in_flight == (want in want.peer.queue):
            yield f"{want} is both queued and in flight, or neither"
        for run in want.waiters:
            if run.wants is None or want not in run.wants:
                yield f"{want} has the waiter {run}, which does not wait for it"
    for run in _all_runs(state):
        for want in run.wants or ():
            if state.wants.get(want.task) is not want or run not in want.waiters:
                yield f"{run} waits for {want}, which does not know it"


def peers_are_accounted(state: WorkerState) -> Iterator[str]:
    """Requests and queued bytes are what is there, within the limits; no idle peer is kept."""
    settings = state.settings
    nrequests: dict[str, int] = {}
    for fetch in state.fetches:
        nrequests[fetch.peer] = nrequests.get(fetch.peer, 0) + 1
    if len(state.fetches) > settings.transfers_max:
        yield f"{len(state.fetches)} requests at once"
    for address, peer in state.peers.items():
        if peer.nrequests != nrequests.pop(address, 0):
            yield f"{peer} has another number of requests"
        if peer.nrequests > settings.transfers_per_peer_max:
            yield f"{peer} is asked too much at once"
        if peer.queued_nbytes != sum([want.nbytes for want in peer.queue]):
            yield f"{peer} has {peer.queued_nbytes} bytes queued, by its count"
        if not peer.queue and not peer.nrequests:
            yield f"{peer} is idle and still known"
        if (
            peer.queue
            and state.pause is None
            and not is_lacking(state)
            and has_room(state)
            and peer.nrequests < settings.transfers_per_peer_max
            and len(state.fetches) < settings.transfers_max
        ):
            yield f"{peer} could be asked for more"
    for address in nrequests:
        yield f"{address} is asked, but not known"
    if state.incoming_nbytes != sum([fetch.nbytes for fetch in state.fetches]):
        yield f"{state.incoming_nbytes} bytes are on their way, by the count"


def values_are_somewhere(state: WorkerState) -> Iterator[str]:
    """A value that may be written is in one table; what runs wait for is being read."""
    nbytes = 0
    for task, replica in state.held.items():
        residence = replica.residence
        if residence is None:
            places = []
        else:
            is_written = residence.work in state.writes
            lists = (state.resident, state.clean, state.absent)
            places = [is_written, *[task in places for places in lists]]
            if residence.has_file != (task in state.clean or task in state.absent):
                yield f"{replica} has a file, or none, and is taken for the other"
            nbytes += is_written * replica.nbytes
            if residence.in_memory == (task in state.absent) or sum(places) != 1:
                yield f"{replica} is in {sum(places)} places"
            is_asked = residence.work in state.reads or replica in state.unasked
            if residence.readers and not is_asked:
                yield f"{replica} has readers, and nobody reads it"
        for run in (residence.readers if residence is not None else None) or ():
            if run.unread is None or replica not in run.unread:
                yield f"{replica} has the reader {run}, which does not wait for it"
    if nbytes != state.writing_nbytes:
        yield f"{state.writing_nbytes} bytes are being written, by the count, and {nbytes} are"
    if state.reading_nbytes != sum([replica.nbytes for replica in state.reads.values()]):
        yield f"{state.reading_nbytes} bytes are being read, by the count"
    may_wait = state.pause is not None or is_lacking(state)
    if state.unasked and not may_wait and not state.reads:
        yield f"nobody reads {list(state.unasked)}"
    for replica in [*state.writes.values(), *state.reads.values()]:
        if state.held.get(replica.task) is not replica:
            yield f"{replica} is written or read, and is not held"
    for task, replica in [*state.resident.items(), *state.absent.items()]:
        if state.held.get(task) is not replica:
            yield f"{replica} has a place, and is not held"
    for run in _all_runs(state):
        for replica in run.unread or ():
            residence = replica.residence
            if residence is None or residence.in_memory or run not in (residence.readers or ()):
                yield f"{run} waits for {replica}, which does not know it"


def reservations_add_up(state: WorkerState) -> Iterator[str]:
    """Room is kept for runs that were handed over, and for nobody else."""
    room = state.room
    if room is None:
        return
    reserved = sum(run.reserved_bytes for run in _all_runs(state))
    if room.reserved_bytes < reserved:
        yield f"{room.reserved_bytes} bytes are reserved, by the count, and {reserved} are"
    for run in _all_runs(state):
        if run.reserved_bytes and run.state != HANDED:
            yield f"{run} has {run.reserved_bytes} bytes reserved"


def orphans_are_held(state: WorkerState) -> Iterator[str]:
    """What has a number of our own is known by its key, and nothing else is."""
    for key, replica in state.orphans.items():
        if replica.key != key or state.held.get(replica.task) is not replica or replica.task >= 0:
            yield f"{replica} is known by the key {key!r}"
    nown = sum(task < 0 for task in state.held)
    if nown != len(state.orphans):
        yield f"{nown} results have numbers of our own, and {len(state.orphans)} are known by key"
    for run in state.orphan_runs:
        if not run.abandoned or run.task >= 0 or run.pins:
            yield f"{run} is of another epoch, and somebody counts on it"


def nothing_is_kept_for_nobody(state: WorkerState) -> Iterator[str]:
    """What was freed is kept for runs only; what nobody wants is not asked for."""
    for replica in state.held.values():
        if replica.freed and not replica.npins:
            yield f"{replica} was freed, nobody uses it, and it is still here"
    for want in state.wants.values():
        if not want.in_flight and not want.waiters and not want.acquire:
            yield f"{want} is queued for nobody"


def steps_leave_nothing_behind(state: WorkerState) -> Iterator[str]:
    """All that a step leaves is taken with its effects."""
    added = state.connected and state.added  # else told with the next welcome
    runs_held = state.ready and not state.is_holding and not is_lacking(state)
    held_back = state.pause is None and (runs_held or state.unqueued)  # else until it resumes
    if state.outbox or held_back or added or state.effects or state.dropped:
        yield "something of the last step was not taken"
