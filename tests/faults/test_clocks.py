"""Wall clocks that somebody sets, in all processes of a cluster."""

import os
from pathlib import Path

from tests.faults.kit.roles import Cast
from tests.faults.kit.tasks import begun
from tests.programs import DROP_IN, ROOT, path_with

JUMPING = """
import itertools, time
plain, plain_ns = time.time, time.time_ns
steps = itertools.cycle([0, 400, -86_400, 86_400])
time.time = lambda: plain() + next(steps)
time.time_ns = lambda: plain_ns() + 10**9 * next(steps)
"""
"""A module that each interpreter imports before all else: each look at the clock is another day."""

TTL_SECONDS = 2.0


def test_a_clock_that_is_set_again_and_again_loses_no_worker_and_ends_no_wait(
    tmp_path: Path,
) -> None:
    modules, stage = tmp_path / "modules", tmp_path / "stage"
    for folder in (modules, stage):
        folder.mkdir()
    (modules / "sitecustomize.py").write_text(JUMPING)
    jumping = {"PYTHONPATH": path_with(modules, DROP_IN, ROOT)}
    with Cast(stage) as cast:
        ttl = {"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": f"{TTL_SECONDS} s"}
        _, address = cast.scheduler(**jumping, **ttl)
        cast.worker(address, **jumping)
        with cast.client(address) as client:
            pids = client.run(os.getpid)
            clocks = client.run(looks_at_the_clock)
            assert all(late - early > 80_000 for early, late in clocks.values())
            long = client.submit(begun, "", 2 * TTL_SECONDS, 5)
            assert long.result(timeout=20) == 5
            assert client.run(os.getpid) == pids
        assert cast.complaints() == []


def looks_at_the_clock() -> tuple[float, float]:
    """The least and the most of some looks."""
    import time

    looks = [time.time() for _ in range(8)]
    return min(looks), max(looks)
