"""Exchange of all with all, beside `distributed`: time, memory, and every row in its place."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from tools.accept.figure import GATES, Figure
from tools.accept.gates_memory import GIB, MIB, on_both, ours_alone

if TYPE_CHECKING:
    from benchmarks.memory.outside import Run

LIMIT: Final = GIB
NROUNDS: Final = 3
SECONDS_MAX: Final = 600.0
TIME_RATIO_MAX: Final = 0.6
GROWTH_RATIO_MAX: Final = 0.6
LARGER_MAX: Final = 1.25
"""What growth may be with eight times the bytes: what is constant, with the noise of samples."""

COMPARED: Final = {
    "shuffle of 2 GB": {"kind": "shuffle", "nbytes": 2 * GIB},
    "merge of 2 GB": {"kind": "merge", "nbytes": 2 * GIB},
    "shuffle of twice the cluster's memory": {"kind": "shuffle", "nbytes": 4 * GIB},
    "merge of twice the cluster's memory": {"kind": "merge", "nbytes": 4 * GIB},
    "rechunk of 4 GB": {"kind": "rechunk", "nbytes": 4 * GIB},
}
GROWING: Final = ("shuffle", "rechunk")
SIZES: Final = (1, 2, 4, 8)
SKEWED: Final = {"kind": "grouping", "nbytes": GIB, "skew": 0.15}


@GATES.register("exchange: beside distributed")
def beside_distributed() -> Iterator[Figure]:
    """Each exchange on both sides in turn, on two workers of 1 GiB: time, and growth of memory."""
    for name, shape in COMPARED.items():
        options = {**shape, "limit_bytes": LIMIT}
        rounds = 1 if shape["nbytes"] > 2 * GIB else NROUNDS
        pairs = [on_both("exchanging", options, SECONDS_MAX) for _ in range(rounds)]
        mine, theirs = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        right = all(is_right(run) and run.nlost(2) == 0 for run in mine)
        seconds, grown = (_seconds(mine), _seconds(theirs)), (growth(mine), growth(theirs))
        yield Figure(
            f"{name}: time",
            f"{_ratio(*seconds):.2f} x distributed's, {seconds[0]:.1f} s"
            f"{'' if right else f' (NOT right: {mine[0].outcome})'} to {_told(seconds[1], theirs)}",
            f"<= {TIME_RATIO_MAX} x",
            passed=right and (not seconds[1] or _ratio(*seconds) <= TIME_RATIO_MAX),
        )
        yield Figure(
            f"{name}: growth of memory above the idle worker",
            f"{_ratio(*grown):.2f} x distributed's, {grown[0] / MIB:.0f} to "
            f"{grown[1] / MIB:.0f} MiB",
            f"<= {GROWTH_RATIO_MAX} x",
            passed=right and grown[0] > 0 and _ratio(*grown) <= GROWTH_RATIO_MAX,
        )


@GATES.register("exchange: memory as data grow")
def memory_as_data_grow() -> Iterator[Figure]:
    """From 1 to 8 GB on two workers of 1 GiB: their memory doesn't grow along."""
    for kind in GROWING:
        grown = {}
        right = True
        for size in SIZES:
            options = {"kind": kind, "nbytes": size * GIB, "limit_bytes": LIMIT}
            run = ours_alone("exchanging", options, SECONDS_MAX)
            right = right and is_right(run) and run.nlost(2) == 0
            grown[size] = growth([run]) / MIB
        words = ", ".join(f"{size} GB: {each:.0f} MiB" for size, each in grown.items())
        yield Figure(
            f"growth of a worker's memory by a {kind}",
            f"{words}{'' if right else ' (NOT right)'}",
            f"8 GB take <= {LARGER_MAX} x what 1 GB takes",
            passed=right and grown[8] <= LARGER_MAX * max(grown[1], 1.0),
        )


@GATES.register("exchange: skew")
def skewed_groups() -> Iterator[Figure]:
    """A groupby whose function needs whole groups, where one group has a seventh of all rows."""
    options = {**SKEWED, "limit_bytes": LIMIT}
    ours, theirs = on_both("exchanging", options, SECONDS_MAX)
    yield Figure(
        "a skewed groupby",
        f"{'right' if is_right(ours) else ours.outcome}, {ours.nlost(2)} workers killed, "
        f"{_seconds([ours]):.1f} s; distributed: "
        f"{'right' if is_right(theirs) else theirs.outcome}, {theirs.nlost(2)} killed, "
        f"{_seconds([theirs]):.1f} s",
        "right, 0 killed",
        passed=is_right(ours) and ours.nlost(2) == 0,
    )


@GATES.register("exchange: the same join by DuckDB")
def beside_duckdb() -> Iterator[Figure]:
    """A merge of 2 GB, by DuckDB in one process with the memory and cores of both workers.

    Not comparable: it neither moves rows between processes nor keeps an order, streams the larger
    table past a hash table of the smaller one, and makes its input in one thread.
    """
    ours = ours_alone(
        "exchanging", {"kind": "merge", "nbytes": 2 * GIB, "limit_bytes": LIMIT}, SECONDS_MAX
    )
    theirs = ours_alone("joining", {"nbytes": 2 * GIB, "limit_bytes": 2 * LIMIT}, SECONDS_MAX)
    yield Figure(
        "merge of 2 GB, two workers of 1 GiB",
        f"{_seconds([ours]):.1f} s, {ours.peak_bytes / MIB:.0f} MiB a worker; DuckDB, one process "
        f"of 2 GiB without exchange or order: {_seconds([theirs]):.1f} s, "
        f"{theirs.peak_bytes / MIB:.0f} MiB",
        "right, beside it whatever it takes",
        passed=is_right(ours) and is_right(theirs),
    )


def is_right(run: Run) -> bool:
    """It ended, and every row was where it belongs."""
    return run.finished and bool(run.answers.get("right"))


def growth(runs: list[Run]) -> float:
    """Bytes of the worker that took most, above what an idle one has; the median of the rounds."""
    found = [run.peak_bytes - run.answers.get("rest_bytes", 0) for run in runs if run.finished]
    return float(median(found)) if found else 0.0


def _seconds(runs: list[Run]) -> float:
    found: list[Any] = [run.answers.get("compute_seconds") for run in runs]
    return median(each for each in found if each) if any(found) else 0.0


def _ratio(mine: float, theirs: float) -> float:
    return mine / theirs if theirs else 0.0


def _told(seconds: float, runs: list[Run]) -> str:
    return f"{seconds:.1f} s" if seconds else runs[0].outcome
