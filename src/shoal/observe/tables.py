"""Tables for people, drawn with characters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def asciitable(columns: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """A table with a frame, each column as wide as its longest entry."""
    lines = [[str(cell) for cell in line] for line in (columns, *rows)]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    bar = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    drawn = [
        "|" + "|".join(f" {cell:{width}} " for cell, width in zip(line, widths, strict=True)) + "|"
        for line in lines
    ]
    return "\n".join([bar, drawn[0], bar, *drawn[1:], bar])
