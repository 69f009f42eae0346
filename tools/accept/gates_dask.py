"""Dask's own tests of its scheduler, unmodified, on shoal and on the released `distributed`."""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

import dask

from tools.accept.figure import GATES, Figure
from tools.accept.gates_speed import ORACLE

ROOT: Final = Path(__file__).resolve().parents[2]
SUITE: Final = "tests/test_distributed.py"
PACKAGES: Final = ("pytest", "pandas", "pyarrow", "tables", "sqlalchemy", "zarr", "h5py")
RUN_SECONDS_MAX: Final = 900
TIME_RATIO_MAX: Final = 1 / 3

WAITING: Final[dict[str, str]] = {}
"""Test → the capability that it asks for, which comes later.  A test says so when it passes."""


@dataclass
class Outcomes:
    """One run of the suite: seconds of each test, by how it ended."""

    passed: dict[str, float] = field(default_factory=dict)
    failed: dict[str, float] = field(default_factory=dict)
    skipped: dict[str, float] = field(default_factory=dict)
    by_luck: list[str] = field(default_factory=list)
    """Passed, though dask expects them to fail: another time they may."""


@GATES.register("dask's own tests")
def dasks_own_tests() -> Iterator[Figure]:
    """Whatever passes with `distributed` passes here, or waits for a named capability; and faster.

    Some minutes.  Only tests that pass on both sides are timed, set-up and end included.
    """
    absent = [name for name in PACKAGES if find_spec(name) is None]
    if absent:
        yield Figure(
            "dask's own tests need", ", ".join(absent), "pip install -e '.[accept]'", False
        )
        return
    theirs = run_suite(os.environ.get(ORACLE) or make_oracle())
    ours = run_suite(sys.executable, ROOT / "drop-in" / "src")
    yield from verdicts(ours, theirs)


def verdicts(
    ours: Outcomes, theirs: Outcomes, waiting_for: Mapping[str, str] = WAITING
) -> Iterator[Figure]:
    """What two runs say about each other.

    `waiting_for`: as `WAITING`.
    """
    expected = [name for name in theirs.passed if name not in theirs.by_luck]
    lacking = [name for name in expected if name not in ours.passed]
    unexplained = [name for name in lacking if plain(name) not in waiting_for]
    both = [name for name in expected if name in ours.passed]
    more = len(ours.passed) - len(ours.by_luck) - len(both)
    yield Figure(
        f"dask/{SUITE}, of {len(expected)} that pass with distributed",
        f"{len(both)} pass, {len(lacking) - len(unexplained)} wait, {len(unexplained)} neither"
        + (f" ({', '.join(unexplained)})" if unexplained else "")
        + (f"; {more} more pass here alone" if more else ""),
        "each passes, or waits for a named capability",
        passed=bool(both) and not unexplained,
    )
    waiting = sorted({f"{plain(name)}: {waiting_for[plain(name)]}" for name in lacking
                      if plain(name) in waiting_for})  # fmt: skip
    done = [name for name in waiting_for if name not in map(plain, lacking)]
    yield Figure(
        "tests that wait for later capabilities",
        "; ".join(waiting) or "none",
        "as listed in the gate" + (f", but not any more: {', '.join(done)}" if done else ""),
        passed=not done,
    )
    our_seconds = sum(ours.passed[name] for name in both)
    their_seconds = sum(theirs.passed[name] for name in both)
    yield Figure(
        f"seconds for the {len(both)} that pass on both",
        f"{our_seconds:.1f} to {their_seconds:.1f} of distributed",
        f"<= {TIME_RATIO_MAX:.2f} of its time",
        passed=bool(both) and our_seconds <= TIME_RATIO_MAX * their_seconds,
    )


def run_suite(python: str, *path: Path, suite: str = SUITE) -> Outcomes:
    """Run a suite of the dask that `python` has; modules in `path` come first.

    Raises:
        subprocess.CalledProcessError: there is no such suite, or it could not begin.
        subprocess.TimeoutExpired: it did not come to an end.
    """
    environ = {name: value for name, value in os.environ.items() if not name.startswith("DASK_")}
    environ["PYTHONPATH"] = os.pathsep.join(map(str, path))
    where = "import dask; print(dask.__path__[0])"
    # -P, and an empty folder: what lies in the current one must not be taken for a package.
    with tempfile.TemporaryDirectory() as folder:
        found = subprocess.run(
            [python, "-P", "-c", where], env=environ, capture_output=True, text=True, check=True
        )
        report = Path(folder) / "report.xml"
        settings = Path(folder) / "pytest.ini"  # or those of a project around the interpreter hold
        settings.write_text("[pytest]\n", encoding="utf-8")
        command = [python, "-P", "-m", "pytest", "-q", "-rX", "-p", "no:cacheprovider"]
        command += ["-o", "xfail_strict=false", "-c", str(settings), "--junitxml", str(report)]
        done = subprocess.run(
            [*command, str(Path(found.stdout.strip()) / suite)],
            cwd=folder,
            env=environ,
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS_MAX,
            check=False,
        )
        if done.returncode not in (0, 1):  # 1: some tests failed
            raise subprocess.CalledProcessError(
                done.returncode, command, done.stdout[-2000:], done.stderr
            )
        outcomes = read_report(report.read_text(encoding="utf-8"))
    outcomes.by_luck = re.findall(r"^XPASS \S*::(\w+(?:\[.*?\])?)", done.stdout, re.MULTILINE)
    return outcomes


def read_report(text: str) -> Outcomes:
    """What a report of pytest's in JUnit's form says; an error of a fixture is a failure."""
    outcomes = Outcomes()
    for case in ElementTree.fromstring(text).iter("testcase"):
        kinds = {child.tag for child in case}
        if kinds & {"failure", "error"}:
            ended = outcomes.failed
        elif "skipped" in kinds:
            ended = outcomes.skipped
        else:
            ended = outcomes.passed
        ended[case.attrib["name"]] = float(case.attrib["time"])
    for name in outcomes.failed:  # a test that passed may still fail as it ends
        outcomes.passed.pop(name, None)
    return outcomes


def plain(name: str) -> str:
    """The name of a test without its parameters."""
    return name.partition("[")[0]


def make_oracle() -> str:
    """An interpreter with the released `distributed` and what the suites need."""
    from benchmarks.environment import ORACLE_FOLDER, ensure_oracle

    version = str(dask.__version__).partition("+")[0]
    return ensure_oracle(
        ORACLE_FOLDER.with_name("oracle-dask"), (f"distributed=={version}", *PACKAGES)
    )
