"""What is to be done about the memory of a worker's process, as it is found again and again?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

RESUME_MARGIN: Final = 0.05
"""By so much of the limit the process is to fall below where it paused, to resume at once."""
BELOW_SECONDS: Final = 1.0
"""So long it is to be below without having fallen by that much, to resume."""
COLLECT_PAUSE_SECONDS: Final = 2.0
"""Between two collections of garbage, at least: each holds up everything."""
COLLECT_SHARE_MAX: Final = 0.05
"""Of the time, for collections of garbage."""
TRIM_PAUSE_SECONDS: Final = 0.5
"""Between two requests to the C library to give back what is free; twice as long after each that
did not help,"""
TRIM_PAUSE_SECONDS_MAX: Final = 8.0
"""but no longer than this."""
RECYCLE_AGAIN_SECONDS: Final = 10.0
"""Until the scheduler is asked again, if it has not replaced the worker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Bytes of the process at which something is done; None: that is never done."""

    limit: int
    target: float | None = None  # spill down to here
    spill: float | None = None
    pause: float | None = None
    recycle_after_seconds: float | None = None

    @classmethod
    def of(
        cls,
        limit: int,
        *,
        target_ratio: float | None,
        spill_ratio: float | None,
        pause_ratio: float | None,
        recycle_after_seconds: float | None,
    ) -> Thresholds:
        """Of ratios of the limit, in bytes.

        A worker that pauses before it would write results to disk writes them as it pauses: nothing
        else might ever let it go on.
        """
        if spill_ratio is not None and pause_ratio is not None:
            spill_ratio = min(spill_ratio, pause_ratio)
        return cls(
            limit=limit,
            target=None if target_ratio is None else limit * target_ratio,
            spill=None if spill_ratio is None else limit * spill_ratio,
            pause=None if pause_ratio is None else limit * pause_ratio,
            recycle_after_seconds=recycle_after_seconds,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a worker finds of its memory; bytes."""

    process: int
    managed: int  # results in memory, as they were measured
    leaving: int  # of those: on their way to disk
    nexecuting: int  # runs
    is_trimming: bool = False  # the C library is about to give back what is free


@dataclass(frozen=True, slots=True, kw_only=True)
class Relief:
    """What is to be done now."""

    spill_bytes: int = 0
    collect: bool = False  # garbage
    trim: bool = False  # have the C library give back what is free
    pauses: bool = False
    resumes: bool = False
    recycle: bool = False  # ask for another process in place of this one

    def __bool__(self) -> bool:
        return (
            self.spill_bytes > 0
            or self.collect
            or self.trim
            or self.pauses
            or self.resumes
            or self.recycle
        )


class Pressure:
    """Decides, look after look.  Times are seconds of one monotonic clock."""

    __slots__ = (
        "_asked_at",
        "_below_since",
        "_collect_at",
        "_is_too_small",
        "_least_managed",
        "_progress_at",
        "_trim_at",
        "_trim_pause_seconds",
        "is_high",
        "paused_at",
        "thresholds",
    )

    def __init__(self, thresholds: Thresholds) -> None:
        self.thresholds = thresholds
        self.paused_at: float | None = None  # None: it is not paused for this reason
        self._below_since: float | None = None  # below where it paused, without a break
        self._collect_at = self._trim_at = 0.0  # not before
        self._trim_pause_seconds = TRIM_PAUSE_SECONDS
        self._asked_at: float | None = None  # to be replaced
        self._least_managed = 0  # since it is paused
        self._progress_at = 0.0  # when results became so few
        self._is_too_small = False  # the limit: another process would be no better
        self.is_high = False
        """Whether the last look found little room, so that the next should be soon."""

    def begin(self, process: int) -> None:
        """The process has so many bytes before any task has run in it."""
        bounds = self.thresholds
        self._is_too_small = bounds.pause is not None and process > bounds.pause

    def look(self, found: Found, now: float) -> Relief:
        """What is to be done about what was found."""
        bounds = self.thresholds
        is_above_pause = bounds.pause is not None and found.process > bounds.pause
        is_above_spill = bounds.spill is not None and found.process > bounds.spill
        was_paused = self.paused_at is not None
        resumes = was_paused and not is_above_pause and self._may_resume(found, now)
        if resumes:
            self.paused_at = self._below_since = None
        elif is_above_pause:
            self._below_since = None
            if not was_paused:
                self.paused_at, self._asked_at = now, None
            if not was_paused or found.managed < self._least_managed:
                self._least_managed, self._progress_at = found.managed, now
        is_in_need = self.is_high = is_above_spill or self.paused_at is not None
        if not is_in_need:
            self._trim_pause_seconds = TRIM_PAUSE_SECONDS
        trim = is_in_need and not found.is_trimming and self._is_time_to_trim(now)
        may_do = trim or found.is_trimming  # and writes nothing to disk
        return Relief(
            spill_bytes=self._spill_bytes(found) if is_above_pause or not may_do else 0,
            collect=is_in_need and self._is_time_to_collect(now),
            trim=trim,
            pauses=is_above_pause and not was_paused,
            resumes=resumes,
            recycle=is_above_pause and self._is_to_be_replaced(found, now),
        )

    def collected(self, seconds: float, now: float) -> None:
        """Garbage was collected, which took so long."""
        self._collect_at = now + max(COLLECT_PAUSE_SECONDS, seconds / COLLECT_SHARE_MAX)

    def _spill_bytes(self, found: Found) -> int:
        """How much is to be spilled beyond what is on its way."""
        bounds = self.thresholds
        if bounds.spill is None or found.process <= bounds.spill:
            return 0
        down_to = bounds.spill if bounds.target is None else min(bounds.target, bounds.spill)
        return max(0, min(int(found.process - down_to), found.managed) - found.leaving)

    def _is_time_to_collect(self, now: float) -> bool:
        if now < self._collect_at:
            return False
        self._collect_at = now + COLLECT_PAUSE_SECONDS
        return True

    def _is_time_to_trim(self, now: float) -> bool:
        """Ever less often, as long as it doesn't help."""
        if now < self._trim_at:
            return False
        self._trim_at = now + self._trim_pause_seconds
        self._trim_pause_seconds = min(2 * self._trim_pause_seconds, TRIM_PAUSE_SECONDS_MAX)
        return True

    def _may_resume(self, found: Found, now: float) -> bool:
        """Whether it is far enough below where it paused, or has been below for a while."""
        bounds = self.thresholds
        assert bounds.pause is not None
        if self._below_since is None:
            self._below_since = now
        is_far_below = found.process <= bounds.pause - RESUME_MARGIN * bounds.limit
        return is_far_below or now - self._below_since >= BELOW_SECONDS

    def _is_to_be_replaced(self, found: Found, now: float) -> bool:
        """Whether nothing that the worker can do makes room: something leaks, or results are not
        written to disk, nor let go of.

        A run that goes on may be what takes the memory, and give it back.
        """
        bounds = self.thresholds
        assert bounds.pause is not None
        if bounds.recycle_after_seconds is None or self.paused_at is None or found.nexecuting:
            return False
        if self._is_too_small:
            return False
        is_of_results = found.process - found.managed <= bounds.pause
        begun = self._progress_at if is_of_results else self.paused_at
        since = begun + bounds.recycle_after_seconds
        if self._asked_at is not None:
            again = self._asked_at + min(bounds.recycle_after_seconds, RECYCLE_AGAIN_SECONDS)
            since = max(since, again)
        if now < since:
            return False
        self._asked_at = now
        return True
