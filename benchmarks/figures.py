"""Figures and what is made of them: medians over rounds, ratios between sides.  Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Better = Literal["lower", "higher"]


@dataclass(frozen=True)
class Figure:
    """One number that a workload yields."""

    name: str
    value: float
    unit: str
    better: Better = "lower"


@dataclass(frozen=True)
class Reading:
    """One figure of one side in one round."""

    side: str
    round: int
    workload: str
    figure: Figure

    @property
    def reference(self) -> str:
        """The name by which budgets call it: `workload:figure`."""
        return f"{self.workload}:{self.figure.name}"

    def to_json(self) -> dict[str, Any]:
        """The line of the JSON report."""
        return {
            "kind": "figure",
            "side": self.side,
            "round": self.round,
            "workload": self.workload,
            "figure": self.figure.name,
            "value": self.figure.value,
            "unit": self.figure.unit,
            "better": self.figure.better,
        }

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> Reading:
        """The reading that `to_json` wrote down."""
        figure = Figure(line["figure"], float(line["value"]), line["unit"], line["better"])
        return cls(line["side"], int(line["round"]), line["workload"], figure)


@dataclass(frozen=True)
class Failure:
    """A side that did not get through a workload in one round."""

    side: str
    round: int
    workload: str
    reason: str

    def to_json(self) -> dict[str, Any]:
        """The line of the JSON report."""
        return {
            "kind": "failure",
            "side": self.side,
            "round": self.round,
            "workload": self.workload,
            "reason": self.reason,
        }

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> Failure:
        """The failure that `to_json` wrote down."""
        return cls(line["side"], int(line["round"]), line["workload"], line["reason"])


@dataclass(frozen=True)
class Comparison:
    """One side against another, for one figure.  A ratio above 1: the first side is better."""

    ratio: float
    lowest: float
    highest: float
    nrounds: int


@dataclass(frozen=True)
class Row:
    """The medians of one figure for each side."""

    workload: str
    name: str
    unit: str
    better: Better
    values_by_side: Mapping[str, Mapping[int, float]]

    @property
    def reference(self) -> str:
        """The name by which budgets call it: `workload:figure`."""
        return f"{self.workload}:{self.name}"

    def median(self, side: str) -> float | None:
        """The median over rounds; None if the side has no reading."""
        values = self.values_by_side.get(side)
        return statistics.median(values.values()) if values else None

    def compare(self, side: str, other: str) -> Comparison | None:
        """`side` against `other`: ratio of medians, and the span of the ratios of single rounds."""
        mine, theirs = self.median(side), self.median(other)
        if mine is None or theirs is None:
            return None
        ours, others = self.values_by_side[side], self.values_by_side[other]
        common = sorted(ours.keys() & others.keys())
        single = [ratio(ours[n], others[n], self.better) for n in common]
        known = [value for value in single if not math.isnan(value)]
        middle = ratio(mine, theirs, self.better)
        return Comparison(
            ratio=middle,
            lowest=min(known, default=middle),
            highest=max(known, default=middle),
            nrounds=len(common),
        )


def ratio(mine: float, theirs: float, better: Better) -> float:
    """How many times better `mine` is.

    Nothing at all (zero or less, as growth and idle time can be) beats any amount infinitely; and
    against nothing at all no ratio exists (NaN), unless both are nothing (1).
    """
    good, bad = (theirs, mine) if better == "lower" else (mine, theirs)
    if bad > 0:
        return good / bad if good > 0 else math.nan
    return math.inf if good > 0 else 1.0


def rows(readings: Iterable[Reading]) -> list[Row]:
    """One row per figure, in the order in which the figures first appeared."""
    first: dict[str, Reading] = {}
    values: dict[str, dict[str, dict[int, float]]] = {}
    for reading in readings:
        first.setdefault(reading.reference, reading)
        by_side = values.setdefault(reading.reference, {})
        by_side.setdefault(reading.side, {})[reading.round] = reading.figure.value
    order = list(dict.fromkeys(reading.workload for reading in first.values()))
    found = [
        Row(item.workload, item.figure.name, item.figure.unit, item.figure.better, values[name])
        for name, item in first.items()
    ]
    return sorted(found, key=lambda row: order.index(row.workload))


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean of ratios; NaN if one of them is NaN or none is given."""
    if not values or any(math.isnan(value) for value in values):
        return math.nan
    if any(math.isinf(value) for value in values):
        return math.inf
    return math.prod(values) ** (1 / len(values))  # of one value exactly that value


def percentile(values: Sequence[float], percent: float) -> float:
    """The value below which `percent` of `values` lie, by linear interpolation; O(n log n)."""
    ordered = sorted(values)
    position = (len(ordered) - 1) * percent / 100
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)
