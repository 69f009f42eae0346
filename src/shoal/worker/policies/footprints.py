"""By how much does each run make the process grow?  Estimated from what the process has in all.

Between two looks, what has come beyond results that were kept is shared among the runs that went
on meanwhile: among runs of different kinds by what each kind took when it was seen alone, and else
equally.  What goes again is first that of runs that have ended.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Final, Generic, TypeVar

TELL_BYTES_MIN: Final = 16 << 20
"""Runs that take less are not worth a word."""
WORTH_BYTES_MIN: Final = 4 << 20
"""What has come together is not worth to be told apart if it is less."""
TELL_AGAIN_FACTOR: Final = 1.5
"""A run that goes on is told of anew once it takes so many times what was told."""
NEVER_LESS_THAN: Final = 0.02
"""Of what the largest is expected to take, each of those beside it may take so much."""
KINDS_MAX: Final = 256
"""Of which is remembered what they took."""
FADING: Final = 0.9
"""What a kind took counts for so much of itself after each of its runs that took less."""

GAUGE_SECONDS_MIN: Final = 0.002
"""A run that is over sooner can't have taken much: the system clears each page first."""

R = TypeVar("R", bound=Hashable)


class Footprints(Generic[R]):
    """What the runs that go on have of the process; `R` is what stands for a run."""

    __slots__ = (
        "_coming",
        "_guessed",
        "_kind_of",
        "_kinds",
        "_left",
        "_levels",
        "_peaks",
        "_rest",
        "_told",
    )

    def __init__(self, kind_of: Callable[[R], str]) -> None:
        """`kind_of`: what runs have in common that take alike; asked only where it matters."""
        self._kind_of = kind_of
        self._levels: dict[R, float] = {}  # bytes that each has now
        self._peaks: dict[R, float] = {}  # the most that each had
        self._told: dict[R, float] = {}  # what was told of that
        self._guessed: set[R] = set()  # something came while others went on, too
        self._kinds: dict[str, float] = {}  # bytes that a run of this kind took, the latest last
        self._rest: float | None = None  # of the process at the last look, what is no result
        self._left = 0.0  # of that, what runs have left behind that have ended
        self._coming = 0.0  # of that, results on their way, as far as they are there

    def __len__(self) -> int:
        return len(self._levels)

    @property
    def nkinds(self) -> int:
        """Of how many kinds it is known what they take."""
        return len(self._kinds)

    @property
    def kinds(self) -> Mapping[str, float]:
        """Bytes that a run of a kind took, as it is learnt; to be read only."""
        return self._kinds

    @property
    def grown(self) -> int:
        """What the runs that go on had at the last look, together."""
        return int(sum(self._levels.values()))

    def took_little(self, run: R) -> None:
        """A run has ended that was expected to take much: of its kind that is not known."""
        kind = self._kind_of(run)
        if kind not in self._kinds:
            self._know(kind, 0.0)

    def look(
        self, going: Iterable[R], process: int, peak: int, managed: int, coming: int = 0
    ) -> None:
        """The process has so much now; what has come since the last look is shared.

        Args:
            going: the runs that go on, or have just ended; one may be among both.  Others that
                were known have ended; what they took after the last look is not known.
            process: bytes that it has.
            peak: the most that it had since the last look.
            managed: of results, as they were measured.
            coming: of results that are on their way, from peers or from disk.
        """
        levels = {run: self._levels.pop(run, 0.0) for run in dict.fromkeys(going)}
        for run in list(self._levels):
            self._forget(run)
        self._levels = levels
        rest = float(process - managed)
        before, self._rest = self._rest, rest
        if before is None or not levels:
            self._left, self._coming = 0.0, min(self._coming, float(coming))
            return
        height, change = peak - managed - before, rest - before
        if coming or self._coming:
            arrived = max(0.0, self._coming - coming)
            height, change = height + arrived, change + arrived
            came = max(0.0, min(change, coming - self._coming + arrived))
            self._coming += came - arrived
            height, change = height - came, change - came
        self._share(max(0.0, height), change)

    def end(self, runs: Iterable[R]) -> None:
        """These have ended, right after a look."""
        for run in runs:
            if run in self._levels:
                self._learn(run)
                self._forget(run)

    def settle(self, process: int, managed: int) -> None:
        """Results were kept or dropped right after a look: what they take is no growth."""
        rest = float(process - managed)
        if self._rest is not None:
            self._left = max(0.0, self._left + rest - self._rest)
        self._rest = rest

    def to_tell(self, runs: Iterable[R], *, at_end: bool) -> list[tuple[R, int]]:
        """Of these runs, those that are worth a word, with the most that each has had."""
        told: list[tuple[R, int]] = []
        for run in runs:
            peak, before = self._peaks.get(run, 0.0), self._told.get(run, 0.0)
            if at_end:
                is_news = peak > before and peak >= TELL_BYTES_MIN
            else:
                is_news = peak >= WORTH_BYTES_MIN and self._has_grown(run, peak, before)
            if is_news:
                self._told[run] = peak
                told.append((run, int(peak)))
        return told

    def _has_grown(self, run: R, peak: float, before: float) -> bool:
        """Whether a run that goes on is told of anew: it takes much more, or it is of a kind of
        which nobody can know yet how much that will be, and has not stopped to grow."""
        if peak >= TELL_BYTES_MIN and peak >= TELL_AGAIN_FACTOR * before:
            return True
        return peak >= before + WORTH_BYTES_MIN and self._kind_of(run) not in self._kinds

    def largest(self, n: int) -> list[tuple[R, int]]:
        """The `n` runs that have most now, and how much."""
        ranked = sorted(self._levels.items(), key=lambda item: -item[1])
        return [(run, int(level)) for run, level in ranked[:n] if level > 0]

    def _forget(self, run: R) -> None:
        """It has ended; what it has now is left behind."""
        self._left += self._levels.pop(run)
        self._peaks.pop(run, None)
        self._told.pop(run, None)
        self._guessed.discard(run)

    def _share(self, height: float, change: float) -> None:
        """`height`: of the peak above the last look; `change`: of what is there now."""
        levels, peaks = self._levels, self._peaks
        weights = dict.fromkeys(levels, 1.0)
        if len(levels) > 1 and height >= WORTH_BYTES_MIN:
            self._guessed.update(levels)
            weights = self._weights()
        whole = sum(weights.values())
        for run, weight in weights.items():
            share = weight / whole
            peak = levels[run] + share * height
            if change > 0:
                levels[run] += share * change
            peaks[run] = max(peaks.get(run, 0.0), peak, levels[run])
        if change < 0:
            self._take(-change)

    def _take(self, nbytes: float) -> None:
        """So much has gone: first of what was left behind, then of what each has."""
        from_left = min(self._left, nbytes)
        self._left -= from_left
        whole = sum(self._levels.values())
        if whole > 0:
            kept = max(0.0, 1 - (nbytes - from_left) / whole)
            self._levels = {run: kept * level for run, level in self._levels.items()}

    def _weights(self) -> dict[R, float]:
        """By what each is still expected to take; nobody is expected to take nothing."""
        kinds = self._kinds
        if not kinds:
            return dict.fromkeys(self._levels, 1.0)
        known = {run: kinds.get(self._kind_of(run)) for run in self._levels}
        found = [nbytes for nbytes in known.values() if nbytes is not None]
        usual = max(float(TELL_BYTES_MIN), sum(found) / len(found) if found else 0.0)
        least = NEVER_LESS_THAN * max([usual, *found])
        return {
            run: max(least, (usual if nbytes is None else nbytes) - self._levels[run])
            for run, nbytes in known.items()
        }

    def _learn(self, run: R) -> None:
        """What was seen of a run that was alone says most; of others, it is a guess."""
        peak = self._peaks.get(run, 0.0)
        if peak < WORTH_BYTES_MIN and not self._kinds:
            return  # as all runs so far: there is nothing to be told apart
        kind = self._kind_of(run)
        before = self._kinds.pop(kind, None)
        if before is None:
            learned = peak
        elif run in self._guessed:
            learned = before
        else:
            learned = max(peak, FADING * before)
        self._know(kind, learned)

    def _know(self, kind: str, nbytes: float) -> None:
        """The latest last, and no more than are remembered."""
        self._kinds[kind] = nbytes
        if len(self._kinds) > KINDS_MAX:
            del self._kinds[next(iter(self._kinds))]
