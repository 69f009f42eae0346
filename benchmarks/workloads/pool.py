"""A warm `ProcessPoolExecutor`, and its meter."""

from __future__ import annotations

import os
import time
from concurrent.futures import ProcessPoolExecutor

from benchmarks.processes import Meter


def _whoami(_number: int) -> int:
    time.sleep(0.02)  # long enough that the other process takes the next one
    return os.getpid()


def warm_pool(pool: ProcessPoolExecutor) -> Meter:
    """Start all processes of `pool` and tell who they are."""
    pids = set(pool.map(_whoami, range(8)))
    return Meter(None, {str(pid): pid for pid in sorted(pids)})
