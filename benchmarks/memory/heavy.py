"""Tasks that each take most of a worker, and say so nowhere."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.memory.programs import Found, Ground

STEP_BYTES = 64 << 20
STEP_SECONDS = 0.02


def take(number: int, nbytes: int, hold_seconds: float) -> int:
    """Grow to `nbytes` step by step, as reading a file would; hold them; give `number`."""
    import numpy as np

    held = []
    for _ in range(nbytes // STEP_BYTES):
        held.append(np.ones(STEP_BYTES, "u1"))
        time.sleep(STEP_SECONDS)
    time.sleep(hold_seconds)
    return number


def heavy(ground: Ground, ntasks: int, nbytes: int, limit: str, threads: int) -> Found:
    """How many of them gave their result."""
    with ground.client(2, threads, limit) as client:
        started_at = time.monotonic()
        futures = client.map(take, range(ntasks), nbytes=nbytes, hold_seconds=0.5, pure=False)
        ended = {}
        for number, future in enumerate(futures):
            error = future.exception()
            ended[number] = "" if error is None else f"{type(error).__name__}: {str(error)[:200]}"
        yield {
            "compute_seconds": time.monotonic() - started_at,
            "nfinished": sum(not error for error in ended.values()),
            "right": all(
                future.result() == number
                for number, future in enumerate(futures)
                if not ended[number]
            ),
            "errors": sorted({error for error in ended.values() if error})[:3],
        }
