"""Why is this task run again?  In lines for people."""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from shoal.scheduler.model.entities import Task
from shoal.scheduler.model.reruns import DIED, LOST, RAISED, SILENT
from shoal.scheduler.model.state import SchedulerState
from shoal.units import format_seconds

RERUNS_LOOKED_AT: Final = 10_000
"""To count those that went with the same worker; some ms."""


def why_again(state: SchedulerState, task: Task, now: float) -> Iterator[str]:
    """W08, W09: what became of its last run, or of the result that it had.

    Cost: O(tasks that are run again), up to `RERUNS_LOOKED_AT`.
    """
    rerun = state.reruns.get(task)
    if rerun is None or not task.is_needed:
        return
    ago = f"{format_seconds(now - rerun.at)} ago"
    whom = f" with worker {rerun.worker}" if rerun.worker else ""
    if rerun.kind == LOST:
        alike = islice(state.reruns.values(), RERUNS_LOOKED_AT)
        nothers = sum(one is rerun for one in alike) - 1
        others = f"; {nothers} others that went with it are not back yet" if nothers > 0 else ""
        yield f"its result was lost{whom} {ago}, and is computed again{others}"
    elif rerun.kind == RAISED:
        nretries = task.options.retries
        where = f" on worker {rerun.worker}" if rerun.worker else ""
        yield (
            f"this is retry {nretries - task.retries} of {nretries}: {ago} it raised"
            f"{where}: {rerun.text}"
        )
    elif rerun.kind == DIED:
        yield f"worker {rerun.worker} was lost {ago}, as it had this: it is run again"
    elif rerun.kind == SILENT:
        yield f"worker {rerun.worker} had this, and is silent: {ago} it was taken from there"
