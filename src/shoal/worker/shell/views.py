"""A worker's state as people look at it: by the keys they know, read-only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from shoal.ids import Key
from shoal.observe.clock import seconds_ahead
from shoal.observe.stimuli import read_stimuli, stimulus_of_run
from shoal.protocol.keys import from_canonical, to_canonical
from shoal.worker.machine.state import WorkerState
from shoal.worker.model.entities import HANDED, LONG_RUNNING, Run

_OF_OLD: Final = {"put here": "receive-from-scatter"}
"""What programs look for in the story, by those words."""

ShownRecord = tuple[object, str, dict[str, str], str, float]
"""Key, what, nothing, stimulus, when (s since the epoch)."""


@dataclass(frozen=True, slots=True)
class TaskView:
    """One task that this worker runs, holds or fetches."""

    key: object
    state: str  # waiting, ready, executing, long-running, memory, fetch or flight
    nbytes: int = 0


class StateView:
    """What the machine knows at this moment.  Made at each look; costs O(what there is)."""

    def __init__(
        self,
        state: WorkerState,
        executing: Iterable[Run],
        actors: Mapping[object, object] | None = None,
        nended: int = 0,
        *,
        validate: bool = False,
    ) -> None:
        """`actors`: the objects themselves, by key; `nended`: runs that have ended."""
        self.validate = validate
        self._nended = nended
        self._state = state
        self.actors = actors or {}
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
            (from_canonical(key), _OF_OLD.get(what, what), {}, stimulus_of_run(run), at + ahead)
            for at, key, what, run in self._state.story
            if key in keys or run in runs
        ]

    @property
    def address(self) -> str:
        """Of the worker."""
        return self._state.settings.address

    @property
    def total_resources(self) -> dict[str, float]:
        """What it offers; what of that is left is known to the scheduler."""
        return dict(self._state.settings.resources)

    @property
    def ready(self) -> set[TaskView]:
        """Tasks that could be executed if they had a slot."""
        return self._in("ready")

    @property
    def executing(self) -> set[TaskView]:
        """Tasks that have a slot just now."""
        return self._in("executing")

    @property
    def executing_count(self) -> int:
        """How many those are."""
        return sum(run.state != LONG_RUNNING for run in self._executing)

    @property
    def executed_count(self) -> int:
        """Runs that have ended here, however they did."""
        return self._nended

    @property
    def in_flight_tasks(self) -> set[TaskView]:
        """Tasks whose results are on their way to here."""
        return self._in("flight")

    @property
    def in_flight_tasks_count(self) -> int:
        """How many those are."""
        return sum(want.in_flight for want in self._state.wants.values())

    @property
    def long_running(self) -> set[TaskView]:
        """Tasks that have seceded."""
        return self._in(LONG_RUNNING)

    def _in(self, state: str) -> set[TaskView]:
        return {view for view in self.tasks.values() if view.state == state}

    def _name(self, run: Run) -> str:
        if run.state == LONG_RUNNING:
            return LONG_RUNNING
        if run in self._executing:
            return "executing"
        return "ready" if run.state == HANDED or run.is_held_back else "waiting"

    def __repr__(self) -> str:
        state = self._state
        return (
            f"<worker state: {len(state.runs)} runs, {len(state.held)} replicas, "
            f"{len(state.wants)} to fetch>"
        )
