"""What must be true of those that wait for room in a worker's memory, by books of our own."""

from collections.abc import Collection, Iterator, Sequence
from typing import Final, Protocol

from shoal.ids import TaskId
from shoal.sim.process import Process
from shoal.sim.stage import Stage
from shoal.worker.machine.effects import Effect, Fetch, HoldRuns, ReadBack, StartRuns, Write
from shoal.worker.machine.step import WorkerMachine
from shoal.worker.model.entities import HANDED, Run
from shoal.worker.policies.making_room import SENDING_SECONDS_MAX, STANDSTILL_SECONDS
from shoal.worker.policies.room import FAVOURS_MAX, Room

UNSEEN_SECONDS_MAX: Final = 1.0
"""So long nobody may look, while nothing comes and nothing ends."""

STANDSTILL_SECONDS_MAX: Final = STANDSTILL_SECONDS + 1.5
"""It is seen that nothing ends or works as memory is looked at."""

READS_MAX: Final = 2 * FAVOURS_MAX
"""Of one value, while nothing begins: for each of several runs that wait, its memory may be had."""

ALMOST: Final = 1e-6


class Runs(Protocol):
    """Threads, as far as memory is concerned."""

    executing: dict[Run, None]
    computing: dict[Run, float]
    waiting: dict[Run, None]

    def handed(self) -> list[Run]:
        """All runs that are here, begun or not."""

    def unbegun(self) -> list[Run]:
        """Those that wait for a thread."""

    def worked_seconds(self) -> float:
        """Of a processor, by all runs so far."""


class Writer(Protocol):
    """A disk."""

    @property
    def writing(self) -> Collection[Write]:
        """What it is about to take."""


class Judged(Protocol):
    """The worker that it is about."""

    stage: Stage
    machine: WorkerMachine
    name: str

    @property
    def threads(self) -> Runs:
        """What runs there."""

    @property
    def disk(self) -> Writer:
        """Where results are written."""

    def fail(self, invariant: str, sentence: str, *words: str) -> None:
        """Something about this worker can't be."""


class RoomJudge:
    """Of one worker that counts what it lets in."""

    def __init__(self, worker: Judged, process: Process, room: Room) -> None:
        self._worker, self._process, self._room = worker, process, room
        self._process_bytes = self._grown_bytes = 0  # at the last look
        self._is_forced = False  # the next that asks may come, whatever there is
        self._was_near = False
        self._counted: dict[Run, None] = {}  # runs of which it was asked whether they fit
        self._stood: tuple[object, ...] = ()  # what went on when something last changed
        self._stood_since = 0.0  # and when that was
        self._unforced_since = 0.0  # nobody was let in as no more room could be made
        self._waits_since = 0.0  # something waits, and results neither come nor go
        self._managed_bytes = 0  # of those
        self._nreads: dict[TaskId, int] = {}  # of values, since a run began
        self._unreasoned_since: float | None = None  # who waits does so for nothing

    def looked(self, process_bytes: int, grown_bytes: int) -> None:
        """The machine is told that the process has so much."""
        self._process_bytes, self._grown_bytes = process_bytes, grown_bytes

    def thawed(self) -> None:
        """The process stood still, and could do nothing."""
        self._waits_since = self._worker.stage.world.now
        self._unreasoned_since = None

    # --- who is let in -----------------------------------------------------------------------

    def about_to_ask(self) -> None:
        """All that wait are about to ask again."""
        self._was_near = self._room.is_near

    def took(self, effects: Sequence[Effect]) -> None:
        """These were let in, among other things."""
        state = self._worker.machine.state
        started = [run for e in effects if isinstance(e, StartRuns) for run in e.runs]
        held = [run for e in effects if isinstance(e, HoldRuns) for run in e.runs]
        is_forced, self._is_forced = self._is_forced, False
        self._count_reads(started, effects)
        if self._was_near or state.pause is not None:
            self._counted.update(dict.fromkeys(started))
        self._counted.update(dict.fromkeys(held))
        if is_forced and state.pause is None:
            self._require_someone(started, effects)
        if not self._was_near or held or state.pause is not None:
            return  # what came before it was near is not counted, or counted by now
        for run in started:
            if run.reserved_bytes != self._room.growth_bytes(run):
                self._fail("room is kept for what begins", f"keeps {run.reserved_bytes}", run)
        nbeyond = sum(excess > 0 for excess in self._excesses(started, effects))
        if nbeyond > is_forced:
            self._fail("what does not fit is forced", f"lets in {nbeyond} that don't fit")
        if self._room.lacking_bytes and state.ready:
            passing = [e for e in effects if isinstance(e, Fetch | ReadBack)]
            if passing:
                self._fail("nothing passes what waits for room", f"lets in {passing!r}")

    def _count_reads(self, started: Sequence[Run], effects: Sequence[Effect]) -> None:
        """Values don't go to disk and back for ever while nothing begins."""
        if started:
            self._nreads.clear()
        for effect in effects:
            if isinstance(effect, ReadBack):
                nreads = self._nreads[effect.task] = self._nreads.get(effect.task, 0) + 1
                if nreads > READS_MAX:
                    self._fail("values come to stay", f"reads {effect.task} {nreads} times")

    def _require_someone(self, started: Sequence[Run], effects: Sequence[Effect]) -> None:
        """Who was forced is among those that were let in."""
        if started or any(isinstance(effect, Fetch | ReadBack) for effect in effects):
            self._unforced_since = self._worker.stage.world.now
        elif self._room.lacking_bytes:
            self._fail("who is forced comes in", f"leaves {self._who} where it is")

    def _excesses(self, started: Sequence[Run], effects: Sequence[Effect]) -> Iterator[int]:
        """By how much each of those that were let in was too large, the last first."""
        state = self._worker.machine.state
        coming = sum([fetch.nbytes for fetch in state.fetches])
        coming += sum([read.nbytes for read in state.reads])
        reserved = self._reserved_bytes()
        came = [e.nbytes for e in effects if isinstance(e, ReadBack)]
        came += [e.nbytes for e in effects if isinstance(e, Fetch)]
        for nbytes in reversed(came):
            yield self._excess(reserved, coming)
            coming -= nbytes
        for run in reversed(started):
            if run.reserved_bytes:
                yield self._excess(reserved, coming)
                reserved -= run.reserved_bytes

    def _excess(self, reserved: int, coming: int) -> int:
        promised = max(0, reserved - self._grown_bytes)
        return self._process_bytes + promised + coming - self._room.bound_bytes

    def _reserved_bytes(self) -> int:
        state = self._worker.machine.state
        runs = [*state.runs.values(), *state.older_runs.values(), *self._worker.threads.handed()]
        return sum([run.reserved_bytes for run in dict.fromkeys(runs)])

    def forces(self, *, is_overdue: bool) -> None:
        """Whoever is the first is let in, as no more room can be made."""
        worker, now = self._worker, self._worker.stage.world.now
        worker.stage.nforced[is_overdue] += 1
        worker.stage.trace.note(now, worker.name, "forces", is_overdue)
        self._is_forced = True
        invariant = "who is forced has waited for what might have made room"
        if self._is_leaving():
            self._fail(invariant, "does not wait for what is being written")
        state = worker.machine.state
        for replica in [*state.resident.values(), *state.clean.values()]:
            if not replica.npins:
                self._fail(invariant, f"could have {replica!r} leave memory")
        going = self._going()
        if not is_overdue:
            if going:
                self._fail(invariant, f"does not wait for {going[0]!r}")
            return
        since = max(self._stood_since, self._unforced_since)
        if now - since < STANDSTILL_SECONDS - UNSEEN_SECONDS_MAX:  # what came and went is unseen
            self._fail(invariant, f"takes for a standstill what went on at {since:.3f}")
        for run, begun in worker.threads.computing.items():
            if now - begun > STANDSTILL_SECONDS:
                self._fail(invariant, "does not wait for a run that works", run)

    # --- who waits ---------------------------------------------------------------------------

    def settled(self, *, is_trimming: bool) -> None:
        """All has been done that is to be done now."""
        worker, room, state = self._worker, self._room, self._worker.machine.state
        now = worker.stage.world.now
        self._require_books()
        stands = self._standing()
        if stands != self._stood:
            self._stood, self._stood_since = stands, now
        if worker.threads.computing:
            self._waits_since = now
        if self._is_leaving() or self._process.managed_bytes != self._managed_bytes:
            self._waits_since, self._managed_bytes = now, self._process.managed_bytes
        if not room.lacking_bytes or state.pause is not None:
            self._unreasoned_since, self._waits_since = None, now
            return
        worker.stage.nwaits += 1
        if is_trimming or self._is_leaving() or self._going():
            self._unreasoned_since = None
        elif self._unreasoned_since is None:
            self._unreasoned_since = now
        since = max(self._stood_since, self._unforced_since, self._waits_since)
        if now - since > STANDSTILL_SECONDS_MAX:
            self._fail("a standstill keeps nobody out", f"{self._who} waits since {since:.3f}")
        unreasoned = self._unreasoned_since
        patience = UNSEEN_SECONDS_MAX + SENDING_SECONDS_MAX * self._process.is_sending
        if unreasoned is not None and now - unreasoned > patience + ALMOST:
            self._fail("who waits for room has a reason", f"{self._who} waits for nothing")

    def _require_books(self) -> None:
        """What is reserved is what runs have reserved, and what comes close is counted."""
        room, threads = self._room, self._worker.threads
        reserved = self._reserved_bytes()
        if room.reserved_bytes != reserved or reserved < 0 or room.grown_bytes < 0:
            sentence = f"has {room.reserved_bytes} bytes reserved, and runs have {reserved}"
            self._fail("reserved bytes are runs'", f"{sentence}; {room.grown_bytes} have grown")
        there = dict.fromkeys(threads.handed())
        self._counted = {run: None for run in self._counted if run in there}
        if room.is_near and self._worker.machine.state.pause is None:
            for run in threads.unbegun():
                if run not in self._counted and not run.abandoned:
                    self._fail("what begins near the bound is counted", f"has {run!r}", run)

    def _standing(self) -> tuple[object, ...]:
        """What is under way, and who waits; of runs, all that there are.

        Not what is written: it is waited for in any case.
        """
        state = self._worker.machine.state
        return (
            self._room.for_run,
            *state.runs.values(),
            *state.fetches,
            *state.reads,
        )

    def _going(self) -> list[object]:
        """What is under way and does not wait for other tasks, as far as is known."""
        state, threads = self._worker.machine.state, self._worker.threads
        known = [*state.runs.values(), *state.older_runs.values()]
        known += [*state.orphan_runs, *state.unwanted_runs]
        runs = [run for run in known if run.state == HANDED and run not in threads.waiting]
        return [*state.fetches, *state.reads, *runs]

    def _is_leaving(self) -> bool:
        writes = self._worker.machine.state.writes
        is_writing = any(write in writes for write in self._worker.disk.writing)
        return is_writing or self._process.freeing_bytes > 0

    @property
    def _who(self) -> str:
        run = self._room.for_run
        return "something" if run is None else repr(run)

    def _fail(self, invariant: str, sentence: str, run: Run | None = None) -> None:
        about = run or self._room.for_run
        room = self._room
        numbers = f"{room.process_bytes} of {room.bound_bytes}, {room.lacking_bytes} lacking"
        words = () if about is None else (about.key,)
        self._worker.fail(invariant, f"{sentence} ({numbers})", *words)
