"""`python -m tools.upstream --tests FOLDER`: upstream's tests, unmodified, on shoal's drop-in.

Prints each file with its figures, each test that fails with the last line of why, and the figures
of all.  FOLDER holds pyproject.toml, conftest.py and distributed/**/tests/ of a checkout.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from pathlib import Path

from tools.accept.gates_speed import ORACLE
from tools.surface.names import public_names
from tools.upstream import verdict
from tools.upstream.running import Ended
from tools.upstream.sides import run_ours, run_theirs

TESTS = "SHOAL_UPSTREAM_TESTS"


def main() -> int:
    """Run what the command line chooses; 1 if a public test fails without a line of reason."""
    parser = argparse.ArgumentParser(prog="python -m tools.upstream", description=__doc__)
    parser.add_argument("--tests", type=Path, default=os.environ.get(TESTS), help=f"or ${TESTS}")
    parser.add_argument("--oracle", default=os.environ.get(ORACLE), metavar="PYTHON",
                        help="an interpreter with the released distributed")  # fmt: skip
    parser.add_argument("--group", default="public", choices=("public", "shown"))
    parser.add_argument("files", nargs="*", help="some files only, below distributed/")
    options = parser.parse_args()
    if options.tests is None or options.oracle is None:
        parser.error("--tests and --oracle are needed")
    files = options.files or verdict.read_files(options.group)
    theirs = run_theirs(options.oracle, options.tests, files, _told)
    ours = run_ours(options.tests, files, _told)
    public = verdict.public_by_file(options.tests, files, public_names())
    reasons = verdict.read_reasons()
    for title, found in (
        ("all that pass with distributed", verdict.compare(ours, theirs)),
        ("those with public names only", verdict.compare(ours, theirs, public)),
    ):
        print(
            f"{title}: {len(found.passed)} of {len(found.passed) + len(found.failed)} pass here "
            f"({found.ratio:.0%}), in {found.our_seconds:.1f} s to {found.their_seconds:.1f} s"
        )
    for name, why in found.failed.items():
        print(f"  {name}: {verdict.reason_of(name, reasons) or 'NO REASON'}  [{why}]")
    return 1 if verdict.unexplained(found.failed, reasons) else 0


def _told(file: str, ended: list[Ended]) -> None:
    counts = Counter(each.outcome for each in ended)
    seconds = sum(each.seconds for each in ended)
    words = ", ".join(f"{n} {outcome}" for outcome, n in sorted(counts.items()))
    print(f"{file}: {words or 'nothing'} in {seconds:.1f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
