"""A local cluster in a process of its own: `python -m benchmarks.host MODULE`.

Writes the scheduler's address on standard output, and lives until standard input ends.
"""

from __future__ import annotations

import importlib
import sys

from benchmarks.bench import CLUSTER


def main() -> None:
    """Start, say where, wait, stop."""
    module = importlib.import_module(sys.argv[1])
    with module.LocalCluster(**CLUSTER) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
