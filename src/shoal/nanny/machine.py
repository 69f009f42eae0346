"""When a worker is started again and when not: what became of its process in, effects out.

One machine keeps one worker alive, under one name, through any number of processes.  It is pure:
time is an argument, and causes are texts for people.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, assert_never

from shoal.observe.reasons import (
    INTERNAL_ERROR,
    LIFETIME,
    RECYCLED,
    RESTARTED,
    TERMINATED,
    TOO_SILENT,
)

_DOUBLINGS_MAX: Final = 60
"""Of a pause; the limit of its length is reached long before."""


class Phase(StrEnum):
    """Where in its life the worker is."""

    idle = "idle"  # nobody has asked for it
    starting = "starting"  # somebody asked, and waits
    restarting = "restarting"  # it died, and its successor starts
    pausing = "pausing"  # it died, and its successor is not due yet
    running = "running"
    closed = "closed"  # somebody wanted that
    given_up = "given up"


@dataclass(frozen=True, slots=True)
class RestartSettings:
    """How often and how fast; see `config.Nanny` for the reasons."""

    pause_seconds: float
    pause_seconds_max: float
    deaths_max: int
    steady_seconds: float
    memory_deaths_max: int
    memory_steady_seconds: float


# --- events ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AskedToStart:
    """Somebody wants the worker; what it died of before counts no more."""


@dataclass(frozen=True, slots=True)
class AskedToClose:
    """Nobody wants the worker any more, whatever becomes of its process."""


@dataclass(frozen=True, slots=True)
class WorkerReady:
    """It is registered with the scheduler."""


@dataclass(frozen=True, slots=True)
class WorkerDied:
    """Its process ended, or could not become a worker, and nobody had asked for that."""

    cause: str
    has_worked: bool = False  # it has finished a task
    by_memory_limit: bool = False  # we have ended it for that


@dataclass(frozen=True, slots=True)
class WorkerLeft:
    """It closed in good order."""

    reason: str
    again: bool = False  # another shall take its place, as at the end of a lifetime
    by_request: bool = False  # somebody asked for that other, so it is no death


@dataclass(frozen=True, slots=True)
class Woke:
    """The time of a `WakeAfter` is over."""


def meaning_of(farewell: str, *, has_heirs: bool) -> WorkerLeft | None:
    """What a worker has said as it closed; None: it had to, and that counts as a death.

    Args:
        farewell: begins as one of `observe/reasons.py`, or is some other reason.
        has_heirs: another shall come after one that has lived long enough.
    """
    if farewell.startswith((TERMINATED, TOO_SILENT, INTERNAL_ERROR)):
        return None
    if farewell.startswith((RESTARTED, RECYCLED)):
        return WorkerLeft(farewell, again=True, by_request=True)
    return WorkerLeft(farewell, again=farewell == LIFETIME and has_heirs)


Event = AskedToStart | AskedToClose | WorkerReady | WorkerDied | WorkerLeft | Woke


# --- effects ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Start:
    """Start a process; answered by WorkerReady or WorkerDied."""


@dataclass(frozen=True, slots=True)
class WakeAfter:
    """A process is to be started in so many seconds: step with Woke then."""

    seconds: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """It is not started again.  `causes`: of its deaths in a row, the first one first."""

    causes: tuple[str, ...]
    by_memory_limit: bool = False  # all of them


@dataclass(frozen=True, slots=True)
class End:
    """It has left for good."""

    reason: str


Effect = Start | WakeAfter | GiveUp | End


class NannyMachine:
    """Restarts what died by itself: at once, then ever later, and not for ever.

    A worker that has lived `steady_seconds` is a success, and whatever kills it then is the first
    death again.  One that has finished a task can start: its death is answered later than the one
    before, but is none of the `deaths_max`.  What comes to its memory limit within
    `memory_steady_seconds` is counted by itself, whatever it has done.  The one who asked for a
    start is told of its failure at once: it is restarts alone that are tried again.
    """

    def __init__(self, settings: RestartSettings) -> None:
        self.settings = settings
        self.phase = Phase.idle
        most = max(settings.deaths_max, settings.memory_deaths_max)
        self._causes: deque[str] = deque(maxlen=most)  # the last of those in a row
        self.ndeaths = 0  # in a row
        self._nquick = 0  # the last of them: it had done nothing
        self._nmemory = 0  # the last of them: by the memory limit
        self._ready_at = 0.0
        self._due_at = 0.0

    def __repr__(self) -> str:
        return f"<NannyMachine {self.phase}, {self.ndeaths} deaths in a row>"

    @property
    def row(self) -> tuple[int, int]:
        """How many deaths of one kind there were in a row, and how many there may be; the kind
        that is nearer to its end.  (0, 0): the last was of none."""
        quick = self._nquick, self.settings.deaths_max
        memory = self._nmemory, self.settings.memory_deaths_max
        first, second = sorted((quick, memory), key=lambda row: row[1] - row[0])
        return first if first[0] else second if second[0] else (0, 0)

    def step(self, event: Event, now: float) -> list[Effect]:
        """What to do about `event`; `now` in seconds of one monotonic clock."""
        match event:
            case AskedToStart():
                return self._on_asked_to_start()
            case AskedToClose():
                self.phase = Phase.closed
                return []
            case WorkerReady():
                return self._on_ready(now)
            case WorkerDied():
                return self._on_died(event, now)
            case WorkerLeft():
                return self._on_left(event, now)
            case Woke():
                return self._on_woke(now)
            case _:
                assert_never(event)

    def _on_asked_to_start(self) -> list[Effect]:
        if self.phase in (Phase.starting, Phase.restarting, Phase.running):
            return []
        self.phase = Phase.starting
        self._begin_row()
        return [Start()]

    def _on_ready(self, now: float) -> list[Effect]:
        if self.phase in (Phase.starting, Phase.restarting):  # else it is to close already
            self.phase = Phase.running
            self._ready_at = now
        return []

    def _on_died(self, death: WorkerDied, now: float) -> list[Effect]:
        if self.phase not in (Phase.starting, Phase.restarting, Phase.running):
            return []
        self._count(death, now - self._ready_at if self.phase is Phase.running else 0.0)
        if self.phase is Phase.starting:
            self.phase = Phase.given_up
            return [GiveUp(tuple(self._causes))]
        is_quick = self._nquick >= self.settings.deaths_max
        if is_quick or self._nmemory >= self.settings.memory_deaths_max:
            self.phase = Phase.given_up
            by_memory_limit = not is_quick or self._nmemory >= self._nquick
            ncauses = self._nmemory if by_memory_limit else self._nquick
            return [GiveUp(tuple(self._causes)[-ncauses:], by_memory_limit)]
        seconds = self._pause_seconds()
        if not seconds:
            self.phase = Phase.restarting
            return [Start()]
        self.phase = Phase.pausing
        self._due_at = now + seconds
        return [WakeAfter(seconds)]

    def _count(self, death: WorkerDied, lived_seconds: float) -> None:
        """Add a death to the row, or let it be the first of another."""
        settings = self.settings
        is_long = is_steady = lived_seconds >= settings.steady_seconds
        if death.by_memory_limit:
            is_steady = lived_seconds >= settings.memory_steady_seconds
        if is_steady:
            self._begin_row()
        self._causes.append(death.cause)
        self.ndeaths += 1
        is_quick = not is_long and not death.has_worked
        self._nquick = self._nquick + 1 if is_quick else 0
        self._nmemory = self._nmemory + 1 if death.by_memory_limit and not is_steady else 0

    def _begin_row(self) -> None:
        self._causes.clear()
        self.ndeaths = self._nquick = self._nmemory = 0

    def _on_left(self, end: WorkerLeft, now: float) -> list[Effect]:
        if end.by_request and self.phase is Phase.running:
            self.phase = Phase.restarting
            return [Start()]
        if end.again:
            return self._on_died(WorkerDied(end.reason), now)
        if self.phase in (Phase.closed, Phase.given_up):
            return []
        self.phase = Phase.closed
        return [End(end.reason)]

    def _on_woke(self, now: float) -> list[Effect]:
        if self.phase is not Phase.pausing:
            return []
        if now < self._due_at:  # a timer of an earlier pause, or one that is early
            return [WakeAfter(self._due_at - now)]
        self.phase = Phase.restarting
        return [Start()]

    def _pause_seconds(self) -> float:
        """Nothing after the first death of a row, then twice as long after each."""
        if self.ndeaths == 1:
            return 0.0
        doubled: float = self.settings.pause_seconds * 2.0 ** min(self.ndeaths - 2, _DOUBLINGS_MAX)
        return min(doubled, self.settings.pause_seconds_max)
