"""What is lost, and for how long, as a scheduler comes back and as a worker is silent."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from tools.accept.figure import GATES, Figure
from tools.accept.gates_cluster import tests_pass
from tools.accept.there import beside

JOURNAL = ("tests/faults/test_journals.py", "tests/cluster/test_journal.py")
NRESULTS = 10_000


@GATES.register("a scheduler that is lost")
def scheduler_is_lost() -> Iterator[Figure]:
    """SIGKILL and restart at the same address, as two workers with nannies hold results."""
    from tests.faults.sessions import restart

    with tempfile.TemporaryDirectory() as folder:
        ended = restart(NRESULTS, Path(folder))
    if ended.said:
        print(ended.said, flush=True)
    yield Figure(
        "results that outlive the scheduler",
        f"{ended.nright} of {ended.nresults} right, {ended.nagain} computed again, all there "
        f"{ended.seconds:.1f} s after its start{beside('scheduler')}",
        f"{NRESULTS} right, none computed again",
        passed=ended.nright == NRESULTS and ended.nagain == 0 and not ended.said,
    )


@GATES.register("a journal")
def journal() -> Figure:
    """Datasets and fired work outlive their client and their scheduler, both killed."""
    return tests_pass("what outlives scheduler and client, by a journal", *JOURNAL)


@GATES.register("standstills")
def standstills() -> Iterator[Figure]:
    """Others go on without a worker that is stopped, cut off or does not answer."""
    from tests.faults.standing_still import PROGRESS_SECONDS_MAX, STANDSTILLS

    for what, measure in STANDSTILLS.items():
        with tempfile.TemporaryDirectory() as folder:
            seconds = measure(Path(folder))
        yield Figure(
            f"until there is progress when a worker {what}",
            f"{seconds:.1f} s{beside(what)}",
            f"<= {PROGRESS_SECONDS_MAX:.0f} s",
            passed=seconds <= PROGRESS_SECONDS_MAX,
        )
