"""Collections that are measured are right, and so is the gauge that watches the loop meanwhile."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import dask
import pytest

from benchmarks.errors import WrongResult
from benchmarks.workloads import collections_arrays as arrays
from benchmarks.workloads import collections_frames as frames
from benchmarks.workloads import collections_objects as objects
from benchmarks.workloads.collections import COLLECTIONS, PREFIX, Case
from benchmarks.workloads.gauge import TICK_SECONDS, Longest, read_gauge, start_gauge


@pytest.mark.parametrize("workload", COLLECTIONS, ids=lambda workload: str(workload.name))
def test_a_collection_is_what_numpy_or_pandas_make_of_it(workload: Any) -> None:
    """Without any cluster: joblib's backend needs one, and is tried where there is one."""
    name = workload.name.removeprefix(PREFIX)
    module = next(found for found in (arrays, frames, objects) if hasattr(found, name))
    case = getattr(module, name)(workload.quick)
    if name == "joblib":
        assert case.expected()[:4] == [1, 1, 2, 6]
        return
    with dask.config.set({"scheduler": "synchronous", "dataframe.shuffle.method": "tasks"}):
        case.check(name, case.compute())


def test_a_collection_with_another_value_is_a_failure() -> None:
    case = Case(lambda: 3, lambda: 4)
    with pytest.raises(WrongResult, match="got 3, plain Python gives 4"):
        case.check("sum", case.compute())


def test_a_gauge_notes_the_longest_that_a_loop_was_busy() -> None:
    async def work() -> Longest:
        start_gauge()
        await asyncio.sleep(2 * TICK_SECONDS)
        until = time.thread_time() + 0.03
        while time.thread_time() < until:
            sum(range(100))
        await asyncio.sleep(2 * TICK_SECONDS)
        return read_gauge()

    longest = asyncio.run(work())
    assert 0.03 - TICK_SECONDS < longest.busy_seconds <= longest.late_seconds + TICK_SECONDS


def test_a_gauge_of_an_idle_loop_sees_no_work() -> None:
    async def wait() -> Longest:
        start_gauge()
        await asyncio.sleep(5 * TICK_SECONDS)
        return read_gauge()

    assert asyncio.run(wait()).busy_seconds < 0.02
