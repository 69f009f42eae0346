"""Ratios to the released `distributed` and to a process pool, taken in one interleaved run."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tools.accept.figure import GATES, Figure

if TYPE_CHECKING:
    from benchmarks.bench import Workload
    from benchmarks.record import Record

ROUNDS = 5
ORACLE = "SHOAL_ORACLE"
"""Names an interpreter that has `distributed`; without it, an environment is made."""


@GATES.register("speed")
def speed() -> Iterator[Figure]:
    """Every budget of `benchmarks/budgets.toml`; half an hour, nearly all of it `distributed`."""
    from benchmarks.environment import SIDES
    from benchmarks.registry import select
    from benchmarks.workloads.collections import COLLECTIONS

    others = tuple(item for item in select(()) if item not in COLLECTIONS)  # a gate of their own
    yield from verdicts(take(SIDES, others, nrounds=ROUNDS, file="accept.jsonl"))


def take(
    sides: tuple[str, ...], workloads: "tuple[Workload, ...]", *, nrounds: int, file: str
) -> "Record":
    """Run `workloads` on `sides` in turn; the readings are kept in `file` of `.benchmarks`."""
    from benchmarks.environment import make_sides
    from benchmarks.record import take_record

    path = Path(".benchmarks") / file
    path.parent.mkdir(exist_ok=True)
    return take_record(
        make_sides(sides, oracle=os.environ.get(ORACLE)),
        workloads,
        nrounds=nrounds,
        path=path,
        say=lambda text: print(text, file=sys.stderr, flush=True),
    )


def verdicts(record: "Record") -> Iterator[Figure]:
    """What the budgets say about a record."""
    for verdict in record.verdicts():
        budget = verdict.budget
        measured = "nothing" if verdict.measured is None else f"{verdict.measured:.3g}"
        if budget.is_ratio:
            value, target = f"{measured} x", f">= {budget.limit:g} x {budget.against}"
        else:
            value, target = f"{measured} {budget.unit}", f"<= {budget.limit:g} {budget.unit}"
        yield Figure(budget.name.replace("_", " "), value, target, verdict.passed)
