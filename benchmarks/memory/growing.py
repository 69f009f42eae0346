"""A million tasks, submitted, gathered and dropped: what Python says that it still has of them."""

from __future__ import annotations

import gc
import time
import tracemalloc
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.memory.programs import Found, Ground

WARM_UP_ROUNDS = 4
"""As many before the first count: what is allocated once is not what grows."""

RELEASED_SECONDS_MAX = 30.0
LOOK_SECONDS = 0.05
"""Futures that were dropped are let go of a moment later, all that come together at once."""


def growing(ground: Ground, ntasks: int, round_tasks: int) -> Found:
    """Bytes that each kind of process has gained for each task, as `tracemalloc` counts them."""
    with ground.client(1, 2, 0) as client:
        _everywhere(client, _trace)
        for _ in range(WARM_UP_ROUNDS):
            _round(client, round_tasks)
        before = _everywhere(client, traced_bytes)
        started_at = time.monotonic()
        nsubmitted = 0
        while nsubmitted < ntasks:
            _round(client, round_tasks)
            nsubmitted += round_tasks
        seconds = time.monotonic() - started_at
        after = _everywhere(client, traced_bytes)
        yield {
            "grown": {role: (after[role] - then) / nsubmitted for role, then in before.items()},
            "ntasks": nsubmitted,
            "compute_seconds": seconds,
        }


def _trace() -> None:
    import tracemalloc

    tracemalloc.start()


def traced_bytes() -> int:
    """What Python's allocators have given out in this process, and not taken back."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def _everywhere(client: Any, function: Any) -> dict[str, Any]:
    """What each process answers, once the scheduler has heard that all futures were dropped."""
    deadline = time.monotonic() + RELEASED_SECONDS_MAX
    while client.run_on_scheduler(_ntasks) and time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)
    found = {"client": function(), "scheduler": client.run_on_scheduler(function)}
    [found["worker"]] = client.run(function).values()
    return found


def _ntasks(dask_scheduler: Any) -> int:
    return len(dask_scheduler.tasks)


def _round(client: Any, ntasks: int) -> None:
    futures = client.map(abs, range(ntasks), pure=False)
    assert client.gather(futures) == list(range(ntasks))
