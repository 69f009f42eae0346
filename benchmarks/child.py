"""One workload on one side, in a fresh process: JSON lines on standard output.

`python -m benchmarks.child --module MODULE --workload NAME --size N`, where MODULE is `shoal`,
`distributed` or `pool`.  A failure is a line as well, and exit code 1.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import traceback

from benchmarks.bench import Bench
from benchmarks.registry import WORKLOADS


def main() -> int:
    """Run the workload, and write down each figure as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--module", required=True)
    parser.add_argument("--workload", required=True, choices=[item.name for item in WORKLOADS])
    parser.add_argument("--size", required=True, type=int)
    options = parser.parse_args()
    (workload,) = (item for item in WORKLOADS if item.name == options.workload)
    run = workload.pool if options.module == "pool" else workload.run
    assert run is not None, "the caller asks only for sides that take part"
    try:
        for figure in run(Bench(options.module, options.size)):
            print(json.dumps(dataclasses.asdict(figure)), flush=True)
    except Exception as error:
        traceback.print_exc()
        reason = f"{type(error).__name__}: {error}"
        print(json.dumps({"failure": reason}), flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
