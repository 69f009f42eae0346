"""Exchanges in dask's own tests, unmodified, and random ones against pandas and numpy."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import Final

from tools.accept.figure import GATES, Figure
from tools.accept.gates_dask import PACKAGES, Outcomes, make_oracle, plain, run_suite
from tools.accept.gates_speed import ORACLE

ROOT: Final = Path(__file__).resolve().parents[2]

SUITES: Final = (
    "dataframe/dask_expr/tests/test_distributed.py",
    "array/tests/test_rechunk.py",
    "tests/test_delayed.py",
    "tests/test_distributed.py::test_fusion_barrier_task",
)
"""Of dask, below its package: those that ask for shuffles from peer to peer, or may get them.  Of
the last one all else is run by "dask's own tests"."""
BY_NAME: Final = re.compile("p2p|fusion_barrier")
"""Tests whose names say that they are about these."""

NCASES: Final = 10_000
NPROCESSES: Final = 2
CASES_SECONDS_MAX: Final = 600.0


@GATES.register("exchange: dask's tests")
def dasks_tests_of_exchanges() -> Iterator[Figure]:
    """Whatever passes with `distributed` passes here.  Some minutes."""
    absent = [name for name in PACKAGES if find_spec(name) is None]
    if absent:
        yield Figure(
            "dask's tests of exchanges need",
            ", ".join(absent),
            "pip install -e '.[accept]'",
            passed=False,
        )
        return
    oracle = os.environ.get(ORACLE) or make_oracle()
    for suite in SUITES:
        theirs = run_suite(oracle, suite=suite)
        ours = run_suite(sys.executable, ROOT / "drop-in" / "src", suite=suite)
        yield verdict(suite, ours, theirs)


def verdict(suite: str, ours: Outcomes, theirs: Outcomes) -> Figure:
    """What two runs of one suite say about each other."""
    expected = [name for name in theirs.passed if name not in theirs.by_luck]
    lacking = [name for name in expected if name not in ours.passed]
    nnamed = sum([bool(BY_NAME.search(name)) for name in expected])
    seconds = [sum(side.passed.get(name, 0.0) for name in expected) for side in (ours, theirs)]
    return Figure(
        f"dask/{suite}, of {len(expected)} that pass with distributed, {nnamed} with p2p in "
        "their names",
        f"{len(expected) - len(lacking)} pass, in {seconds[0]:.1f} s to {seconds[1]:.1f} s"
        + (f"; not: {', '.join(sorted(set(map(plain, lacking))))}" if lacking else ""),
        "all",
        passed=bool(expected) and not lacking,
    )


@GATES.register("exchange: properties")
def random_exchanges() -> Iterator[Figure]:
    """Random tables and arrays, by their numbers; each number is always the same case.

    Up to ten minutes, on two cores.
    """
    begun_at = monotonic()
    share = NCASES // NPROCESSES
    running = [
        subprocess.Popen(
            [
                *(sys.executable, "-W", "ignore", "-m", "tests.exchanged"),
                *(str(first), str(first + share)),
            ],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        for first in range(0, NCASES, share)
    ]
    printed = [process.communicate()[0].splitlines() for process in running]
    seconds = monotonic() - begun_at
    ended = [lines[-1] if lines else "nothing was said" for lines in printed]
    failed = [line for lines in printed for line in lines[:-1] if line.startswith("case ")]
    right = not failed and all(process.returncode == 0 for process in running)
    yield Figure(
        f"{NCASES:,} random merges, shuffles, groupings, sorted tables and rechunked arrays",
        f"{seconds:.0f} s; " + "; ".join(ended) + "".join(f"; {line:.200}" for line in failed[:5]),
        f"all are what pandas and numpy say, in <= {CASES_SECONDS_MAX:.0f} s",
        passed=right and seconds <= CASES_SECONDS_MAX,
    )
