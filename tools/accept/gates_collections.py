"""Collections against the released `distributed`, the scheduler's loop meanwhile, and a crowd."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tools.accept.figure import GATES, Figure
from tools.accept.gates_speed import take, verdicts

if TYPE_CHECKING:
    from benchmarks.record import Record

ROUNDS = 3
RATIO_MIN = 0.95
BLOCKED_MS_MAX = 20.0
SECONDS = "seconds"


@GATES.register("collections")
def collections() -> Iterator[Figure]:
    """Each workload, both sides in turn, and what the budgets say about all of them."""
    from benchmarks.workloads.collections import COLLECTIONS

    sides = ("distributed", "shoal")
    record = take(sides, COLLECTIONS, nrounds=ROUNDS, file="collections.jsonl")
    yield from _failures(record)
    yield from _rows(record)
    yield from verdicts(record)
    yield _longest(record)


@GATES.register("crowd")
def crowd() -> Iterator[Figure]:
    """Two hundred workers in one process: idle, and closed."""
    from benchmarks.registry import select

    record = take(("shoal",), select(("crowd",)), nrounds=ROUNDS, file="crowd.jsonl")
    yield from _failures(record)
    yield from verdicts(record)


def _failures(record: "Record") -> Iterator[Figure]:
    for failure in record.failures:
        name = f"{failure.workload} on {failure.side}"
        yield Figure(name, failure.reason, "the right result", passed=False)


def _rows(record: "Record") -> Iterator[Figure]:
    """What one collection takes on both sides."""
    for row in record.rows():
        if row.name != SECONDS:
            continue
        compared = row.compare("shoal", "distributed")
        mine, theirs = row.median("shoal"), row.median("distributed")
        if compared is None or mine is None or theirs is None:
            continue  # it failed, and was told of
        yield Figure(
            row.workload.replace("_", " "),
            f"{compared.ratio:.2f} x ({compared.lowest:.2f} to {compared.highest:.2f}), "
            f"{mine:.2f} s and {theirs:.2f} s",
            f">= {RATIO_MIN} x distributed",
            passed=compared.ratio >= RATIO_MIN,
        )


def _longest(record: "Record") -> Figure:
    """The longest that the scheduler's loop was busy at a stretch, over all workloads and rounds.

    Beside it, how late its timers were: with more processes at work than processors, they are late
    for the processor's sake as well.
    """
    worst: dict[str, tuple[float, str]] = {}
    for reading in record.readings:
        if reading.side == "shoal" and reading.figure.name in ("loop_busy_ms", "loop_late_ms"):
            found = reading.figure.value, reading.workload.replace("_", " ")
            worst[reading.figure.name] = max(worst.get(reading.figure.name, (0.0, "")), found)
    if len(worst) < 2:
        return Figure("scheduler's loop", "nothing was measured", "a figure", passed=False)
    (busy_ms, busiest), (late_ms, latest) = worst["loop_busy_ms"], worst["loop_late_ms"]
    return Figure(
        "scheduler's loop, longest stretch of work",
        f"{busy_ms:.1f} ms ({busiest}); a timer was late by {late_ms:.1f} ms ({latest})",
        f"<= {BLOCKED_MS_MAX:.0f} ms",
        passed=busy_ms <= BLOCKED_MS_MAX,
    )
