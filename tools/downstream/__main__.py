"""`python -m tools.downstream`: the tests of projects that use `distributed`, on it and on shoal.

Prints the figures of both sides, and each test that passes with `distributed` and not here.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from pathlib import Path

from tools.accept.gates_speed import ORACLE
from tools.downstream.suites import Suite, read_suites
from tools.upstream.running import Ended
from tools.upstream.verdict import compare

ROOT = Path(__file__).resolve().parents[2]
OURS = (ROOT / "src", ROOT / "drop-in" / "src")


def main() -> int:
    """Run what the command line chooses; 1 if a test passes there alone, and has no reason."""
    parser = argparse.ArgumentParser(prog="python -m tools.downstream", description=__doc__)
    parser.add_argument("--oracle", default=os.environ.get(ORACLE), metavar="PYTHON",
                        help="an interpreter with the released distributed")  # fmt: skip
    parser.add_argument("suites", nargs="*", help="some only")
    options = parser.parse_args()
    if options.oracle is None:
        parser.error(f"--oracle, or the variable {ORACLE}, has to name an interpreter")
    worse = False
    for suite in read_suites():
        if not options.suites or suite.name in options.suites:
            worse |= not report(suite, options.oracle)
    return 1 if worse else 0


def report(suite: Suite, oracle: str) -> bool:
    """Run one suite on both sides and print what came of it; whether all that is worse here has a
    reason."""
    for python in (sys.executable, oracle):
        why_not = suite.why_not(python)
        if why_not:
            print(f"{suite.name}: not run: {why_not} ({python})", flush=True)
            return True
    theirs = suite.run(oracle)
    ours = suite.run(sys.executable, OURS)
    found = compare(ours, theirs)
    print(f"{suite.name}: distributed: {_figures(theirs)}; shoal: {_figures(ours)}", flush=True)
    print(
        f"  of {len(found.passed) + len(found.failed)} that pass there {len(found.passed)} pass "
        f"here, in {found.our_seconds:.1f} s to {found.their_seconds:.1f} s; "
        f"{len(found.more)} more pass here alone"
    )
    reasons = {name: suite.reason_of(name) for name in found.failed}
    for name, why in found.failed.items():
        print(f"  {name}: {reasons[name] or 'NO REASON'}  [{why}]", flush=True)
    return all(reasons.values())


def _figures(ended: dict[str, list[Ended]]) -> str:
    each = [one for some in ended.values() for one in some]
    counts = Counter(one.outcome for one in each)
    words = ", ".join(f"{n} {outcome}" for outcome, n in sorted(counts.items()))
    return f"{words or 'nothing'} in {sum(one.seconds for one in each):.0f} s"


if __name__ == "__main__":
    sys.exit(main())
