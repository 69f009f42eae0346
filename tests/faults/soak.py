"""A long day with faults on: steady work while workers are killed, frozen and cut off.

`python -m tests.faults.soak --minutes 30`.  In the end every result was right, nothing stood still
for longer than it may, no process has grown, and nothing is left.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import median
from time import monotonic

import psutil

from tests.faults.grounds import Ground, commands
from tests.faults.kit.ends import Baseline
from tests.faults.storm import Late, deadline
from tests.faults.table import read_table
from tests.faults.trouble import Trouble
from tests.faults.workloads import Play, outcome, rounds

PAUSE_SECONDS = (2.0, 8.0)
"""Between two faults, at least and at most."""
ROUND_SECONDS_MAX = 90.0
STANDSTILL_SECONDS_MAX = 15.0
"""In which nothing comes to its end, at most."""
BACK_SECONDS_MAX = 15.0
ENDING_SECONDS_MAX = 150.0
GROWTH_BYTES_MAX = 16 << 20
GROWTH_RATIO_MAX = 0.05
"""From the second quarter of the time to the last: the larger of the two."""
LOOKS_MIN = 8
"""Fewer looks at memory show no trend."""


@dataclass
class Soak:
    """What came of it."""

    seconds: float = 0.0
    trouble: str = ""
    nrounds: int = 0
    longest_pause_seconds: float = 0.0
    grown: dict[str, int] = field(default_factory=dict)
    """Role → bytes that it has grown by; empty if there were too few looks."""
    complaints: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        grown = ", ".join(f"{role} {n / 2**20:+.1f} MiB" for role, n in self.grown.items())
        return (
            f"soak of {self.seconds / 60:.1f} min: {self.trouble}; {self.nrounds} rounds, longest "
            f"standstill {self.longest_pause_seconds:.1f} s; {grown or 'no trend'}: "
            f"{'; '.join(self.complaints) or 'all right'}"
        )


def soak(seconds: float, seed: int, folder: Path) -> Soak:
    """Play one in an empty `folder`; it takes `seconds`, and those of the last round."""
    told = Soak()
    began_at = monotonic()
    with commands(folder, peers_by_proxy=True, all_by_proxy=_all_come_back()) as stage:
        baseline = Baseline(stage.client, stage.nworkers)
        looks: list[dict[str, int]] = []
        kinds = ("kill", "freeze", "reset")
        with Trouble(stage, Random(f"soak {seed}"), kinds, PAUSE_SECONDS) as trouble:
            for name, work in rounds():
                play = Play(stage.client, ROUND_SECONDS_MAX)
                wrong = outcome(work, play)
                told.complaints += [f"{name}: {wrong}"] if wrong else []
                told.nrounds += 1
                told.longest_pause_seconds = max(
                    told.longest_pause_seconds, play.longest_pause_seconds
                )
                looks.append(memory_of(stage))
                if len(told.complaints) > 5 or monotonic() - began_at >= seconds:
                    break
        told.trouble = str(trouble)
        told.complaints += trouble.complaints
        told.complaints += baseline.complaints(BACK_SECONDS_MAX)
    told.seconds = monotonic() - began_at
    told.complaints += stage.complaints
    if told.longest_pause_seconds > STANDSTILL_SECONDS_MAX:
        told.complaints.append(f"nothing happened for {told.longest_pause_seconds:.1f} s")
    told.grown, too_much = growth(looks)
    told.complaints += too_much
    return told


def _all_come_back() -> bool:
    """Whether clients and workers outlive the end of a connection; then that happens as well."""
    return not any(fault.later for fault in read_table() if fault.id == "F47")


def memory_of(stage: Ground) -> dict[str, int]:
    """Role → resident bytes."""
    return {role: psutil.Process(pid).memory_info().rss for role, pid in stage.pids.items()}


def growth(looks: Sequence[Mapping[str, int]]) -> tuple[dict[str, int], list[str]]:
    """Bytes that each role has grown by, from the second quarter of the looks to the last.

    Returns:
        Role → bytes, and a sentence for each that has grown too much; both empty if there are
        fewer than `LOOKS_MIN`.
    """
    if len(looks) < LOOKS_MIN:
        return {}, []
    quarter = len(looks) // 4
    grown, complaints = {}, []
    for role in looks[0]:
        early = median(look[role] for look in looks[quarter : 2 * quarter])
        late = median(look[role] for look in looks[-quarter:])
        grown[role] = int(late - early)
        if late - early > max(GROWTH_BYTES_MAX, GROWTH_RATIO_MAX * early):
            complaints.append(f"{role} has grown by {(late - early) / 2**20:.1f} MiB")
    return grown, complaints


def main(arguments: list[str] | None = None) -> int:
    """Play one; the exit status is 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    seconds = 60 * options.minutes
    with tempfile.TemporaryDirectory() as folder:
        try:
            with deadline(seconds + ENDING_SECONDS_MAX):
                told = soak(seconds, options.seed, Path(folder))
        except Late as error:
            print(f"soak: {error}")
            return 1
    print(told)
    return 1 if told.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
