"""What stays of a million tasks, by Python's own count, and of twenty closed clusters."""

from __future__ import annotations

import gc
import inspect
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from tools.accept.figure import GATES, Figure
from tools.accept.gates_memory import ours_alone
from tools.accept.there import beside

NTASKS: Final = 1_000_000
ROUND_TASKS: Final = 50_000
GROWTH_BYTES_MAX: Final = 10.0
GROWING_SECONDS_MAX: Final = 900.0

NCLUSTERS: Final = 20
HOUSE: Final = "shoal"
SERVICES: Final = ("Client", "LocalCluster", "Scheduler", "Worker", "Nanny", "SchedulerState")
"""Of these not even one stays; of others, as many as after the first: tables of the house."""


@GATES.register("growth of released tasks")
def released_tasks() -> Iterator[Figure]:
    """Each kind of process, with `tracemalloc` on; resident memory is the long day's to look at."""
    run = ours_alone("growing", {"ntasks": NTASKS, "round_tasks": ROUND_TASKS}, GROWING_SECONDS_MAX)
    if not run.finished:
        yield Figure("growth of released tasks", run.outcome, "a figure", passed=False)
        return
    for role, nbytes in run.answers["grown"].items():
        there = beside(f"{role}'s growth")
        yield Figure(
            f"{run.answers['ntasks']:,} released tasks, allocated by the {role}",
            f"{nbytes:.2f} bytes per task{there}",
            f"< {GROWTH_BYTES_MAX:.0f} bytes",
            passed=nbytes < GROWTH_BYTES_MAX,
        )


@GATES.register("clusters leave nothing")
def clusters_leave_nothing() -> Iterator[Figure]:
    """Twenty that were opened, worked with, and closed; on the caller's own objects."""
    for processes in (False, True):
        _live(processes)  # what is made once, at the first, stays on purpose
        before = census()
        for _ in range(NCLUSTERS):
            _live(processes)
        after = census()
        left = after - before
        left.update({name: n for name, n in after.items() if name.rpartition(".")[2] in SERVICES})
        kind = "of processes" if processes else "in this process"
        said = ", ".join(f"{number} {name}" for name, number in left.most_common(5))
        yield Figure(
            f"objects left of {NCLUSTERS} closed clusters {kind}",
            said or "0",
            "0",
            passed=not left,
        )


def census() -> Counter[str]:
    """Objects of this house that are alive: class → how many, once all garbage is gone."""
    for _ in range(3):
        gc.collect()
    kinds = map(type, gc.get_objects())
    return Counter(f"{kind.__module__}.{kind.__qualname__}" for kind in kinds if _is_ours(kind))


def _is_ours(kind: Any) -> bool:
    module = getattr(kind, "__module__", None)
    return isinstance(module, str) and module.partition(".")[0] == HOUSE and inspect.isclass(kind)


def _live(processes: bool) -> None:
    from shoal import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=processes, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        squares = client.map(pow, range(50), [2] * 50, pure=False)
        assert client.submit(sum, squares).result() == sum(n * n for n in range(50))
        client.scatter([1, 2, 3])
