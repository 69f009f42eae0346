"""A bar of text that grows as futures end."""

from __future__ import annotations

import sys
import time
from typing import Any, Final

from shoal.client.completing import as_completed
from shoal.client.future import futures_of

WIDTH: Final = 40
_PAUSE_SECONDS: Final = 0.1
"""Between two looks of the bar: many short tasks shall not wait for a terminal."""


def progress(
    *futures: Any,
    notebook: bool | None = None,
    multi: bool = True,
    complete: bool = True,
    group_by: Any = "prefix",
    **kwargs: Any,
) -> None:
    """Show on stdout how many of the futures have ended, until all have; errors don't raise.

    The bar is one of text, in notebooks as well.

    Args:
        futures: futures, or containers or collections that hold some.  What counts are these, not
            the tasks behind them.
        complete: count also those that have ended already.
        group_by: "prefix", "spans" or a function: how several bars would be told apart.
        notebook, multi, kwargs: what the released `distributed` takes for widgets; of no effect.

    Raises:
        ValueError: `group_by` is none of those.
        BlockingCall: it is called on the loop of the futures' client.
    """
    if not (callable(group_by) or group_by in ("prefix", "spans")):
        raise ValueError(f"`group_by` should be 'prefix', 'spans' or a function, not {group_by!r}")
    found = futures_of(list(futures))
    if not complete:
        found = [future for future in found if not future.done()]
    if not found:
        return
    began_at = shown_at = time.monotonic()
    _show(0, len(found), 0.0)
    for nended, _ in enumerate(as_completed(found), start=1):
        now = time.monotonic()
        if now - shown_at >= _PAUSE_SECONDS or nended == len(found):
            shown_at = now
            _show(nended, len(found), now - began_at)
    sys.stdout.write("\r\n")


def bar_of_text(nended: int, nall: int, seconds: float, width: int = WIDTH) -> str:
    """A line that says how many of all have ended, and how long that took."""
    filled, percent = (width * nended // nall, 100 * nended // nall) if nall else (width, 100)
    bar = "#" * filled + " " * (width - filled)
    return f"[{bar}] | {percent}% Completed | {nended} of {nall} in {seconds:.1f} s"


def _show(nended: int, nall: int, seconds: float) -> None:
    sys.stdout.write("\r" + bar_of_text(nended, nall, seconds))
    sys.stdout.flush()
