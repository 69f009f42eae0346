"""Whatever process dies, and when: what can survive does, and nothing is left behind."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from tools.accept.figure import GATES, Figure
from tools.accept.gates_cluster import tests_pass

MOMENTS = 10


@GATES.register("processes that die")
def processes_that_die() -> Iterator[Figure]:
    """SIGKILL of each kind of process, and Ctrl-C, each at ten moments of the same work."""
    from tests.faults.dying import SURVIVABLE, VICTIMS, complaints, die

    for victim in VICTIMS:
        endings, problems = [], []
        for seed in range(MOMENTS):
            with tempfile.TemporaryDirectory() as folder:
                ending = die(victim, seed, Path(folder))
            endings.append(ending)
            problems += complaints(ending)
        for problem in problems:
            print(problem, flush=True)
        nright = sum(ending.is_right for ending in endings)
        longest = max(ending.seconds for ending in endings)
        nleft = sum(len(ending.left) for ending in endings)
        lines = max(len(ending.stderr.splitlines()) for ending in endings)
        right = f"{nright} of {MOMENTS} results right, " if victim in SURVIVABLE else ""
        yield Figure(
            "ctrl-c" if victim == "ctrl-c" else f"SIGKILL of the {victim}",
            f"{right}{nleft} things left behind, at most {lines} lines said, all over after "
            f"{longest:.1f} s at most",
            "right where it can be, nothing left, at most 1 line",
            passed=not problems,
        )


@GATES.register("crash loops and programs that close nothing")
def crash_loops() -> Iterator[Figure]:
    """A cause at the end of every crash loop; nothing left of a program, however it ends."""
    tests = "tests/faults/test_deaths.py"
    yield tests_pass("crash loops name their cause", tests, "-k", "kills_every or memory")
    yield tests_pass("programs that close nothing", tests, "-k", "closes_nothing")
    yield tests_pass("workers that are started again", "tests/cluster/test_restarts.py")
