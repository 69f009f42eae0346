"""All that one comparison found, and the file of JSON lines that it can be read back from."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.bench import Workload
from benchmarks.budgets import Verdict, check, concerning, read_budgets
from benchmarks.environment import SIDES, Side, describe_machine, load
from benchmarks.figures import Failure, Reading, Row, rows
from benchmarks.rounds import Run, measure

Line = dict[str, Any]


@dataclass
class Record:
    """The readings and failures of a comparison, and under which conditions they came about."""

    conditions: list[Line] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)

    @property
    def sides(self) -> list[str]:
        """The sides that were run, in the order of the table."""
        named = {line["side"] for line in self.conditions if line["kind"] == "side"}
        return [side for side in SIDES if side in named]

    @property
    def quick(self) -> bool:
        """Whether the sizes are the small ones."""
        return any(line.get("quick", False) for line in self.conditions)

    @property
    def workloads(self) -> list[str]:
        """The workloads that were run, with or without success."""
        ran = [reading.workload for reading in self.readings]
        ran += [failure.workload for failure in self.failures]
        return list(dict.fromkeys(ran))

    def rows(self) -> list[Row]:
        """One row per figure."""
        return rows(self.readings)

    def verdicts(self) -> list[Verdict]:
        """A verdict for each budget that this record can tell about; see `concerning`."""
        return check(concerning(read_budgets(), self.workloads, self.sides), self.rows())

    def add(self, line: Line) -> None:
        """Take in one line of the file."""
        if line["kind"] == "figure":
            self.readings.append(Reading.from_json(line))
        elif line["kind"] == "failure":
            self.failures.append(Failure.from_json(line))
        else:
            self.conditions.append(line)


def read_record(lines: Iterable[str]) -> Record:
    """The record whose lines `take_record` wrote."""
    record = Record()
    for line in lines:
        record.add(json.loads(line))
    return record


def take_record(
    sides: Sequence[Side],
    workloads: Sequence[Workload],
    *,
    nrounds: int = 5,
    quick: bool = False,
    path: Path | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Record:
    """Measure, see `measure`.

    Each line is appended to `path` as soon as it is known, so that an interrupted run is not lost;
    `say` is told how far we are.  Raises `SideNotUsable` before anything is run.
    """
    record = Record()
    file = path.open("w") if path is not None else None

    def put(line: Line) -> None:
        record.add(line)
        if file is not None:
            file.write(json.dumps(line) + "\n")
            file.flush()

    def condition(line: Line) -> None:
        put(line)
        say("  ".join(f"{name}={value}" for name, value in line.items()))

    def report(run: Run) -> None:
        for reading in run.readings:
            put(reading.to_json())
        if run.failure is not None:
            put(run.failure.to_json())
        where = f"round {run.round + 1}  {run.workload:<16} {run.side:<12}"
        ending = f"FAILED  {run.failure.reason}" if run.failure else ""
        say(f"{where}{run.seconds:7.1f} s  load {load():.1f}  {ending}".rstrip())
        put({"kind": "load", "round": run.round, "workload": run.workload, "load": load()})

    try:
        condition(describe_machine())
        condition({"kind": "options", "quick": quick, "rounds": nrounds})
        for side in sides:
            condition({"kind": "side", "side": side.name, **side.describe()})
        measure(sides, workloads, nrounds=nrounds, quick=quick, report=report)
    finally:
        if file is not None:
            file.close()
    return record
