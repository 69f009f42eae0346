"""Rows, failures and verdicts as lines of text.  Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from benchmarks.budgets import Verdict
from benchmarks.figures import Comparison, Failure, Row

NONE = "-"


def quantity(value: float | None) -> str:
    """A number with three significant digits; `-` for none."""
    if value is None or math.isnan(value):
        return NONE
    if math.isinf(value):
        return "inf"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def factor(comparison: Comparison | None) -> str:
    """The ratio of medians, with the lowest and highest of single rounds behind it."""
    if comparison is None or math.isnan(comparison.ratio):
        return NONE
    text = f"{quantity(comparison.ratio)}x"
    if comparison.nrounds < 2:
        return text
    return f"{text} ({quantity(comparison.lowest)}..{quantity(comparison.highest)})"


def table(rows: Sequence[Row], sides: Sequence[str]) -> list[str]:
    """One line per figure: the median of each side, then shoal against the others."""
    others = [side for side in sides if side != "shoal"] if "shoal" in sides else []
    header = ["workload", "figure", "unit", *sides, *(f"shoal vs {side}" for side in others)]
    cells = [header]
    workload = ""
    for row in rows:
        line = [row.workload if row.workload != workload else "", row.name, row.unit]
        line += [quantity(row.median(side)) for side in sides]
        line += [factor(row.compare("shoal", side)) for side in others]
        cells.append(line)
        workload = row.workload
    return align(cells, nleft=3)


def align(cells: Sequence[Sequence[str]], nleft: int) -> list[str]:
    """Columns of equal width: the first `nleft` to the left, the others to the right."""
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    lines: list[str] = []
    for line in cells:
        padded = [
            text.ljust(width) if column < nleft else text.rjust(width)
            for column, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        lines.append("  ".join(padded).rstrip())
    lines.insert(1, "  ".join("-" * width for width in widths))
    return lines


def failures(found: Iterable[Failure]) -> list[str]:
    """One line per run that did not get through."""
    return [
        f"FAILED  {item.workload} on {item.side}, round {item.round + 1}: {item.reason}"
        for item in found
    ]


def verdicts(found: Sequence[Verdict]) -> list[str]:
    """One line per budget: PASS or FAIL, the figure, the limit, and what it is about."""
    if not found:
        return ["No budget is about the workloads and sides that were run."]
    cells = [["", "budget", "measured", "limit", "of"]]
    for verdict in found:
        budget = verdict.budget
        unit = "x" if budget.is_ratio else f" {budget.unit}"
        measured = "nothing" if verdict.measured is None else quantity(verdict.measured) + unit
        sign = ">=" if budget.is_ratio else "<="
        about = f"{', '.join(budget.figures)} against {budget.against}"
        limit = f"{sign} {quantity(budget.limit)}{unit}"
        cells.append(["PASS" if verdict.passed else "FAIL", budget.name, measured, limit, about])
    lines = align(cells, nleft=5)
    npassed = sum(verdict.passed for verdict in found)
    return [*lines, f"{npassed} of {len(found)} budgets kept"]
