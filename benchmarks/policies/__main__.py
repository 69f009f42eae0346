"""`python -m benchmarks.policies`: makespans, bytes and costs of the scheduler's choices."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from benchmarks.policies.contest import Result, entries_of, play_all
from benchmarks.policies.kinds import KINDS
from benchmarks.policies.report import table


def main(arguments: list[str] | None = None) -> int:
    """Play what the command line names; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.policies", description=__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[10, 100])
    parser.add_argument("--graphs", nargs="+", default=["all"], choices=["all", *KINDS])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2, help="of each worker")
    parser.add_argument("--tasks-per-thread", type=int, default=25)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--json", type=Path, help="append each result as a line")
    options = parser.parse_args(arguments)
    graphs = list(KINDS) if "all" in options.graphs else options.graphs
    entries = entries_of(
        graphs, options.workers, options.seeds, options.tasks_per_thread, options.threads
    )
    results: list[Result] = []
    for result in play_all(entries, options.processes):
        results.append(result)
        if options.json:
            with options.json.open("a") as file:
                file.write(json.dumps(result.to_json()) + "\n")
    for line in table(results):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
