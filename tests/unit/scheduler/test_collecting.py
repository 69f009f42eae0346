"""Young objects are looked through some at a time, in a process that is a scheduler's own."""

import gc
from collections.abc import Iterator

import pytest

from shoal.scheduler.shell.collecting import STEPS_BETWEEN, Collecting, take_over


@pytest.fixture
def thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def nyoung_after(nsteps: int) -> int:
    gc.collect(0)
    kept = [[] for _ in range(5000)]
    collecting = Collecting()
    for _ in range(nsteps):
        collecting.note_step()
    young = len(gc.get_objects(generation=0))
    assert len(kept) == 5000
    return young


def test_what_is_young_is_looked_through_every_so_many_steps(thresholds: None) -> None:
    take_over()
    assert nyoung_after(STEPS_BETWEEN - 1) > 5000
    assert nyoung_after(STEPS_BETWEEN) < 1000


def test_the_collector_of_a_users_process_is_left_alone(thresholds: None) -> None:
    gc.set_threshold(100_000, 10, 10)
    assert nyoung_after(STEPS_BETWEEN) > 5000
