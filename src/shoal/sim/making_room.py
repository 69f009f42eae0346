"""A simulated worker's eye on its memory: looks as the shell does, and has room made.

What is decided is decided by the policies and the machine that a real worker has; here is only
when they are asked (`worker/shell/memory.py` and `making_room.py`, in virtual time).
"""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from shoal.sim.footprints import Owner
from shoal.sim.process import Process
from shoal.sim.room_judge import Judged, RoomJudge
from shoal.worker.machine.effects import Effect
from shoal.worker.machine.making_room import RoomMaker
from shoal.worker.model.entities import FINISHED, Run, RunEnded
from shoal.worker.policies.footprints import GAUGE_SECONDS_MIN, Footprints
from shoal.worker.policies.looking import LOOK_RATIO, LookPace
from shoal.worker.policies.room import Room

LOOK_SECONDS: Final = 0.1
"""Between two looks, where nothing speaks for another time; as the settings have it."""

TRIM_SECONDS: Final = 0.005
"""What the C library takes to give back what is free."""


class Worker(Owner, Judged, Protocol):
    """The worker whose memory it is."""


class MemoryWatch:
    """Of one worker; without a bound nothing is looked at."""

    def __init__(self, worker: Worker, process: Process, bound_bytes: int, nthreads: int) -> None:
        self._worker, self._process = worker, process
        self._maker = RoomMaker(self)
        self._footprints: Footprints[Run] = Footprints(_kind_of)
        self._came_bytes = 0  # of results, since that had memory looked at
        self._much_bytes = int(bound_bytes * LOOK_RATIO)
        self._pace = LookPace()
        self._nplanned = 0  # looks, of which only the latest is still to come
        self.judge: RoomJudge | None = None
        if bound_bytes:
            room = Room(bound_bytes, nthreads, self._footprints.kinds, _kind_of)
            worker.machine.limit_memory(room)
            self.judge = RoomJudge(worker, process, room)
            self._maker.looked(0)
            self._plan(LOOK_SECONDS)

    # --- looks -------------------------------------------------------------------------------

    def look(self) -> None:
        """Tell the machine what the process has."""
        if self.judge is None:
            return
        worker, process = self._worker, self._process.now_bytes()
        grown = self._footprints.grown
        self._maker.looked(self._other_bytes(process))
        self.judge.looked(process, grown)
        worker.machine.looked(process, grown, worker.stage.world.now)

    def stir(self) -> None:
        """Something comes: look as often as there is reason to."""
        if self._pace.factor > 1 and self.judge is not None:
            self._pace.stir()
            self._plan(LOOK_SECONDS)

    def came(self, nbytes: int) -> None:
        """So much of results is in memory that was not."""
        self._came_bytes += nbytes
        if self.judge is not None and self._came_bytes > self._much_bytes:
            self._came_bytes = 0
            self.look()
            self._plan(0.0)

    def is_short(self) -> bool:
        """Whether the process has more than anything is let in up to."""
        room = self._worker.machine.state.room
        return room is not None and self._process.now_bytes() > room.bound_bytes

    def _plan(self, seconds: float) -> None:
        self._nplanned += 1
        world, nth = self._worker.stage.world, self._nplanned
        world.after(seconds, self._worker.when_awake, self._tick, nth, background=True)

    def _tick(self, nth: int) -> None:
        if nth != self._nplanned:
            return
        self._gauge(())
        self.look_and_perform()
        if nth == self._nplanned:
            self._pace.looked(
                self._process.now_bytes(),
                self._process.managed_bytes,
                is_executing=bool(self._worker.threads.executing),
                is_lacking=bool(self.lacking_bytes),
            )
            self._plan(self._pace.factor * LOOK_SECONDS)

    def look_and_perform(self) -> None:
        """The process may have less memory: let in what waits, if there is room."""
        self.look()
        self._worker.perform()

    # --- runs --------------------------------------------------------------------------------

    def gauge(self, end: RunEnded) -> bool:
        """A run is over, and its result not kept yet; whether to call `settle` once it is."""
        room = self._worker.machine.state.room
        if room is None:
            return False
        is_long = end.seconds >= GAUGE_SECONDS_MIN
        if is_long:
            self._gauge((end.run,))
            self._footprints.end((end.run,))
        if end.run.reserved_bytes and end.how == FINISHED:
            self._footprints.took_little(end.run)
        return is_long

    def settle(self) -> None:
        """Its result is kept, or dropped."""
        self._footprints.settle(self._process.now_bytes(), self._process.managed_bytes)

    def _gauge(self, ended: Sequence[Run]) -> None:
        process = self._process
        now, peak = process.now_bytes(), process.peak_bytes()
        state = self._worker.machine.state
        going = [*self._worker.threads.executing, *ended]
        self._footprints.look(going, now, peak, process.managed_bytes, state.coming_nbytes)

    # --- room --------------------------------------------------------------------------------

    def perform(self, perform_effects: Callable[[], None]) -> None:
        """Have effects performed; measured before, where that matters, and with room made after."""
        room = self._worker.machine.state.room
        if room is None:
            perform_effects()
            return
        if room.is_near:
            self.look()
        perform_effects()
        if room.lacking_bytes:
            self._maker.make(self._worker.stage.world.now)
        is_settled = not (self._maker.is_making or self._worker.is_dead)
        if self.judge is not None and is_settled:
            self.judge.settled(is_trimming=self._maker.is_trimming)

    def take_effects(self) -> list[Effect]:
        """What the machine asks for; who is let in is looked at."""
        machine, judge = self._worker.machine, self.judge
        if judge is None:
            return machine.take_effects()
        judge.about_to_ask()
        effects = machine.take_effects()
        judge.took(effects)
        return effects

    def trim(self) -> None:
        """Have what is free given back."""
        worker = self._worker
        worker.stage.world.after(TRIM_SECONDS, worker.when_awake, self._trimmed)

    def _trimmed(self) -> None:
        self._process.give_back()
        self._maker.trimmed()
        self.look_and_perform()

    def write(self, nbytes: int) -> int:
        """Begin to write so many bytes of results; how many bytes that will be."""
        worker = self._worker
        begun = worker.machine.spill(nbytes, worker.stage.world.now)
        worker.perform()
        return begun

    def let_in(self, *, is_overdue: bool) -> None:
        """The first that waits comes in."""
        assert self.judge is not None
        self.judge.forces(is_overdue=is_overdue)
        self._worker.machine.let_in(is_overdue=is_overdue)
        self.look_and_perform()

    # --- what is seen ------------------------------------------------------------------------

    @property
    def lacking_bytes(self) -> int:
        """For the first of those that wait; nobody waits in a process that has died."""
        room = self._worker.machine.state.room
        return 0 if room is None or self._worker.is_dead else room.lacking_bytes

    @property
    def leaving_bytes(self) -> int:
        """Of results that are being written to disk, or freed."""
        return self._worker.machine.state.writing_nbytes + self._process.freeing_bytes

    def other_bytes(self) -> int:
        """What is neither a result, nor a run's, nor on its way."""
        return self._other_bytes(self._process.now_bytes())

    def _other_bytes(self, process: int) -> int:
        coming = self._worker.machine.state.coming_nbytes
        return max(0, process - self._process.managed_bytes - self._footprints.grown - coming)

    def is_under_way(self) -> bool:
        """Whether anything goes on that may leave room as it ends."""
        return self._worker.machine.is_under_way()

    def under_way(self) -> tuple[object, ...]:
        """What that is, and of how many bytes results are."""
        return (*self._worker.machine.under_way(), self._process.managed_bytes)

    def worked_seconds(self) -> float:
        """Of a processor, that the process has had."""
        return self._worker.threads.worked_seconds()

    def is_sending(self) -> bool:
        """Whether values are on their way that may not be kept any more."""
        return self._process.is_sending


def _kind_of(run: Run) -> str:
    """The first part of its key."""
    return run.key.partition("-")[0]
