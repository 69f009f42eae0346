"""Room in memory is made for what waits for it: what is free goes back, then results go to disk.

The machine says how much is lacking for the first that waits (`machine/letting_in.py`); whatever
ends, or is written, or freed, has it ask again.  When nothing helps any more it is told so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

from shoal.storage.results import Results
from shoal.worker.machine.step import WorkerMachine
from shoal.worker.model.entities import NEVER
from shoal.worker.shell.trimming import give_back

TRIM_BYTES: Final = 16 << 20
"""If the C library may keep more than this it is asked to give it back."""

TRIM_PAUSE_SECONDS: Final = 0.1
"""Between two such requests: each takes some milliseconds for 100 MB."""

SENDING_SECONDS_MAX: Final = 2.0
"""What waits for room waits so long for values that are being sent, where nothing else goes on."""

STANDSTILL_SECONDS: Final = 10.0
"""So long nothing ends and nothing works, before what waits for room is let in all the same: a run
may be waiting for just that, by an event or a lock of which nobody here knows."""

WORKING_SHARE: Final = 0.05
"""Of one processor: whoever takes more of it works."""


class Sender(Protocol):
    """What gives values to others."""

    @property
    def is_sending(self) -> bool:
        """Whether values are on their way that may not be kept any more."""


class Maker(Protocol):
    """A worker that makes room, and asks again."""

    machine: WorkerMachine
    results: Results

    @property
    def server(self) -> Sender:
        """What gives values to others."""

    @property
    def leaving_nbytes(self) -> int:
        """Of results that are being written to disk, or freed."""

    def spill(self, nbytes: int, why: str) -> int:
        """Begin to write so many bytes of results to disk."""

    def on_looked(self, process_bytes: int | None = None) -> None:
        """The process may have less memory: let in what waits, if there is room."""

    def now(self) -> float:
        """The loop's time."""


class RoomMaker:
    """Makes room in one worker's memory.  All on the worker's loop."""

    def __init__(
        self,
        maker: Maker,
        do_aside: Callable[[Callable[[], Any], Callable[[Any], None]], None],
        measure: Callable[[], int],
        grown: Callable[[], int],
        worked: Callable[[], float],
    ) -> None:
        """Nothing is looked at yet.

        Args:
            maker: whose memory it is.
            do_aside: calls the first in a thread, and the second with what it returns.
            measure: bytes of the process.
            grown: of these, what runs have taken that go on.
            worked: seconds of a processor that the process has had.
        """
        self._maker, self._do_aside = maker, do_aside
        self._measure, self._grown, self._worked = measure, grown, worked
        self._needed_bytes = NEVER  # the least that was there, and was not to be given back
        self._trim_at = 0.0
        self._sending_until = 0.0  # is waited for what is being sent; 0: nobody waits for that
        self._is_trimming = self._is_making = False
        self._stands: tuple[object, ...] = ()  # what was under way when something last went on
        self._stands_since = self._worked_before = 0.0  # and when that was

    def look(self, process_bytes: int | None = None) -> None:
        """Tell the machine what the process has; None: measure that.  Cost: 5 to 20 us."""
        maker, grown = self._maker, self._grown()
        process = self._measure() if process_bytes is None else process_bytes
        self._needed_bytes = min(self._needed_bytes, self._other_bytes(process, grown))
        maker.machine.looked(process, grown, maker.now())

    def perform(self, perform_effects: Callable[[], None]) -> None:
        """Have effects performed; measured before, where that matters, and with room made after."""
        room = self._maker.machine.state.room
        if room is None:
            perform_effects()
            return
        if room.is_near:
            self.look()
        perform_effects()
        if room.lacking_bytes:
            self.make()

    def make(self) -> None:
        """Something waits for room: begin what makes some, or else have it let in."""
        if self._is_making:
            return
        self._is_making = True  # what is begun here comes here as well
        try:
            while self._begins_something():
                continue
        finally:
            self._is_making = False

    def _begins_something(self) -> bool:
        """Whether something was begun, and more may have to be."""
        maker = self._maker
        room = maker.machine.state.room
        if room is None or not room.lacking_bytes or self._is_trimming or self._begins_trim():
            return False
        leaving = maker.leaving_nbytes
        wanted = room.lacking_bytes - leaving
        if wanted > 0 and maker.spill(wanted, "there must be room for what is to come"):
            return True
        is_under_way = maker.machine.is_under_way()
        if leaving or (is_under_way and not self._stands_still()):
            return False
        if not is_under_way and self._waits_for_sending():
            return False
        maker.machine.let_in(is_overdue=is_under_way)
        maker.on_looked()
        return False

    def _stands_still(self) -> bool:
        """Whether what is under way has neither ended nor worked for long."""
        now, worked = self._maker.now(), self._worked()
        state, results = self._maker.machine.state, self._maker.results
        under_way = (len(state.runs), len(state.fetches), len(state.reads), len(state.writes))
        stands = (state.room and state.room.for_run, under_way, results.nbytes)
        seconds = now - self._stands_since
        works = worked - self._worked_before > WORKING_SHARE * max(seconds, 1.0)
        if stands != self._stands or works:
            self._stands, self._stands_since, self._worked_before = stands, now, worked
            return False
        if seconds < STANDSTILL_SECONDS:
            return False
        self._stands_since, self._worked_before = now, worked  # the next one waits as long
        return True

    def _waits_for_sending(self) -> bool:
        """Whether what is being sent may leave room: for a while, as a peer may be frozen."""
        now = self._maker.now()
        if not self._maker.server.is_sending:
            self._sending_until = 0.0
            return False
        if not self._sending_until:
            self._sending_until = now + SENDING_SECONDS_MAX
        return now < self._sending_until

    def _begins_trim(self) -> bool:
        """Have what is free given back, if that may be much."""
        now = self._maker.now()
        free_bytes = self._other_bytes(self._measure(), self._grown()) - self._needed_bytes
        if now < self._trim_at or free_bytes < TRIM_BYTES:
            return False
        self._trim_at = now + TRIM_PAUSE_SECONDS
        self._is_trimming = True
        self._do_aside(give_back, self._trimmed)
        return True

    def _trimmed(self, knows_how: bool) -> None:
        """What is there now can't be given back."""
        self._is_trimming = False
        self._needed_bytes = self._other_bytes(self._measure(), self._grown())
        self._maker.on_looked()

    def _other_bytes(self, process: int, grown: int) -> int:
        """What is neither a result, nor a run's, nor on its way."""
        state = self._maker.machine.state
        coming = state.incoming_nbytes + state.reading_nbytes
        return max(0, process - self._maker.results.nbytes - grown - coming)
