"""Fixtures: a worker's machine by its old names, with nobody around it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from shoal.compat.worker_states.state import WorkerState
from shoal.compat.worker_states.stimuli import ComputeTaskEvent, SecedeEvent


@pytest.fixture(name="ws")
def worker_state() -> Iterator[WorkerState]:
    """A machine that knows no task; it is checked once more at the end."""
    state = WorkerState(address="127.0.0.1:1")
    yield state
    state.validate_state()


@pytest.fixture(name="ws_with_running_task", params=["executing", "long-running"])
def worker_state_with_running_task(request: Any) -> WorkerState:
    """The same with a task `x` that has begun, and has all there is of `R`."""
    state: WorkerState = request.getfixturevalue("ws")
    state.available_resources = {"R": 1}
    state.total_resources = {"R": 1}
    state.handle_stimulus(
        ComputeTaskEvent.dummy("x", resource_restrictions={"R": 1}, stimulus_id="compute")
    )
    if request.param == "long-running":
        state.handle_stimulus(SecedeEvent("secede", "x", 1.0))
    assert state.tasks["x"].state == request.param
    return state
