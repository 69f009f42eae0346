"""Command line of the measuring stick: `python benchmarks/compare.py --help`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

if __package__ in (None, ""):  # run as a file: it is this folder's parent that must be on the path
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks import report
from benchmarks.environment import SIDES, make_sides
from benchmarks.errors import BenchmarkError
from benchmarks.record import Record, read_record, take_record
from benchmarks.registry import WORKLOADS, select


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure (or read an earlier run) and print the table.

    The exit code is 0 if shoal got through every workload and, with `--check`, every budget was
    kept; 1 if not; 2 if nothing could be measured.
    """
    options = _parser().parse_args(arguments)
    try:
        if options.list:
            print("\n".join(f"{item.name:<16} {item.about}" for item in WORKLOADS))
            return 0
        if options.read is not None:
            record = read_record(options.read.read_text().splitlines())
        else:
            record = _measure(options)
        return conclude(record, enforce=options.check)
    except BenchmarkError as error:
        print(f"compare: {error}", file=sys.stderr)
        return 2


def conclude(record: Record, *, enforce: bool) -> int:
    """Print the table, the failures and, to `enforce` the budgets, the verdicts."""
    lines = ["", *report.table(record.rows(), record.sides), *report.failures(record.failures)]
    kept = not any(failure.side == "shoal" for failure in record.failures)
    if enforce:
        verdicts = record.verdicts()
        lines += ["", *report.verdicts(verdicts)]
        if record.quick:
            lines.append("The sizes are the quick ones: a hint, not a verdict on a release.")
        kept = kept and bool(verdicts) and all(verdict.passed for verdict in verdicts)
    print("\n".join(lines))
    return 0 if kept else 1


def _measure(options: argparse.Namespace) -> Record:
    workloads = select(tuple(name for name in options.only.split(",") if name))
    names = tuple(
        side
        for side in SIDES
        if side in (options.side or SIDES) and not (side == "distributed" and options.no_oracle)
    )
    sides = make_sides(names, oracle=options.oracle, shoal=options.shoal, module=options.module)
    return take_record(
        sides,
        workloads,
        nrounds=options.rounds,
        quick=options.quick,
        path=options.json,
        say=partial(print, flush=True),
    )


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not a number of rounds; take 1 or more")
    return number


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--rounds", type=_positive, default=5, help="how often each side runs (default 5)")
    add("--only", default="", metavar="NAME,...", help="these workloads; * and ? are allowed")
    add("--quick", action="store_true", help="smaller sizes: seconds in place of minutes")
    add("--side", action="append", choices=SIDES, help="only this side; may be repeated")
    add("--no-oracle", action="store_true", help="leave distributed out")
    add("--oracle", metavar="PYTHON", help="an interpreter that has distributed, pandas, joblib")
    add("--shoal", metavar="PYTHON", help="shoal's interpreter (default: the running one)")
    add("--module", default="shoal", help="stands in shoal's place (default shoal)")
    add("--json", type=Path, metavar="FILE", help="write every reading to FILE, one per line")
    add("--read", type=Path, metavar="FILE", help="report an earlier --json file; run nothing")
    add("--check", action="store_true", help="enforce budgets.toml by the exit code")
    add("--list", action="store_true", help="name the workloads and stop")
    return parser


if __name__ == "__main__":
    sys.exit(main())
