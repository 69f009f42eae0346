"""The budgets of `budgets.toml`: what they say, whether they were kept, and that they tighten."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.errors import BudgetsNotValid
from benchmarks.figures import Row, geometric_mean

FILE = Path(__file__).with_name("budgets.toml")
ABSOLUTE = "absolute"
AGAINST = ("distributed", "pool", ABSOLUTE)
FIELDS = frozenset(
    {"figures", "against", "at_least", "at_most", "unit", "why", "history", "is_of_one_machine"}
)
WORK = "map_10k:cpu_us_per_task"
WORK_US = 1600.0
"""What `distributed` needed for a task of a map on the machine that the limits are of."""


@dataclass(frozen=True)
class Budget:
    """A limit that a release has to keep.

    Against another side it is the least ratio (of several figures: of their geometric mean);
    an absolute one is the most that a figure may be, in `unit`.  One that `is_of_one_machine` is
    judged as if where `distributed` needs `WORK_US` for a task of a map: an amount of work, or a
    ratio to timers, which pass as quickly on any machine.  Without `distributed` in the run such a
    ratio is taken as it is, and such an amount can't be judged.
    """

    name: str
    figures: tuple[str, ...]
    against: str
    limit: float
    history: tuple[float, ...]
    why: str
    unit: str = ""
    is_of_one_machine: bool = False

    @property
    def is_ratio(self) -> bool:
        """Whether more is better."""
        return self.against != ABSOLUTE

    @property
    def workloads(self) -> tuple[str, ...]:
        """The workloads that have to run for a verdict."""
        return tuple(dict.fromkeys(name.split(":")[0] for name in self.figures))


@dataclass(frozen=True)
class Verdict:
    """A budget and what was measured; None if a side has no figure, which counts as not kept."""

    budget: Budget
    measured: float | None

    @property
    def passed(self) -> bool:
        """Whether the budget was kept."""
        if self.measured is None or math.isnan(self.measured):
            return False
        if self.budget.is_ratio:
            return self.measured >= self.budget.limit
        return self.measured <= self.budget.limit


def read_budgets(path: Path = FILE) -> list[Budget]:
    """The budgets of a file, checked; raises `BudgetsNotValid`."""
    with path.open("rb") as file:
        return parse_budgets(tomllib.load(file))


def parse_budgets(tables: Mapping[str, Any]) -> list[Budget]:
    """The budgets in parsed TOML, checked one by one; raises `BudgetsNotValid`."""
    budgets = [_parse(name, table) for name, table in tables.items()]
    for budget in budgets:
        loosened = first_loosening(budget)
        if loosened is not None:
            before, after = loosened
            raise BudgetsNotValid(
                budget.name,
                f"it went from {before:g} to {after:g}, which is looser; a budget may only tighten",
            )
    return budgets


def first_loosening(budget: Budget) -> tuple[float, float] | None:
    """The first step of the history, today's limit included, that is not tighter; or None."""
    values = [*budget.history, budget.limit]
    for before, after in pairwise(values):
        tighter = after > before if budget.is_ratio else after < before
        if not tighter:
            return before, after
    return None


def _parse(name: str, table: Mapping[str, Any]) -> Budget:
    unknown = sorted(table.keys() - FIELDS)
    if unknown:
        raise BudgetsNotValid(name, f"unknown field {unknown[0]!r}; known: {sorted(FIELDS)}")
    against = table.get("against")
    if against not in AGAINST:
        raise BudgetsNotValid(name, f"against is {against!r}; it is one of {AGAINST}")
    wanted, other = ("at_most", "at_least") if against == ABSOLUTE else ("at_least", "at_most")
    if wanted not in table or other in table:
        raise BudgetsNotValid(name, f"against {against!r} needs {wanted!r}, and not {other!r}")
    figures = tuple(table.get("figures", ()))
    if not figures or not all(figure.count(":") == 1 for figure in figures):
        raise BudgetsNotValid(name, "figures is a list of 'workload:figure'")
    if against == ABSOLUTE and len(figures) > 1:
        raise BudgetsNotValid(name, "an absolute budget is about one figure")
    return Budget(
        name=name,
        figures=figures,
        against=against,
        limit=float(table[wanted]),
        history=tuple(float(value) for value in table.get("history", ())),
        why=table.get("why", ""),
        unit=table.get("unit", ""),
        is_of_one_machine=bool(table.get("is_of_one_machine", False)),
    )


def check(budgets: Sequence[Budget], rows: Sequence[Row]) -> list[Verdict]:
    """A verdict for each budget."""
    row_by_reference = {row.reference: row for row in rows}
    return [Verdict(budget, _measured(budget, row_by_reference)) for budget in budgets]


def concerning(
    budgets: Sequence[Budget], workloads: Collection[str], sides: Collection[str]
) -> list[Budget]:
    """The budgets that a run of `workloads` on `sides` can tell about.

    A workload or side that was run and failed is among them, so that its budget is not kept.
    """
    return [
        budget
        for budget in budgets
        if set(budget.workloads) <= set(workloads)
        and "shoal" in sides
        and budget.against in (ABSOLUTE, *sides)
        and (budget.is_ratio or not budget.is_of_one_machine or "distributed" in sides)
    ]


def _slowness(row_by_reference: Mapping[str, Row]) -> float | None:
    """How many times longer the same work takes than on the machine that limits are of."""
    work = row_by_reference.get(WORK)
    work_us = None if work is None else work.median("distributed")
    return work_us / WORK_US if work_us else None


def _measured(budget: Budget, row_by_reference: Mapping[str, Row]) -> float | None:
    found = [row_by_reference.get(name) for name in budget.figures]
    present = [row for row in found if row is not None]
    if len(present) < len(found):
        return None
    slowness = _slowness(row_by_reference) if budget.is_of_one_machine else 1.0
    if not budget.is_ratio:
        here = present[0].median("shoal")
        return None if here is None or slowness is None else here / slowness
    compared = [row.compare("shoal", budget.against) for row in present]
    ratios = [item.ratio for item in compared if item is not None]
    if len(ratios) < len(compared):
        return None
    return geometric_mean(ratios) * (slowness or 1.0)
