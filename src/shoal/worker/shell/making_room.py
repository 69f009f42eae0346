"""Room in memory is made for what waits for it: what is free goes back, then results go to disk.

The machine says how much is lacking for the first that waits (`machine/letting_in.py`); whatever
ends, or is written, or freed, has it ask again.  What is done about that is chosen elsewhere
(`policies/making_room.py`); when nothing helps any more the machine is told so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from shoal.storage.results import Results
from shoal.worker.machine.step import WorkerMachine
from shoal.worker.policies.making_room import RoomMaking
from shoal.worker.shell.trimming import give_back


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
        self._making = RoomMaking()
        self._is_trimming = self._is_making = False

    def look(self, process_bytes: int | None = None) -> None:
        """Tell the machine what the process has; None: measure that.  Cost: 5 to 20 us."""
        maker, grown = self._maker, self._grown()
        process = self._measure() if process_bytes is None else process_bytes
        self._making.looked(self._other_bytes(process, grown))
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
        if room is None or not room.lacking_bytes or self._is_trimming:
            return False
        deed = self._making.choose(self, maker.now())
        if deed is not None and deed.write_bytes:
            if maker.spill(deed.write_bytes, "there must be room for what is to come"):
                return True
            deed = self._making.choose(self, maker.now(), may_write=False)
        if deed is None:
            return False
        if deed.trims:
            self._is_trimming = True
            self._do_aside(give_back, self._trimmed)
        else:
            maker.machine.let_in(is_overdue=deed.is_overdue)
            maker.on_looked()
        return False

    def _trimmed(self, knows_how: bool) -> None:
        """What is there now can't be given back."""
        self._is_trimming = False
        self._making.trimmed(self.other_bytes())
        self._maker.on_looked()

    # --- what is seen ------------------------------------------------------------------------

    @property
    def lacking_bytes(self) -> int:
        """For the first of those that wait."""
        room = self._maker.machine.state.room
        return 0 if room is None else room.lacking_bytes

    @property
    def leaving_bytes(self) -> int:
        """Of results that are being written to disk, or freed."""
        return self._maker.leaving_nbytes

    def other_bytes(self) -> int:
        """What is neither a result, nor a run's, nor on its way.  Cost: 5 to 20 us."""
        return self._other_bytes(self._measure(), self._grown())

    def is_under_way(self) -> bool:
        """Whether anything goes on that may leave room as it ends."""
        return self._maker.machine.is_under_way()

    def under_way(self) -> tuple[object, ...]:
        """What that is, and of how many bytes results are."""
        return (*self._maker.machine.under_way(), self._maker.results.nbytes)

    def worked_seconds(self) -> float:
        """Of a processor, that the process has had."""
        return self._worked()

    def is_sending(self) -> bool:
        """Whether values are on their way that may not be kept any more."""
        return self._maker.server.is_sending

    def _other_bytes(self, process: int, grown: int) -> int:
        """Of so much that the process has."""
        maker = self._maker
        coming = maker.machine.state.coming_nbytes
        return max(0, process - maker.results.nbytes - grown - coming)
