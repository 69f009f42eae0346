"""What comes into memory is let in only if there is room, and else waits until some is made.

Runs that are ready come first, then values from disk, then results of peers: what is nearest its
end gives most back.  Those that wait say how much they lack; the shell has that written to disk.
Where nothing is under way that could make room, the first is let in all the same: it might be wrong
what is expected of it, and nothing may wait for ever.
"""

from __future__ import annotations

from shoal.worker.machine.effects import HoldRuns
from shoal.worker.machine.state import WorkerState
from shoal.worker.model.entities import HANDED, NEVER, Run
from shoal.worker.policies.room import Favours, Room


def begin_asking(state: WorkerState) -> None:
    """Another round of those that want in.  Called first as the effects of a step are taken."""
    room = state.room
    if room is not None:
        room.lacking_bytes = 0
        room.for_run = None


def fits(state: WorkerState, nbytes: int, run: Run | None) -> bool:
    """Whether so much may come, for `run`; else it is noted what is lacking.

    Nothing follows once somebody waits, or room that was made for him would go to others.
    """
    room = state.room
    if room is None or state.pause is not None:
        return True
    if room.lacking_bytes:
        return False
    if not room.is_near and room.gets_near(state.coming_nbytes + nbytes):
        room.is_near = True
        _count_runs(state, room)
    excess = room.excess_bytes(state.coming_nbytes + nbytes)
    if excess <= 0:
        return True
    if room.is_forced and (room.is_overdue or not is_under_way(state)):
        room.is_forced = room.is_overdue = False
        return True
    room.lacking_bytes, room.for_run = excess, run
    return False


def end_asking(state: WorkerState) -> None:
    """All have asked.  Whoever comes later is not let in without an attempt to make room."""
    room = state.room
    if room is not None:
        room.is_forced = room.is_overdue = False


def may_favour(state: WorkerState) -> bool:
    """Whether inputs of runs that wait may leave memory for the first that lacks room.

    Until some run has begun, for so many bytes as it lacked, and as its inputs had that were not
    here, and no more than so many times; else two runs could have each other's inputs written and
    read for ever, or, where those are small, nearly so.
    """
    room = state.room
    if room is None or state.pause is not None:
        return True
    favours = room.favours.get(room.for_run)
    return favours is None or favours.left_bytes > 0


def note_favour(state: WorkerState, nbytes: int) -> None:
    """So many bytes of them leave memory for it.  Cost: O(inputs that it lacks)."""
    room = state.room
    if room is None or state.pause is not None:
        return
    run = room.for_run
    favours = room.favours.get(run)
    if favours is None:
        needed_bytes = room.lacking_bytes
        if run is not None:
            needed_bytes += sum(want.nbytes for want in run.wants or ())
            needed_bytes += sum(replica.nbytes for replica in run.unread or ())
        favours = room.favours[run] = Favours(needed_bytes)
    favours.left_bytes -= max(nbytes, favours.least_bytes)


def room_bytes(state: WorkerState) -> int:
    """So much more may be on its way, as far as memory is concerned."""
    if state.room is None:
        return NEVER
    return max(0, -state.room.excess_bytes(state.coming_nbytes))


def is_lacking(state: WorkerState) -> bool:
    """Whether something waits for room."""
    return state.room is not None and state.room.lacking_bytes > 0


def is_under_way(state: WorkerState) -> bool:
    """Whether anything goes on that may end and leave room.  Cost: O(runs).

    Not a run that waits for other tasks: these may be what waits for room here.
    """
    if state.fetches or state.reads or state.writes:
        return True
    runs = [*state.runs.values(), *state.older_runs.values()]
    if state.orphan_runs or state.unwanted_runs:
        runs += [*state.orphan_runs, *state.unwanted_runs]
    return sum(run.state == HANDED for run in runs) > state.nwaiting


def under_way(state: WorkerState) -> tuple[object, ...]:
    """What goes on, and who waits: as long as this is the same, nothing has ended."""
    first = None if state.room is None else state.room.for_run
    return first, len(state.runs), len(state.fetches), len(state.reads), len(state.writes)


def those_that_fit(state: WorkerState, runs: list[Run]) -> list[Run]:
    """Of runs that are ready, by urgency, those that may begin; the others stay ready."""
    room = state.room
    if room is None or not room.is_near or state.pause is not None:
        if room is not None and room.favours and runs:
            room.favours.clear()
        return runs
    let_in: list[Run] = []
    for i, run in enumerate(runs):
        nbytes = room.growth_bytes(run)
        if nbytes and not fits(state, nbytes, run):
            state.ready = runs[i:]
            break
        if nbytes:
            _reserve(room, run, nbytes)
        let_in.append(run)
        run.state = HANDED  # so that it counts as under way for the next
    if let_in:
        room.favours.clear()
    return let_in


def on_looked(state: WorkerState, process_bytes: int, grown_bytes: int) -> None:
    """The process has so much memory.

    Once that gets near to the bound, what was handed over uncounted is counted, and what no thread
    has begun comes back.  Cost: O(runs) then, else O(1).
    """
    room = state.room
    if room is None:
        return
    was_near = room.is_near
    room.look(process_bytes, grown_bytes, state.coming_nbytes)
    if room.is_near and not was_near and state.pause is None:
        _count_runs(state, room)


def _count_runs(state: WorkerState, room: Room) -> None:
    """What was handed over uncounted is counted, or comes back."""
    runs = [*state.runs.values(), *state.older_runs.values()]
    handed = [run for run in runs if run.state == HANDED and not run.abandoned]
    for run in handed:
        _reserve(room, run, room.growth_bytes(run))
    if handed:
        state.effects.append(HoldRuns(handed))


def force(state: WorkerState, *, is_overdue: bool) -> None:
    """No more room can be made: the first that waits is let in, if nothing is under way.

    `is_overdue`: what is under way stands still, and may itself wait for what is to be let in.
    """
    if state.room is not None:
        state.room.is_forced, state.room.is_overdue = True, is_overdue


def release(state: WorkerState, run: Run) -> None:
    """A run for which room is kept has ended, or was taken back, or leaves its place to others."""
    if state.room is not None:
        _reserve(state.room, run, 0)


def _reserve(room: Room, run: Run, nbytes: int) -> None:
    """The run may take so much until it ends: what it has taken by then is there to be seen."""
    room.reserved_bytes += nbytes - run.reserved_bytes
    run.reserved_bytes = nbytes
