"""`python -m tools.surface --oracle PYTHON`: names of `distributed` that shoal lacks, or has
otherwise, one a line, with where that is explained."""

from __future__ import annotations

import argparse
import os
import sys

from tools.accept.gates_speed import ORACLE
from tools.surface.both import our_surface, surface_of
from tools.surface.compare import compare
from tools.surface.explained import explain, read_later, read_patterns


def main() -> int:
    """Print them; 1 if one is not explained."""
    parser = argparse.ArgumentParser(prog="python -m tools.surface", description=__doc__)
    parser.add_argument("--oracle", default=os.environ.get(ORACLE), metavar="PYTHON")
    options = parser.parse_args()
    if options.oracle is None:
        parser.error(f"--oracle, or the variable {ORACLE}, has to name an interpreter")
    theirs, ours = surface_of(options.oracle)["found"], our_surface()["found"]
    found = explain(compare(theirs, ours), read_patterns(), read_later())
    for title, differences in (
        ("stays", found.stays), ("later", found.later), ("NOT EXPLAINED", found.neither)
    ):  # fmt: skip
        for difference in differences:
            print(f"{title}: {difference.name}: {difference.what}")
    for name in found.stale:
        print(f"explains nothing any more: {name}")
    return 1 if found.neither or found.stale else 0


if __name__ == "__main__":
    sys.exit(main())
