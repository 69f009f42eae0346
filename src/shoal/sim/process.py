"""What a simulated worker's process has of memory, whatever its machine believes."""

from collections.abc import Mapping
from random import Random
from typing import Final

from shoal.ids import TaskId
from shoal.sim.footprints import Memory
from shoal.sim.specs import Value
from shoal.sim.world import World

FREE_BYTES_MAX: Final = 24 << 20
"""So much of what runs have taken does the C library keep, until it is asked to give it back."""

OTHER_BYTES: Final = (0, 0, 1 << 20, 2 << 20)
"""What libraries take for a moment, so that no two looks find the same."""

SLOW_SECONDS: Final = (0.0, 0.0, 0.0, 4.0)
"""For so much longer a peer may be about to receive what was sent to it."""


class Process:
    """Of one worker."""

    def __init__(
        self, world: World, dice: Random, store: Mapping[TaskId, Value], memory: Memory
    ) -> None:
        self._world = world
        self._dice = dice
        self._store = store
        self._memory = memory
        self.coming: dict[object, int] = {}  # fetches and reads that go on, and of how many bytes
        self.freeing_bytes = 0  # of values that have left the store, and are still there
        self._free_bytes = 0
        self._sending: dict[TaskId, tuple[int, float]] = {}  # of how many bytes, until when
        self._peak_bytes = 0

    @property
    def managed_bytes(self) -> int:
        """Of results in memory."""
        return sum([value.nbytes for value in self._store.values()])

    @property
    def is_sending(self) -> bool:
        """Whether values that the store has no more are on their way to others."""
        return self._sent_bytes() > 0

    def now_bytes(self) -> int:
        """All that there is.  Of what is coming, half is taken to be there."""
        there = self.managed_bytes + self._memory.grown_bytes + self._free_bytes
        coming = sum(self.coming.values()) // 2
        other = self._dice.choice(OTHER_BYTES)
        now = there + self.freeing_bytes + coming + self._sent_bytes() + other
        self._peak_bytes = max(self._peak_bytes, now)
        return now

    def peak_bytes(self) -> int:
        """The most that there was since the last call, as far as it was looked at."""
        now = self.now_bytes()
        peak, self._peak_bytes = self._peak_bytes, now
        return peak

    def sends(self, nbytes: Mapping[TaskId, int], until: float) -> None:
        """Values are on their way to others."""
        until += self._dice.choice(SLOW_SECONDS)
        self._sending.update({task: (each, until) for task, each in nbytes.items()})

    def shrunk(self, nbytes: int) -> None:
        """A run has let go of so much."""
        self._free_bytes = min(FREE_BYTES_MAX, self._free_bytes + nbytes // 2)

    def give_back(self) -> None:
        """What is free."""
        self._free_bytes = 0

    def _sent_bytes(self) -> int:
        now = self._world.now
        self._sending = {task: sent for task, sent in self._sending.items() if sent[1] > now}
        return sum(
            [nbytes for task, (nbytes, _) in self._sending.items() if task not in self._store]
        )
