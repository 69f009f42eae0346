"""`python -m tests.faults`: run the tests of the table, and its storms; print what came of each."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from tests.faults.table import (
    BROKEN,
    Fault,
    Outcome,
    lines_of,
    outcome_of,
    read_endings,
    read_table,
)
from tests.faults.table import summary as summary_of

ROOT = Path(__file__).resolve().parents[2]
SECONDS_MAX = 900.0
"""For all of it."""
STORM_SECONDS = 60
STORM_SECONDS_MAX = 150.0


@dataclass(frozen=True)
class Run:
    """What came of all faults that were looked at."""

    faults: Sequence[Fault]
    outcomes: Mapping[str, Outcome]
    seconds: float

    @property
    def is_whole(self) -> bool:
        """Whether nothing that should be held is not."""
        return all(outcome.word != BROKEN for outcome in self.outcomes.values())

    @property
    def summary(self) -> str:
        """In one line."""
        return f"{summary_of(self.faults, self.outcomes)}; {self.seconds:.0f} s"


def run_table(names: Sequence[str] = (), *, with_storms: bool = True) -> Run:
    """Run the tests of these faults (all if there is none), each of them once."""
    began_at = monotonic()
    faults = [fault for fault in read_table() if not names or fault.id in names]
    nstorms = max((fault.storms for fault in faults), default=0) if with_storms else 0
    tests = dict.fromkeys(test for fault in faults for test in fault.tests)
    report = _report_of(list(tests), SECONDS_MAX - nstorms * STORM_SECONDS)
    endings = read_endings(report) if report else {}
    storms = [storm(seed) for seed in range(nstorms)]
    outcomes = {}
    for fault in faults:
        ends = storms if with_storms else [""] * fault.storms
        outcomes[fault.id] = outcome_of(fault, endings, ends[: fault.storms])
    return Run(faults, outcomes, monotonic() - began_at)


def _report_of(tests: Sequence[str], seconds_max: float) -> str:
    """Pytest's report; empty if it did not come to an end."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += ["--junitxml", str(report), *(f"tests/{test}" for test in tests)]
        try:
            done = subprocess.run(command, cwd=ROOT, timeout=seconds_max, check=False)
        except subprocess.TimeoutExpired:
            print(f"the tests were not over after {seconds_max:.0f} s", flush=True)
            return ""
        print(f"pytest ended with {done.returncode}", flush=True)
        return report.read_text(encoding="utf-8") if report.exists() else ""


def storm(seed: int, seconds: int = STORM_SECONDS) -> str:
    """One storm in a process of its own; what is wrong with its end, or nothing."""
    command = [sys.executable, "-m", "tests.faults.storm"]
    command += ["--seconds", str(seconds), "--seed", str(seed)]
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
            timeout=seconds + STORM_SECONDS_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"storm {seed} hung"
    print(done.stdout, end="", flush=True)
    last = done.stdout.splitlines()[-1:] or ["it said nothing"]
    return "" if done.returncode == 0 else f"storm {seed}: {last[0]}"


def main(arguments: list[str] | None = None) -> int:
    """Print the table; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("faults", nargs="*", metavar="F01", help="only these")
    parser.add_argument("--no-storms", action="store_true", help="leave them out")
    options = parser.parse_args(arguments)
    run = run_table(options.faults, with_storms=not options.no_storms)
    print("\n".join(lines_of(run.faults, run.outcomes)))
    print(run.summary)
    return 0 if run.is_whole else 1


if __name__ == "__main__":
    sys.exit(main())
