"""How the demo shows its progress and its table: in colour on a terminal that can, else plainly."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from typing import Any, Final, Protocol

import click

OnPartition = Callable[[int, int], None]
PLAIN_STEPS: Final = 4
"""How often plain lines tell of progress."""


class Display(Protocol):
    """What the demo writes to."""

    def say(self, text: str) -> None:
        """One line."""

    def progress(self, what: str) -> AbstractContextManager[OnPartition]:
        """Shows how far it is; what `with` gives is called with how many are done, of how many."""

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """The first column to the left, the others to the right."""


class PlainDisplay:
    """Lines of text, for files, pipes and terminals without `rich`."""

    def say(self, text: str) -> None:
        """See `Display.say`."""
        click.echo(text)

    @contextmanager
    def progress(self, what: str) -> Iterator[OnPartition]:
        """See `Display.progress`."""

        def show(ndone: int, total: int) -> None:
            if ndone and ndone * PLAIN_STEPS // total > (ndone - 1) * PLAIN_STEPS // total:
                click.echo(f"{what}: {ndone} of {total}")

        yield show

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """See `Display.table`."""
        widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
        for row in (heads, *rows):
            cells = [row[0].ljust(widths[0])]
            cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
            click.echo("  ".join(cells))


class RichDisplay:
    """A bar and a table on a terminal."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console: Any = Console(highlight=False)

    def say(self, text: str) -> None:
        """See `Display.say`."""
        self._console.print(text, markup=False)

    @contextmanager
    def progress(self, what: str) -> Iterator[OnPartition]:
        """See `Display.progress`."""
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
        with Progress(*columns, console=self._console) as bars:
            bar = bars.add_task(what, total=None)
            yield lambda ndone, total: bars.update(bar, completed=ndone, total=total)

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """See `Display.table`."""
        from rich.box import SIMPLE_HEAD
        from rich.table import Table

        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        for index, head in enumerate(heads):
            table.add_column(head, justify="right" if index else "left")
        for row in rows:
            table.add_row(*row)
        self._console.print(table)


def choose_display() -> Display:
    """The better one of those that can be had here."""
    if sys.stdout.isatty() and find_spec("rich") is not None:
        return RichDisplay()
    return PlainDisplay()
