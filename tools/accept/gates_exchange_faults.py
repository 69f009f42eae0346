"""Exchange of all with all, in which workers die, stand still, or have no disk: right, or told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from tools.accept.figure import GATES, Figure
from tools.accept.gates_memory import MIB, ours_alone

if TYPE_CHECKING:
    from benchmarks.memory.outside import Run

SHAPE: Final = {"nbytes": 384 * MIB, "limit_bytes": 512 * MIB}
"""On three workers: more than each may have in memory of shards."""

SECONDS_MAX: Final = 1800.0
ROUNDS: Final = {
    "kill": ("30 kills of a worker at any moment", 30),
    "freeze": ("a worker that stands still for 8 s, about the barrier", 6),
    "stop": ("a worker that stands still for ever, at any moment", 6),
    "full": ("the disk of one worker is full", 6),
    "full everywhere": ("all disks are full", 3),
}
MAY_BE_TOLD: Final = ("full everywhere",)
"""Where an error that says what happened is right as well."""


@GATES.register("exchange: faults")
def faults() -> Iterator[Figure]:
    """Shuffle, merge and rechunk in turn on three workers, each with one fault."""
    for fault, (words, nrounds) in ROUNDS.items():
        options = {**SHAPE, "faults": [fault], "nrounds": nrounds}
        yield figure_of(fault, words, nrounds, ours_alone("breaking", options, SECONDS_MAX))


def figure_of(fault: str, words: str, nrounds: int, run: Run) -> Figure:
    """What came of one fault."""
    counts: dict[str, int] = run.answers.get("counts", {}).get(fault, {})
    seconds: list[Any] = run.answers.get("seconds", {}).get(fault, [])
    nright = counts.get("right", 0)
    ngood = nright + (counts.get("named", 0) if fault in MAY_BE_TOLD else 0)
    others = ", ".join(f"{n} {how}" for how, n in counts.items() if n and how != "right")
    errors = "; ".join(run.answers.get("errors", [])[:2]) if ngood < nrounds else ""
    told = f"{nright} of {nrounds} right{f', {others}' if others else ''}"
    return Figure(
        words,
        f"{told}, {max(seconds, default=0)} s at most{'' if run.finished else f' ({run.outcome})'}"
        f"{f' ({errors})' if errors else ''}",
        "every row in its place"
        + (", or an error that says what happened" if fault in MAY_BE_TOLD else "")
        + "; never wrong, never a hang (120 s)",
        passed=run.finished and ngood == nrounds,
    )
