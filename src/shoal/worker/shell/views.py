"""A worker's state as people look at it: by the keys they know, read-only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from shoal.ids import Key
from shoal.observe.clock import seconds_ahead
from shoal.observe.stimuli import read_stimuli, stimulus_of_run
from shoal.protocol.keys import from_canonical, to_canonical
from shoal.worker.machine.state import WorkerState
from shoal.worker.model.entities import HANDED, Run

ShownRecord = tuple[object, str, dict[str, str], str, float]
"""Key, what, nothing, stimulus, when (s since the epoch)."""


@dataclass(frozen=True, slots=True)
class TaskView:
    """One task that this worker runs, holds or fetches."""

    key: object
    state: str  # waiting, ready, executing, memory, fetch or flight
    nbytes: int = 0


class StateView:
    """What the machine knows at this moment.  Made at each look; costs O(what there is)."""

    def __init__(self, state: WorkerState, executing: Iterable[Run]) -> None:
        self._state = state
        self._executing = frozenset(executing)

    @property
    def nthreads(self) -> int:
        """How many tasks are run at once."""
        return self._state.settings.nthreads

    @property
    def tasks(self) -> dict[object, TaskView]:
        """All tasks by key; one that is run and held as well counts as run."""
        state = self._state
        found = [(r.key, "memory", r.nbytes) for r in state.held.values() if not r.freed]
        found += [
            (want.key, "flight" if want.in_flight else "fetch", want.nbytes)
            for want in state.wants.values()
        ]
        found += [(run.key, self._name(run), 0) for run in state.runs.values()]
        views = [TaskView(from_canonical(Key(key)), name, nbytes) for key, name, nbytes in found]
        return {view.key: view for view in views}

    def story(self, *keys_or_stimuli: object) -> list[ShownRecord]:
        """What was recorded of these keys, tasks or stimuli, oldest first.  Cost: O(records)."""
        words = [getattr(asked, "key", asked) for asked in keys_or_stimuli]
        keys, runs = frozenset(map(to_canonical, words)), read_stimuli(words).runs
        ahead = seconds_ahead()
        return [
            (from_canonical(key), what, {}, stimulus_of_run(run), at + ahead)
            for at, key, what, run in self._state.story
            if key in keys or run in runs
        ]

    def _name(self, run: Run) -> str:
        if run in self._executing:
            return "executing"
        return "ready" if run.state == HANDED else "waiting"

    def __repr__(self) -> str:
        state = self._state
        return (
            f"<worker state: {len(state.runs)} runs, {len(state.held)} replicas, "
            f"{len(state.wants)} to fetch>"
        )
