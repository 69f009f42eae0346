"""Faults of every kind: the table of 61, kill storms, and a long soak."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.accept.figure import GATES, Figure
from tools.accept.there import beside

ROOT = Path(__file__).resolve().parents[2]
TABLE_SECONDS_MAX = 900.0
STORMS = 20
STORM_SECONDS = 60
SOAK_MINUTES = 30
STANDSTILL_SECONDS_MAX = 15.0


@GATES.register("faults")
def faults() -> Iterator[Figure]:
    """Every test of the table, and five storms; what is for later counts as not held."""
    from tests.faults.__main__ import run_table
    from tests.faults.table import BROKEN, HELD, lines_of

    run = run_table()
    print("\n".join(lines_of(run.faults, run.outcomes)), flush=True)
    words = [outcome.word for outcome in run.outcomes.values()]
    broken = ", ".join(name for name, end in run.outcomes.items() if end.word == BROKEN)
    yield Figure(
        "faults that are held",
        run.summary + (f"; broken: {broken}" if broken else ""),
        f"all {len(words)}",
        passed=words.count(HELD) == len(words),
    )
    yield Figure(
        "time for the table of faults",
        f"{run.seconds:.0f} s",
        f"<= {TABLE_SECONDS_MAX:.0f} s, none broken",
        passed=run.seconds <= TABLE_SECONDS_MAX and run.is_whole,
    )


@GATES.register("kill storms")
def kill_storms() -> Figure:
    """A worker is killed every second or two for a minute, twenty times."""
    from tests.faults.__main__ import storm

    ends = [storm(seed, STORM_SECONDS) for seed in range(STORMS)]
    bad = [end for end in ends if end]
    return Figure(
        "kill storms",
        f"{STORMS - len(bad)} of {STORMS} right{''.join(f'; {end}' for end in bad)}"
        f"{beside('kill storms')}",
        f"{STORMS}: results right, workers back, nothing left",
        passed=not bad,
    )


@GATES.register("soak")
def soak() -> Figure:
    """Steady work while workers are killed, frozen and cut off."""
    command = [sys.executable, "-m", "tests.faults.soak", "--minutes", str(SOAK_MINUTES)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    return figure_of_soak(done.returncode, done.stdout)


def figure_of_soak(returncode: int, said: str) -> Figure:
    """By what its program said last."""
    last = said.splitlines()[-1:] or ["it said nothing"]
    standstill = re.search(r"longest standstill ([\d.]+) s", last[0])
    return Figure(
        f"soak of {SOAK_MINUTES} minutes with faults on",
        last[0],
        f"all right, no standstill over {STANDSTILL_SECONDS_MAX:.0f} s, no growth, nothing left",
        passed=returncode == 0
        and standstill is not None
        and float(standstill[1]) <= STANDSTILL_SECONDS_MAX,
    )
