"""The garbage collector of a scheduler's own process: young objects only, and some at a time.

What has grown older is tasks, nearly all of it, which need no collector, and to look at a million
of them would keep everybody waiting for a second.
"""

from __future__ import annotations

import gc
from typing import Final

THRESHOLDS: Final = (25_000, 1_000_000, 1_000_000)
"""How many objects more there are than at the last look, when the interpreter looks by itself.

Where as many old ones go as new ones come, it does not: half a million young ones have been seen.
"""

STEPS_BETWEEN: Final = 256
"""Between two looks: some thousand objects, and some ms, at most."""


def take_over() -> None:
    """From now on the process has the collector of a scheduler; call it in no process of a user."""
    gc.set_threshold(*THRESHOLDS)


class Collecting:
    """Looks through what is young every so many steps, if the process is a scheduler's own."""

    __slots__ = ("_nsteps",)

    def __init__(self) -> None:
        self._nsteps = 0

    def note_step(self) -> None:
        """A step is over.  Cost: 1 us for each young object, now and then."""
        self._nsteps += 1
        if self._nsteps == STEPS_BETWEEN:
            self._nsteps = 0
            if gc.get_threshold()[:2] == THRESHOLDS[:2]:  # Python 3.14 has no third one
                gc.collect(0)
