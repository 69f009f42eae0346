"""Ratios to the released `distributed` and to a process pool, taken in one interleaved run."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.accept.figure import GATES, Figure

ROUNDS = 5
ORACLE = "SHOAL_ORACLE"
"""Names an interpreter that has `distributed`; without it, an environment is made."""


@GATES.register("speed")
def speed() -> Iterator[Figure]:
    """Every budget of `benchmarks/budgets.toml`; half an hour, nearly all of it `distributed`."""
    from benchmarks.environment import make_sides
    from benchmarks.record import take_record
    from benchmarks.registry import select
    from benchmarks.workloads.collections import COLLECTIONS

    path = Path(".benchmarks") / "accept.jsonl"
    path.parent.mkdir(exist_ok=True)
    record = take_record(
        make_sides(oracle=os.environ.get(ORACLE)),
        tuple(item for item in select(()) if item not in COLLECTIONS),  # a gate of their own
        nrounds=ROUNDS,
        path=path,
        say=lambda text: print(text, file=sys.stderr, flush=True),
    )
    for verdict in record.verdicts():
        budget = verdict.budget
        measured = "nothing" if verdict.measured is None else f"{verdict.measured:.3g}"
        if budget.is_ratio:
            value, target = f"{measured} x", f">= {budget.limit:g} x {budget.against}"
        else:
            value, target = f"{measured} {budget.unit}", f"<= {budget.limit:g} {budget.unit}"
        yield Figure(budget.name.replace("_", " "), value, target, verdict.passed)
