"""Odd tasks: whatever a task raises, returns or does, its worker goes on."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

from tools.accept.figure import GATES, Figure

ROOT = Path(__file__).resolve().parents[2]
SUITE = "tests/cluster/test_odd_endings.py"
ENDINGS_MIN = 40
SECONDS_MAX = 5.0


@GATES.register("odd endings", cheap=True)
def odd_endings() -> Figure:
    """Every case of docs/odd-tasks.md on two worker processes, whose numbers are compared after."""
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.xml")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", SUITE]
        command += ["--junitxml", report, "-o", "junit_duration_report=call"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        cases = list(ElementTree.parse(report).iter("testcase"))
    seconds = {case.get("name", ""): float(case.get("time", "inf")) for case in cases}
    endings = {name: taken for name, taken in seconds.items() if "odd_ending" in name}
    slowest = max(endings, key=endings.__getitem__, default="")
    failed = [case.get("name", "") for case in cases if len(case)]
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
