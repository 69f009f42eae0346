"""`python -m tests.exchanged FIRST STOP`: cases by their numbers; says what failed, and counts."""

from __future__ import annotations

import argparse
import sys
from time import monotonic

from shoal import Client
from tests.exchanged.kinds import is_for_cluster
from tests.exchanged.running import CaseFailed, run_in_process, run_on_cluster


def main() -> int:
    """Run what the command line says; 1 if a case failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.exchanged", description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("stop", type=int)
    options = parser.parse_args()
    numbers = range(options.first, options.stop)
    begun_at = monotonic()
    nfailed = nshuffles = ncluster = 0
    for number in numbers:
        if is_for_cluster(number):
            continue
        try:
            nshuffles += run_in_process(number)
        except CaseFailed as failure:
            nfailed += 1
            print(failure, flush=True)
    with Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None):
        for number in filter(is_for_cluster, numbers):
            ncluster += 1
            try:
                run_on_cluster(number)
            except CaseFailed as failure:
                nfailed += 1
                print(failure, flush=True)
    seconds = monotonic() - begun_at
    print(
        f"{len(numbers)} cases, {ncluster} of them on a cluster, {nshuffles} shuffles in the "
        f"others, {nfailed} failed, {seconds:.0f} s"
    )
    return 1 if nfailed else 0


if __name__ == "__main__":
    sys.exit(main())
