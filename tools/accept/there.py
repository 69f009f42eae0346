"""What was measured of `distributed` 2026.8.0 where ours is not measured beside it in the same run.

Five runs or fewer each, on two cores: they say what to compare with, and are no verdict.
"""

from typing import Final

THERE: Final = {
    "only holder": "42 / 74 ms",
    "while computing": "43 / 98 ms",
    "is frozen": "more than 55 s",
    "is cut off": "29.6 s",
    "does not answer a peer": "more than 100 s",
    "kill storms": "3 of 5 hung",
    "scheduler": "none, as workers end",
    "spoilt": "7 of 7 wrong, truncated or deleted 7 of 7 failed",
    "scheduler's growth": "117 bytes",
    "worker's growth": "145 bytes",
    "client's growth": "407 bytes",
}


def beside(what: str) -> str:
    """In brackets, for the end of a figure; "" where nothing was measured."""
    return f" (distributed: {THERE[what]})" if what in THERE else ""
