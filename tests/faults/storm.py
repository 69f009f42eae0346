"""A storm: a worker is killed every second or two, while a cluster works.

`python -m tests.faults.storm --seconds 60 --seed 1` plays one.  In the end every result was right,
there are as many workers as before, and nothing is left.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from time import monotonic

from tests.faults.grounds import KINDS, ground
from tests.faults.kit.ends import Baseline
from tests.faults.trouble import Trouble
from tests.faults.workloads import Play, outcome, rounds

PAUSE_SECONDS = (1.0, 2.0)
"""Between two kills, at least and at most."""
ROUND_SECONDS_MAX = 60.0
BACK_SECONDS_MAX = 10.0
RING_AGAIN_SECONDS = 20.0
ENDING_SECONDS_MAX = 90.0
"""For the last round, the checks and the end of the cluster."""


class Late(BaseException):
    """Something hangs; whatever waits for it is left."""


@dataclass
class Storm:
    """What came of one."""

    kind: str
    seed: int
    nkills: int = 0
    nrounds: int = 0
    longest_seconds: float = 0.0
    """Of a round."""
    complaints: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        end = "; ".join(self.complaints) or "all right"
        return (
            f"storm {self.seed} ({self.kind}): {self.nkills} kills, {self.nrounds} rounds, the "
            f"longest {self.longest_seconds:.1f} s: {end}"
        )


def storm(kind: str, seed: int, seconds: float, folder: Path) -> Storm:
    """Play one in an empty `folder`; it takes `seconds`, and those of the last round."""
    told = Storm(kind, seed)
    chance = Random(f"{kind} {seed}")
    with ground(kind, folder) as stage:
        baseline = Baseline(stage.client, stage.nworkers)
        ends_at = monotonic() + seconds
        with Trouble(stage, chance, ("kill",), PAUSE_SECONDS) as trouble:
            for name, work in rounds():
                began_at = monotonic()
                wrong = outcome(work, Play(stage.client, ROUND_SECONDS_MAX))
                told.nrounds += 1
                told.longest_seconds = max(told.longest_seconds, monotonic() - began_at)
                told.complaints += [f"{name}: {wrong}"] if wrong else []
                if wrong or monotonic() >= ends_at:
                    break
        told.nkills = trouble.counts["kill"]
        told.complaints += trouble.complaints
        if not told.complaints:
            told.complaints += baseline.complaints(BACK_SECONDS_MAX)
    told.complaints += stage.complaints
    return told


@contextlib.contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Whatever the main thread waits for then, it raises Late, and again if it goes on waiting."""

    def ring(number: int, frame: object) -> None:
        raise Late(f"not over after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, RING_AGAIN_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def main(arguments: list[str] | None = None) -> int:
    """Play one storm; the exit status is 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.storm", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cluster", choices=KINDS, help="by default one or the other, by the seed")
    options = parser.parse_args(arguments)
    kind = options.cluster or KINDS[options.seed % len(KINDS)]
    with tempfile.TemporaryDirectory() as folder:
        try:
            with deadline(options.seconds + ENDING_SECONDS_MAX):
                told = storm(kind, options.seed, options.seconds, Path(folder))
        except Late as error:
            print(f"storm {options.seed} ({kind}): {error}")
            return 1
    print(told)
    return 1 if told.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
