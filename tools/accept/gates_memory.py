"""Memory stays inside its limit: what people compute on small workers, watched from outside.

Each program runs in processes of its own, here and, for comparison, with the released
`distributed`; one at a time, and none for longer than its time or beyond 16 GiB.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from tools.accept.figure import GATES, Figure
from tools.accept.gates_speed import ORACLE

if TYPE_CHECKING:
    from benchmarks.memory.outside import Run

MIB: Final = 1 << 20
GIB: Final = 1 << 30

MIXED: Final = {"end": "2000-07-01", "threads": 1, "limit": "1GiB"}
"""Half a year: the means of a whole one don't fit into a worker of 1 GiB beside their parts."""
MIXED_SECONDS_MAX: Final = 400.0
PAUSE_SECONDS_MAX: Final = 5.0

ANNOTATED: Final = {"end": "2000-01-21", "threads": 4}
OFFERED_NOWHERE: Final = {"end": "2000-01-11", "seconds_max": 8.0}
TOLD_SECONDS_MAX: Final = 5.0

NHEAVY: Final = 8
HEAVY: Final = {"ntasks": NHEAVY, "nbytes": 6 * GIB // 5, "limit": "2GiB", "threads": 4}
HEAVY_SECONDS_MAX: Final = 240.0
NLOST_MAX: Final = 1

THREADS: Final = 4
PARTITION_BYTES: Final = 32 * MIB
PARTITIONS_MAX: Final = THREADS + 2
REDUCTIONS: Final = {
    "200 partitions": {"nworkers": 2, "nroots": 200, "nshared": 0},
    "200 that share 6 inputs": {"nworkers": 2, "nroots": 200, "nshared": 6},
    "7, fewer than 2 a thread": {"nworkers": 1, "nroots": 7, "nshared": 0},
}
REDUCTION_SECONDS_MAX: Final = 90.0


def on_both(program: str, options: Mapping[str, Any], seconds_max: float) -> tuple[Run, Run]:
    """A program here, and with `distributed`."""
    from benchmarks.environment import make_sides
    from benchmarks.memory.outside import run_program

    sides = make_sides(("shoal", "distributed"), oracle=os.environ.get(ORACLE))
    ours, theirs = (run_program(side, program, options, seconds_max=seconds_max) for side in sides)
    return ours, theirs


def ours_alone(program: str, options: Mapping[str, Any], seconds_max: float) -> Run:
    """A program here."""
    from benchmarks.environment import make_sides
    from benchmarks.memory.outside import run_program

    [side] = make_sides(("shoal",))
    return run_program(side, program, options, seconds_max=seconds_max)


@GATES.register("memory: mixed workload")
def mixed_workload() -> Iterator[Figure]:
    """A dataframe's groupby and an array with its transpose at once, on two workers of 1 GiB."""
    ours, theirs = on_both("mixed", MIXED, MIXED_SECONDS_MAX)
    said = {run.side: _mixed_in_words(run) for run in (ours, theirs)}
    yield Figure(
        "mixed workload on two workers of 1 GiB",
        f"{said[ours.side]}; distributed: {said[theirs.side]}",
        f"right, 0 killed, pauses <= {PAUSE_SECONDS_MAX:.0f} s, peak <= 1024 MiB",
        passed=bool(
            ours.finished
            and ours.answers.get("right")
            and ours.nlost(2) == 0
            and ours.pause_seconds <= PAUSE_SECONDS_MAX
            and 0 < ours.peak_bytes <= GIB
        ),
    )


def _mixed_in_words(run: Run) -> str:
    right = {True: "right", False: "wrong", None: run.outcome}[run.answers.get("right")]
    return (
        f"{right}, {run.nlost(2)} workers killed, longest pause {run.pause_seconds:.1f} s, "
        f"peak {run.peak_bytes // MIB} MiB, {run.seconds:.0f} s"
    )


@GATES.register("memory: by annotation")
def by_annotation() -> Iterator[Figure]:
    """`dask.annotate(resources={"MEM": 2})` around a groupby, where 3 are offered, and none."""
    ours, theirs = on_both("annotated", ANNOTATED, 120.0)
    most, ntasks = ours.answers.get("most_at_once"), ours.answers.get("executed", 0)
    yield Figure(
        "tasks of MEM=2 at once on a worker of MEM=3",
        f"{most if ours.finished else ours.outcome} of {ntasks}; distributed: "
        f"{theirs.answers.get('most_at_once', theirs.outcome)}",
        "never two",
        passed=ours.finished and most == 1 and ntasks > 1,
    )
    ours, theirs = on_both("offered_nowhere", OFFERED_NOWHERE, 60.0)
    said = {run.side: _told(run) for run in (ours, theirs)}
    told = ours.answers.get("told")
    yield Figure(
        "the reason why MEM=2 waits, with MEM offered nowhere",
        f"{said[ours.side]}; distributed: {said[theirs.side]}",
        f"within {TOLD_SECONDS_MAX:.0f} s",
        passed=bool(ours.finished and told and told[0] <= TOLD_SECONDS_MAX),
    )


def _told(run: Run) -> str:
    told = run.answers.get("told")
    if not told:
        return "nothing is told" if run.finished else run.outcome
    return f"after {told[0]:.1f} s: {' '.join(told[1].split())[:160]!r}"


@GATES.register("memory: heavy tasks")
def heavy_tasks() -> Iterator[Figure]:
    """Eight of 1.2 GiB on two workers of 2 GiB with 4 threads, and nothing is annotated."""
    ours, theirs = on_both("heavy", HEAVY, HEAVY_SECONDS_MAX)
    said = {run.side: _heavy_in_words(run) for run in (ours, theirs)}
    yield Figure(
        f"{NHEAVY} tasks of 1.2 GiB on two workers of 2 GiB",
        f"{said[ours.side]}; distributed: {said[theirs.side]}",
        f"all finish, <= {NLOST_MAX} worker lost",
        passed=bool(
            ours.finished
            and ours.answers.get("right")
            and ours.answers.get("nfinished") == NHEAVY
            and ours.nlost(2) <= NLOST_MAX
        ),
    )


def _heavy_in_words(run: Run) -> str:
    if not run.finished:
        return f"{run.outcome}, {run.nlost(2)} workers lost"
    errors = "; ".join(error.partition(":")[0] for error in run.answers["errors"])
    return (
        f"{run.answers['nfinished']} finish, {run.nlost(2)} workers lost, "
        f"{run.answers['compute_seconds']:.1f} s{f', {errors}' if errors else ''}"
    )


@GATES.register("memory: load, then reduce")
def load_then_reduce() -> Iterator[Figure]:
    """How many loaded partitions a worker has at once: counted, and by its resident memory."""
    for name, shape in REDUCTIONS.items():
        options = {**shape, "threads": THREADS, "nbytes": PARTITION_BYTES}
        ours, theirs = on_both("reducing", options, REDUCTION_SECONDS_MAX)
        said = {run.side: _partitions(run) for run in (ours, theirs)}
        yield Figure(
            f"partitions at once on a worker of {THREADS} threads, {name}",
            f"{said[ours.side]}; distributed: {said[theirs.side]}",
            f"<= {PARTITIONS_MAX}",
            passed=bool(
                ours.finished
                and ours.answers.get("right")
                and 0 < ours.answers["most"] <= PARTITIONS_MAX
                and resident_partitions(ours) <= PARTITIONS_MAX
            ),
        )


def resident_partitions(run: Run) -> float:
    """The worker that took most, without what it took before: in partitions."""
    return float((run.peak_bytes - run.answers["rest_bytes"]) / PARTITION_BYTES)


def _partitions(run: Run) -> str:
    if not run.finished:
        return run.outcome
    most, resident = run.answers["most"], resident_partitions(run)
    return f"{most} counted, {resident:.1f} resident, {run.answers['compute_seconds']:.1f} s"
