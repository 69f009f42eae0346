"""Clusters on this machine: the first lines a person types, killed workers, hostile peers."""

import logging
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tools.accept.figure import GATES, Figure
from tools.accept.there import beside

ROOT = Path(__file__).resolve().parents[2]
RECOVERY_ROUNDS = 20
RECOVERY_MS_MAX = 100


def run_pytest(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the tests that pytest finds under `arguments`."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def tests_pass(name: str, *arguments: str) -> Figure:
    """A figure of the same tests."""
    done = run_pytest(*arguments)
    counts = re.findall(r"(\d+ \w+)(?=,| in )", done.stdout.splitlines()[-1])
    passed = done.returncode == 0 and any(count.endswith("passed") for count in counts)
    return Figure(name, ", ".join(counts) or done.stdout[-300:], "all pass", passed)


@GATES.register("first lines")
def first_lines() -> Figure:
    """Two tasks of a script, threads and processes, with and without the historical name."""
    return tests_pass("first lines", "tests/cluster/test_processes.py", "-k", "main_guard")


@GATES.register("both faces")
def both_faces() -> Figure:
    """The same tests through the blocking and the asynchronous client."""
    return tests_pass("both faces", "tests/cluster/test_client.py")


@GATES.register("hostile peers")
def hostile_peers() -> Figure:
    """Random bytes, slow handshakes, wrong tokens, replays, oversized frames."""
    return tests_pass("hostile peers", "tests/faults/test_hostile_peers.py")


@GATES.register("killed workers")
def killed_workers() -> Iterator[Figure]:
    """SIGKILL of the only holder of a needed result, and of a worker while it computes."""
    from tests.faults.killing import recoveries, summary

    logging.getLogger("shoal").setLevel(logging.ERROR)  # the deaths are on purpose
    with tempfile.TemporaryDirectory() as folder:
        seconds = recoveries(RECOVERY_ROUNDS, folder)
    for kind, milliseconds in summary(seconds).items():
        yield Figure(
            f"right result after SIGKILL, {kind}",
            f"median {milliseconds:.0f} ms, longest {1000 * max(seconds[kind]):.0f} ms, "
            f"{len(seconds[kind])} of {RECOVERY_ROUNDS} right{beside(kind)}",
            f"{RECOVERY_ROUNDS} right, median <= {RECOVERY_MS_MAX} ms",
            milliseconds <= RECOVERY_MS_MAX and len(seconds[kind]) == RECOVERY_ROUNDS,
        )
