"""Upstream's public tests, unmodified, on shoal's drop-in; they are not part of this project."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import dask

from tools.accept.figure import GATES, Figure
from tools.accept.gates_speed import ORACLE
from tools.surface.names import public_names
from tools.upstream import verdict
from tools.upstream.sides import run_ours, run_theirs

TESTS: Final = "SHOAL_UPSTREAM_TESTS"
RATIO_MIN: Final = 0.85
PACKAGES: Final = (
    "cryptography", "h5py", "netCDF4", "pandas", "pyarrow", "pytest", "pytest-rerunfailures",
    "pytest-timeout", "scipy",
)  # fmt: skip
"""What the tests use; they skip themselves where more is missing."""


@GATES.register("upstream's public tests")
def upstreams_public_tests() -> Iterator[Figure]:
    """Of those that pass with `distributed`, most pass here, and each other has a line of reason.

    Ten minutes and more; the other side is run once for each set of tests.  Nothing is measured
    where the variable SHOAL_UPSTREAM_TESTS does not name a folder with tests, and that is said.
    """
    folder = os.environ.get(TESTS)
    if not folder:
        print(
            f"NOT MEASURED  upstream's public tests: the variable {TESTS} names no folder that "
            "holds pyproject.toml, conftest.py and distributed/**/tests/ of a checkout",
            file=sys.stderr,
        )
        return
    tests = Path(folder)
    files = verdict.read_files("public")
    theirs = run_theirs(os.environ.get(ORACLE) or _make_oracle(), tests, files)
    ours = run_ours(tests, files)
    public = verdict.public_by_file(tests, files, public_names())
    yield from figures(
        verdict.compare(ours, theirs, public), verdict.compare(ours, theirs), verdict.read_reasons()
    )


def figures(
    public: verdict.Verdict, everything: verdict.Verdict, reasons: dict[str, str]
) -> Iterator[Figure]:
    """What two comparisons say."""
    total = len(public.passed) + len(public.failed)
    yield Figure(
        f"upstream's tests with public names only, of {total} that pass with distributed",
        f"{len(public.passed)} pass ({public.ratio:.0%}), in {public.our_seconds:.0f} s to "
        f"{public.their_seconds:.0f} s",
        f">= {RATIO_MIN:.0%}",
        passed=bool(public.passed) and public.ratio >= RATIO_MIN,
    )
    here = public.without(verdict.read_later())
    total = len(here.passed) + len(here.failed)
    nwhole, nfunctions = public.functions()
    yield Figure(
        "of these, what waits for no later capability; and test functions, all of them",
        f"{len(here.passed)} of {total} ({here.ratio:.0%}); {nwhole} of {nfunctions}",
        "shown only",
        passed=bool(here.passed),
    )
    unexplained = verdict.unexplained(public.failed, reasons)
    stale = verdict.stale(public.passed, public.failed, reasons)
    yield Figure(
        "of those that fail, without a line of reason",
        ", ".join(unexplained) or "none",
        "none" + (f"; lines that nothing needs any more: {', '.join(stale)}" if stale else ""),
        passed=not unexplained and not stale,
    )
    total = len(everything.passed) + len(everything.failed)
    yield Figure(
        f"all tests of the same files, of {total} that pass with distributed",
        f"{len(everything.passed)} pass ({everything.ratio:.0%})",
        "shown only",
        passed=bool(everything.passed),
    )


def _make_oracle() -> str:
    from benchmarks.environment import ORACLE_FOLDER, ensure_oracle

    version = str(dask.__version__).partition("+")[0]
    return ensure_oracle(
        ORACLE_FOLDER.with_name("oracle-upstream"), (f"distributed=={version}", *PACKAGES)
    )
