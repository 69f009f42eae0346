"""Whatever happens in whatever order, the books stay in order, all ends, and nothing is left."""

from functools import cache

import pytest

from shoal.scheduler.machine.transitions import DECLARED
from tests.scenes.scheduler.storm import Storm

SEEDS = range(60)
NEVENTS = 150


@cache
def storm(seed: int) -> Storm:
    """A storm, and the calm after it."""
    played = Storm(seed)
    played.blow(NEVENTS)
    played.calm()
    return played


@pytest.mark.parametrize("seed", SEEDS)
def test_after_a_storm_all_that_is_wanted_ends_and_nothing_is_left(seed: int) -> None:
    """The books are looked at after each event; here it is asked what came of it."""
    scene = storm(seed)
    assert scene.unfinished() == []
    assert scene.left_over() == []

    for client in list(scene.actors):
        scene.lose_client(client)
    scene.calm()
    state = scene.machine.state
    assert (state.tasks, state.task_by_id, state.codes, state.unrunnable) == ({}, {}, {}, {})
    assert scene.left_over() == []
    assert [worker for worker in state.workers.values() if worker.leftovers] == []


def test_every_declared_transition_happens() -> None:
    """One that never does would be a claim without a proof, or a branch without a use."""
    seen: dict[tuple[str, str], None] = {}
    for seed in SEEDS:
        seen.update(storm(seed).seen)
    assert DECLARED - seen.keys() == frozenset()
