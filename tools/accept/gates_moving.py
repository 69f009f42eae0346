"""Bytes of inputs that workers fetch from each other, against the released `distributed`."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import TYPE_CHECKING, Final

from tools.accept.figure import GATES, Figure
from tools.accept.gates_memory import on_both

if TYPE_CHECKING:
    from benchmarks.memory.outside import Run

SIZES: Final = {"merge": 64, "tree": 64, "stencil": 24}
NWORKERS: Final = 4
NROUNDS: Final = 9
SECONDS_MAX: Final = 90.0
EVEN_MB: Final = {"merge": SIZES["merge"] * (NWORKERS - 1) // NWORKERS, "tree": 0, "stencil": 0}
"""What has to move if each worker made as many blocks; less is moved only by who has slow ones."""


@GATES.register("bytes moved")
def bytes_moved() -> Iterator[Figure]:
    """Merge, tree and stencil of 1 MB blocks, on four workers of one thread each."""
    for graph, size in SIZES.items():
        options = {"graph": graph, "size": size, "nworkers": NWORKERS, "nrounds": NROUNDS}
        ours, theirs = on_both("moving", options, SECONDS_MAX)
        name = f"bytes moved, {graph} of {size} blocks of 1 MB"
        yield verdict(name, ours, theirs, EVEN_MB[graph])


def verdict(name: str, ours: Run, theirs: Run, even_mb: int = 0) -> Figure:
    """The median of ours against their rounds.

    What is moved to a merge depends on who had the processor more often, by a block or two, and on
    both sides: ours is not more if it is within what their rounds give.
    """
    if not (ours.finished and theirs.finished):
        return Figure(name, f"{ours.outcome}; distributed: {theirs.outcome}", "a figure", False)
    moved = [median(run.answers["moved_bytes"]) for run in (ours, theirs)]
    least, most = min(theirs.answers["moved_bytes"]), max(theirs.answers["moved_bytes"])
    seconds = [median(run.answers["seconds"]) for run in (ours, theirs)]
    return Figure(
        name,
        f"{moved[0] / 1e6:.0f} MB in {seconds[0]:.2f} s; distributed: {moved[1] / 1e6:.0f} MB in "
        f"{seconds[1]:.2f} s",
        f"<= distributed's ({least / 1e6:.0f} to {most / 1e6:.0f} MB in its rounds)"
        + (f", or {even_mb} MB, an even spread's" if even_mb else ""),
        passed=0 < moved[0] <= max(most, 1e6 * even_mb),
    )
