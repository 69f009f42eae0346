"""What does not fit into memory goes to disk: quickly, without holding up the loop, and safely."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from tools.accept.figure import GATES, Figure
from tools.accept.gates_memory import MIB, on_both, ours_alone
from tools.accept.there import beside

if TYPE_CHECKING:
    from benchmarks.memory.outside import Run

KINDS: Final = ("full", "torn", "flipped", "deleted", "slow")
NROUNDS: Final = 20
"""Of each kind: a hundred in all."""
SPOILING: Final = {"limit_bytes": 300 * MIB, "nblocks": 24}
SPOILING_SECONDS_MAX: Final = 900.0

SPILLING: Final = {"limit_bytes": 512 * MIB, "nblocks": 64, "threads": 2}
SPILLING_SECONDS_MAX: Final = 120.0
SPEED_ROUNDS: Final = 3
SPEED_RATIO_MIN: Final = 1.3
BLOCKED_MS_MAX: Final = 50.0


@GATES.register("spill: faults")
def spill_faults() -> Iterator[Figure]:
    """A full disk, torn, flipped and deleted files, a slow disk: a hundred times."""
    options = {**SPOILING, "kinds": KINDS, "nrounds": NROUNDS}
    run = ours_alone("spoiling", options, SPOILING_SECONDS_MAX)
    counts: dict[str, dict[str, int]] = run.answers.get("counts", {})
    for kind in KINDS:
        count = counts.get(kind, {})
        words = ", ".join(f"{number} {word}" for word, number in count.items())
        errors = "; ".join(run.answers.get("errors", ()))
        yield Figure(
            f"spilled data, {kind}",
            f"{words or run.outcome}{f' ({errors})' if errors else ''}{beside('spoilt')}",
            f"{NROUNDS} right, 0 wrong, 0 failed, 0 hung",
            passed=run.finished and count.get("right") == NROUNDS and count["spoilt"] >= NROUNDS,
        )
    yield Figure(
        "workers lost by spill faults",
        f"{run.nlost(1)}, longest pause {run.pause_seconds:.1f} s, {run.seconds:.0f} s in all",
        "0",
        passed=run.finished and run.nlost(1) == 0,
    )


@GATES.register("spill: speed")
def spill_speed() -> Iterator[Figure]:
    """Data of twice the limit is made and read twice, on both sides in turn."""
    pairs = [on_both("spilling", SPILLING, SPILLING_SECONDS_MAX) for _ in range(SPEED_ROUNDS)]
    mine, theirs = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    seconds = [_seconds(mine), _seconds(theirs)]
    ratio = seconds[1] / seconds[0] if all(seconds) else 0.0
    right = all(run.finished and run.answers.get("right") for run in mine)
    yield Figure(
        "data of twice the limit",
        f"{ratio:.2f} x distributed: {seconds[0]:.2f} s{'' if right else ' (NOT right)'} to "
        f"{seconds[1]:.2f} s ({', '.join(run.outcome for run in theirs)}); peak "
        f"{max(run.peak_bytes for run in mine) // MIB} MiB to "
        f"{max(run.peak_bytes for run in theirs) // MIB} MiB",
        f">= {SPEED_RATIO_MIN} x",
        passed=right and ratio >= SPEED_RATIO_MIN,
    )
    without = {**SPILLING, "is_limited": False}
    plain = [ours_alone("spilling", without, SPILLING_SECONDS_MAX) for _ in range(SPEED_ROUNDS)]
    yield Figure(
        "the worker's loop as it spills",
        f"a timer late by {_late(mine):.0f} ms at most in the median round, "
        f"{max(run.busy_ms for run in mine):.0f} ms of work at a stretch; without spilling "
        f"{_late(plain):.0f} ms; distributed: {_late(theirs):.0f} ms",
        f"<= {BLOCKED_MS_MAX:.0f} ms, or than without spilling",
        passed=right and _late(mine) <= max(BLOCKED_MS_MAX, _late(plain)),
    )


def _seconds(runs: list[Run]) -> float:
    found: list[Any] = [run.answers.get("compute_seconds") for run in runs]
    return median(each for each in found if each) if any(found) else 0.0


def _late(runs: list[Run]) -> float:
    return median(run.late_ms for run in runs)
