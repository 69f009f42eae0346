"""Stories, which are lists of tuples that end with a cause and an instant, held against others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

_ENDING: Final = 2
"""Every entry of a story ends with its stimulus and the time."""


def assert_valid_story(story: Iterable[Sequence[Any]], ordered_timestamps: bool = True) -> None:
    """Each entry ends with a text and a time, and time does not go backwards.

    Raises:
        AssertionError: it is otherwise.
    """
    last = float("-inf")
    for entry in story:
        assert isinstance(entry, tuple), f"{entry!r} is no tuple"
        assert len(entry) > _ENDING, f"{entry!r} says nothing beside its cause and time"
        stimulus, instant = entry[-_ENDING:]
        assert isinstance(stimulus, str), f"{entry!r} has no cause"
        assert stimulus, f"{entry!r} has an empty cause"
        assert isinstance(instant, float | int), f"{entry!r} has no time"
        if ordered_timestamps:
            assert instant >= last, f"{entry!r} is told after what came later"
            last = instant


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
