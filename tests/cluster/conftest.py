"""The two faces and the two topologies, for tests of whole clusters."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.cluster.faces import FACES, Scenario

SMALL = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}


@pytest.fixture(params=sorted(FACES))
def play(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Plays a scenario with a client of a cluster in this process."""
    return partial(FACES[request.param], processes=False, **SMALL)


@pytest.fixture(params=sorted(FACES))
def play_in_processes(request: pytest.FixtureRequest) -> Callable[[Scenario], Any]:
    """Plays a scenario with a client of a cluster of processes."""
    return partial(FACES[request.param], processes=True, **SMALL)
