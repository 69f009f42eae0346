"""What makes seconds of this process's monotonic clock seconds since the epoch, for display."""

from __future__ import annotations

import time
from functools import cache


@cache
def seconds_ahead() -> float:
    """To be added to monotonic seconds.

    The same at each look, so that what happened once has one instant; clocks that are set later
    are not followed.
    """
    return time.time() - time.monotonic()
