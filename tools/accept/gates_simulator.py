"""Ten thousand simulated clusters with faults, and guards that are deleted to see red."""

import re
import subprocess
import sys
from pathlib import Path

from tools.accept.figure import GATES, Figure

ROOT = Path(__file__).resolve().parents[2]
SEEDS = 10_000
SEEDS_CHEAP = 300


def simulate(seeds: int) -> Figure:
    """A figure of `seeds` simulated clusters."""
    command = [sys.executable, "-m", "shoal.sim", "--seeds", str(seeds)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if re.search(r"\d+ failures?", line)]
    summary = lines[-1] if lines else (done.stdout + done.stderr)[-300:]
    return Figure(f"{seeds} seeds", summary, "0 failures", passed=done.returncode == 0)


@GATES.register("simulator, some seeds", cheap=True)
def some_seeds() -> Figure:
    """A small part of what the full gate does."""
    return simulate(SEEDS_CHEAP)


@GATES.register("simulator, all seeds")
def all_seeds() -> Figure:
    """As many clusters as a bug of one in a thousand needs to show itself surely."""
    return simulate(SEEDS)
