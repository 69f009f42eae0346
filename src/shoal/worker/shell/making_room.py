"""Hands that make room in a worker's memory: what is free goes back, then results go to disk.

The machine says how much is lacking for the first that waits (`machine/letting_in.py`); whatever
ends, or is written, or freed, has it ask again.  What is done about that is chosen and begun
elsewhere (`policies/making_room.py`, `machine/making_room.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from shoal.storage.results import Results
from shoal.worker.machine.making_room import RoomMaker
from shoal.worker.machine.step import WorkerMachine
from shoal.worker.shell.trimming import give_back


class Sender(Protocol):
    """What gives values to others."""

    @property
    def is_sending(self) -> bool:
        """Whether values are on their way that may not be kept any more."""


class Owner(Protocol):
    """A worker in whose memory room is made."""

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


class RoomHands:
    """Of one worker.  All on its loop."""

    def __init__(
        self,
        owner: Owner,
        do_aside: Callable[[Callable[[], Any], Callable[[Any], None]], None],
        measure: Callable[[], int],
        grown: Callable[[], int],
        worked: Callable[[], float],
    ) -> None:
        """Nothing is looked at yet.

        Args:
            owner: whose memory it is.
            do_aside: calls the first in a thread, and the second with what it returns.
            measure: bytes of the process.
            grown: of these, what runs have taken that go on.
            worked: seconds of a processor that the process has had.
        """
        self._owner, self._do_aside = owner, do_aside
        self._measure, self._grown, self._worked = measure, grown, worked
        self._maker = RoomMaker(self)

    def look(self, process_bytes: int | None = None) -> None:
        """Tell the machine what the process has; None: measure that.  Cost: 5 to 20 us."""
        owner, grown = self._owner, self._grown()
        process = self._measure() if process_bytes is None else process_bytes
        self._maker.looked(self._other_bytes(process, grown))
        owner.machine.looked(process, grown, owner.now())

    def perform(self, perform_effects: Callable[[], None]) -> None:
        """Have effects performed; measured before, where that matters, and with room made after."""
        room = self._owner.machine.state.room
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
        self._maker.make(self._owner.now())

    # --- what is done ------------------------------------------------------------------------

    def trim(self) -> None:
        """Have the C library give back what is free."""
        self._do_aside(give_back, self._trimmed)

    def _trimmed(self, knows_how: bool) -> None:
        self._maker.trimmed()
        self._owner.on_looked()

    def write(self, nbytes: int) -> int:
        """Begin to write so many bytes of results; how many bytes that will be."""
        return self._owner.spill(nbytes, "there must be room for what is to come")

    def let_in(self, *, is_overdue: bool) -> None:
        """The first that waits comes in."""
        self._owner.machine.let_in(is_overdue=is_overdue)
        self._owner.on_looked()

    # --- what is seen ------------------------------------------------------------------------

    @property
    def lacking_bytes(self) -> int:
        """For the first of those that wait."""
        room = self._owner.machine.state.room
        return 0 if room is None else room.lacking_bytes

    @property
    def leaving_bytes(self) -> int:
        """Of results that are being written to disk, or freed."""
        return self._owner.leaving_nbytes

    def other_bytes(self) -> int:
        """What is neither a result, nor a run's, nor on its way.  Cost: 5 to 20 us."""
        return self._other_bytes(self._measure(), self._grown())

    def is_under_way(self) -> bool:
        """Whether anything goes on that may leave room as it ends."""
        return self._owner.machine.is_under_way()

    def under_way(self) -> tuple[object, ...]:
        """What that is, and of how many bytes results are."""
        return (*self._owner.machine.under_way(), self._owner.results.nbytes)

    def worked_seconds(self) -> float:
        """Of a processor, that the process has had."""
        return self._worked()

    def is_sending(self) -> bool:
        """Whether values are on their way that may not be kept any more."""
        return self._owner.server.is_sending

    def _other_bytes(self, process: int, grown: int) -> int:
        """Of so much that the process has."""
        owner = self._owner
        coming = owner.machine.state.coming_nbytes
        return max(0, process - owner.results.nbytes - grown - coming)
