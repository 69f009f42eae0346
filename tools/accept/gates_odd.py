"""Odd tasks: whatever a task raises, returns or does, its worker goes on."""

import tempfile
from pathlib import Path

from tools.accept.figure import GATES, Figure
from tools.accept.gates_cluster import run_pytest
from tools.accept.gates_dask import read_report

SUITE = "tests/cluster/test_odd_endings.py"
ENDINGS_MIN = 40
SECONDS_MAX = 5.0


@GATES.register("odd endings", cheap=True)
def odd_endings() -> Figure:
    """Every case of docs/odd-tasks.md on two worker processes, whose numbers are compared after."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        settings = ("--junitxml", str(report), "-o", "junit_duration_report=call")
        done = run_pytest(SUITE, *settings)
        found = read_report(report.read_text(encoding="utf-8"))
    seconds = {**found.passed, **found.failed, **found.skipped}
    endings = {name: taken for name, taken in seconds.items() if "odd_ending" in name}
    slowest = max(endings, key=endings.__getitem__, default="")
    failed = [*found.failed, *found.skipped]
    passed = (
        done.returncode == 0
        and not failed
        and len(endings) >= ENDINGS_MIN
        and endings[slowest] < SECONDS_MAX
    )
    which = slowest.partition("[")[2].rstrip("]")
    outcome = f"failed: {', '.join(failed)}" if failed else "both workers the same processes after"
    return Figure(
        "odd endings",
        f"{len(endings)}, slowest {endings.get(slowest, 0.0):.1f} s ({which}), {outcome}",
        f">= {ENDINGS_MIN}, each < {SECONDS_MAX:.0f} s, worker alive after each",
        passed,
    )
