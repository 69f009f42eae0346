"""Runs that wait for other tasks in their midst: who goes on when one of those has ended."""

from collections.abc import Callable, Mapping
from typing import Final

from shoal.ids import Key
from shoal.sim.oracle import Instance
from shoal.sim.specs import TaskSpec
from shoal.sim.world import World

AWAIT_SECONDS_MAX: Final = 15.0
"""A run does not wait longer, as what it waits for may have failed, or have been let go of.

More than its worker takes to let in what waits for room while all stands still.
"""

IN_VAIN_MAX: Final = 3
"""Once so many have waited in vain nobody waits any more: else there is no end for minutes."""


class Awaited:
    """All that is waited for in one run of the simulator."""

    def __init__(self, world: World, known: Callable[[], Mapping[Key, Instance]]) -> None:
        """`known`: what must be computed, by key."""
        self._world = world
        self._known = known
        self._waiting: dict[Key, list[Callable[[], None]]] = {}
        self._in_vain: dict[str, None] = {}  # labels of runs that have waited in vain

    def wait(self, spec: TaskSpec, go_on: Callable[[], None]) -> None:
        """`go_on` is called once as the task has been computed, or in the end all the same."""
        assert spec.awaits is not None
        instance = self._known().get(spec.awaits)
        is_vain = spec.label in self._in_vain or len(self._in_vain) >= IN_VAIN_MAX
        if instance is None or instance.nmade or is_vain:
            self._world.after(0.0, go_on)
            return
        is_over = False

        def once() -> None:
            nonlocal is_over
            if not is_over:
                is_over = True
                go_on()

        def give_up() -> None:
            if not is_over:
                self._in_vain[spec.label] = None
                once()

        self._waiting.setdefault(spec.awaits, []).append(once)
        self._world.after(AWAIT_SECONDS_MAX, give_up, background=True)

    def computed(self, key: Key) -> None:
        """A run of the task has ended well somewhere."""
        for once in self._waiting.pop(key, ()):
            self._world.after(0.0, once)
