"""Thousands of simulated clusters with faults, and guards that are deleted to see red."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

from tools.accept.figure import GATES, Figure

ROOT = Path(__file__).resolve().parents[2]
SEEDS = 20_000
SEEDS_SECONDS_MAX = 600.0
SEEDS_CHEAP = 300
MUTANT_SEEDS = 4_000
GUARDS_MIN = 5


def simulate(seeds: int) -> Figure:
    """A figure of `seeds` simulated clusters."""
    command = [sys.executable, "-m", "shoal.sim", "--seeds", str(seeds)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if re.search(r"\d+ failures?", line)]
    summary = lines[-1] if lines else (done.stdout + done.stderr)[-300:]
    kinds = re.findall(r"^\d+ times .*: seeds .*", done.stdout, re.MULTILINE)
    summary = "; ".join([summary, *kinds])
    return Figure(f"{seeds} seeds", summary, "0 failures", passed=done.returncode == 0)


@GATES.register("simulator, some seeds", cheap=True)
def some_seeds() -> Figure:
    """A small part of what the full gate does."""
    return simulate(SEEDS_CHEAP)


@GATES.register("simulator, all seeds")
def all_seeds() -> Iterator[Figure]:
    """As many clusters as a bug of one in a thousand needs to show itself surely."""
    began_at = monotonic()
    yield simulate(SEEDS)
    seconds = monotonic() - began_at
    yield Figure(
        f"time for {SEEDS} seeds",
        f"{seconds:.0f} s",
        f"<= {SEEDS_SECONDS_MAX:.0f} s",
        passed=seconds <= SEEDS_SECONDS_MAX,
    )


@GATES.register("simulator, deleted guards")
def deleted_guards() -> Figure:
    """Each named guard is deleted from a copy of its machine; seeds must notice."""
    command = [sys.executable, "-m", "shoal.sim.mutants", "--seeds", str(MUTANT_SEEDS)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    print(done.stdout, end="")
    seeds = [int(n) for n in re.findall(r"^ *(\d+) seeds?: ", done.stdout, re.MULTILINE)]
    value = f"{len(seeds)} noticed, after {min(seeds)} to {max(seeds)} seeds" if seeds else "none"
    return Figure(
        "deleted guards turn the simulator red",
        value,
        f"all, and at least {GUARDS_MIN}",
        passed=done.returncode == 0 and len(seeds) >= GUARDS_MIN,
    )
