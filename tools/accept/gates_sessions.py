"""A scheduler that comes back: what is there is found, and nothing of it is computed again."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from tools.accept.figure import GATES, Figure

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
        f"{ended.seconds:.1f} s after its start",
        f"{NRESULTS} right, none computed again",
        passed=ended.nright == NRESULTS and ended.nagain == 0 and not ended.said,
    )
