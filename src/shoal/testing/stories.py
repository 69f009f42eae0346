"""Stories, which are lists of tuples that end with a cause and an instant, held against others."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any, Final

_ENDING: Final = 2
"""Every entry of a story ends with its stimulus and the time."""
_OLDEST_SECONDS: Final = 3600.0
_AHEAD_SECONDS: Final = 60.0
"""By which the clock of another machine may be wrong."""


def assert_valid_story(story: Iterable[Sequence[Any]], ordered_timestamps: bool = True) -> None:
    """Each entry ends with a text and a time of the last hour, and time does not go backwards.

    Raises:
        AssertionError: it is otherwise.
    """
    last, now = float("-inf"), time.time()
    for entry in story:
        wrong = _what_is_wrong_with(entry, now)
        if not wrong and ordered_timestamps:
            wrong = "it is told after what came later" if entry[-1] < last else ""
            last = entry[-1]
        if wrong:
            raise AssertionError(f"Malformed story event: {entry!r}: {wrong}")


def _what_is_wrong_with(entry: Sequence[Any], now: float) -> str:
    """Empty if nothing is."""
    if not isinstance(entry, tuple):
        return "it is no tuple"
    if len(entry) <= _ENDING:
        return "it says nothing beside its cause and time"
    stimulus, instant = entry[-_ENDING:]
    if not isinstance(stimulus, str) or not stimulus:
        return "it has no cause"
    if not isinstance(instant, float | int):
        return "it has no time"
    if not now - _OLDEST_SECONDS < instant < now + _AHEAD_SECONDS:
        return "its time is not of the last hour"
    return ""


def assert_story(
    story: Sequence[tuple[Any, ...]],
    expect: Sequence[tuple[Any, ...]],
    *,
    strict: bool = False,
    ordered_timestamps: bool = True,
) -> None:
    """The story tells what is expected, in that order.

    Args:
        expect: entries, with or without their last two members; a callable in one of them is asked
            whether what stands in its place will do.
        strict: nothing may be told beside.
        ordered_timestamps: False: of several places, whose clocks may differ.

    Raises:
        AssertionError: it does not.
    """
    assert_valid_story(story, ordered_timestamps)
    told = list(story)
    if strict:
        assert len(told) == len(expect), f"{len(told)} entries instead of {len(expect)}: {told}"
    left = iter(told)
    for wanted in expect:
        entry = next((each for each in left if strict or _is_like(each, wanted)), None)
        if entry is None or not _is_like(entry, wanted):
            lines = "\n".join(map(str, told))
            raise AssertionError(f"{wanted!r} is not told, or not in its turn, by:\n{lines}")


def _is_like(entry: tuple[Any, ...], wanted: tuple[Any, ...]) -> bool:
    if len(wanted) not in (len(entry), len(entry) - _ENDING):
        return False
    return all(
        bool(will_do(part)) if callable(will_do) else bool(part == will_do)
        for part, will_do in zip(entry, wanted, strict=False)
    )
