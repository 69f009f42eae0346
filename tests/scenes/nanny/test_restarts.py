"""When a nanny starts its worker again, how soon, and when it stops."""

from dataclasses import replace

import pytest

from shoal.nanny.machine import WorkerLeft, meaning_of
from shoal.observe.reasons import (
    INTERNAL_ERROR,
    LIFETIME,
    RECYCLED,
    RESTARTED,
    TERMINATED,
    TOO_SILENT,
)
from tests.scenes.nanny.scene import SETTINGS, Scene


def running(scene: Scene) -> None:
    """The worker was asked for, and is there."""
    scene.start()
    assert scene.take() == ["start"]
    scene.ready()
    assert scene.take() == []


def test_a_worker_that_dies_is_replaced_at_once(scene):
    running(scene)
    scene.die()
    assert scene.take() == ["start"]
    scene.ready()
    assert scene.take() == []


def test_deaths_in_a_row_are_answered_ever_later_up_to_a_limit(scene):
    """The pauses double from 1 s on, and none is longer than 3 s."""
    running(scene)
    scene.die()
    assert scene.take() == ["start"]
    for seconds in (1, 2, 3, 3):
        scene.die()
        assert scene.take() == [f"wake after {seconds}"]
        scene.wait(seconds)
        scene.wake()
        assert scene.take() == ["start"]
        scene.ready()


def test_the_sixth_death_in_a_row_is_the_last_and_all_causes_are_told(scene):
    """Some die as they start, some right after: both count."""
    running(scene)
    for number in range(1, 6):
        scene.die(f"cause {number}")
        scene.wait(3)
        scene.wake()
        if number % 2:
            scene.ready()
    scene.take()
    scene.die("cause 6")
    assert scene.take() == [
        "give up: cause 1, cause 2, cause 3, cause 4, cause 5, cause 6",
    ]
    scene.wait(100)
    scene.wake()
    scene.die()
    scene.ready()
    assert scene.take() == []


def test_a_worker_that_has_lived_long_is_replaced_at_once_however_many_died_before(scene):
    running(scene)
    for _ in range(20):
        scene.wait(10)
        scene.die()
        assert scene.take() == ["start"]
        scene.ready()


def test_only_its_life_counts_and_not_how_long_it_took_to_start(scene):
    running(scene)
    scene.die()
    assert scene.take() == ["start"]
    scene.wait(100)
    scene.ready()
    scene.wait(9.9)
    scene.die()
    assert scene.take() == ["wake after 1"]


def test_whoever_asked_for_a_start_is_told_at_once_that_it_failed(scene):
    scene.start()
    scene.take()
    scene.die("no such module")
    assert scene.take() == ["give up: no such module"]


def test_one_that_was_given_up_may_be_asked_for_again_and_what_was_is_forgotten(scene):
    scene.start()
    scene.die()
    scene.take()
    running(scene)
    scene.die()
    assert scene.take() == ["start"]


def test_asking_for_what_is_there_or_coming_changes_nothing(scene):
    scene.start()
    scene.start()
    assert scene.take() == ["start"]
    scene.ready()
    scene.start()
    assert scene.take() == []
    scene.die()
    scene.start()
    assert scene.take() == ["start"]


def test_asking_during_a_pause_ends_the_pause(scene):
    """The timer of the pause rings all the same, and starts no second process."""
    running(scene)
    scene.die()
    scene.die()
    assert scene.take() == ["start", "wake after 1"]
    scene.start()
    assert scene.take() == ["start"]
    scene.wait(1)
    scene.wake()
    assert scene.take() == []


@pytest.mark.parametrize("moment", ["starting", "running", "pausing", "restarting"])
def test_a_worker_that_nobody_wants_any_more_is_not_replaced(scene, moment):
    scene.start()
    if moment != "starting":
        scene.ready()
    if moment in ("pausing", "restarting"):
        scene.die()
    if moment == "pausing":
        scene.die()
    scene.take()
    scene.close()
    scene.die("we closed it")
    scene.ready()
    scene.wait(5)
    scene.wake()
    scene.leave()
    assert scene.take() == []


def test_a_worker_that_leaves_in_good_order_is_not_replaced(scene):
    running(scene)
    scene.leave("retired")
    assert scene.take() == ["end: retired"]
    scene.die()
    scene.wake()
    assert scene.take() == []


def test_a_worker_whose_time_is_over_is_replaced_if_that_was_agreed(scene):
    running(scene)
    scene.wait(60)
    scene.leave("lifetime", again=True)
    assert scene.take() == ["start"]


def test_a_timer_that_rings_too_early_is_set_again(scene):
    running(scene)
    scene.die()
    scene.die()
    scene.take()
    scene.wait(0.75)
    scene.wake()
    assert scene.take() == ["wake after 0.25"]
    scene.wait(0.25)
    scene.wake()
    assert scene.take() == ["start"]


def test_pauses_stay_finite_however_many_deaths_are_allowed():
    scene = Scene(replace(SETTINGS, deaths_max=5000))
    running(scene)
    scene.die()
    for _ in range(4000):
        scene.die()
        scene.wait(3)
        scene.wake()
    scene.take()
    scene.die()
    assert scene.take() == ["wake after 3"]


def test_one_that_has_finished_tasks_is_no_part_of_a_crash_loop(scene):
    """It is replaced ever later all the same, so that it costs little."""
    scene.start()
    for _ in range(20):
        scene.live_and_die(1, has_worked=True)
    done = scene.take()
    assert done[-2:] == ["wake after 3", "start"]
    assert not [line for line in done if line.startswith("give up")]
    assert scene.machine.row == (0, 0)
    for _ in range(6):
        scene.live_and_die(1)
    assert scene.take()[-1] == f"give up: {', '.join(['SIGKILL'] * 6)}"


def test_deaths_by_the_memory_limit_come_to_an_end_whatever_was_finished_in_between(scene):
    scene.start()
    scene.live_and_die(1)
    for number in range(1, 4):
        scene.live_and_die(50, has_worked=True, by_memory_limit=True)
        assert scene.machine.row == (number, 4)
    scene.take()
    scene.live_and_die(50, has_worked=True, by_memory_limit=True)
    assert scene.take() == ["give up for its memory: memory, memory, memory, memory"]


@pytest.mark.parametrize("by_memory_limit", [True, False])
def test_a_row_of_memory_deaths_ends_with_one_that_lived_long_or_died_of_something_else(
    scene, by_memory_limit
):
    scene.start()
    for _ in range(5):
        for _ in range(3):
            scene.live_and_die(1, has_worked=True, by_memory_limit=True)
        scene.live_and_die(100, by_memory_limit=by_memory_limit)
    assert not [line for line in scene.take() if line.startswith("give up")]


def test_what_can_not_even_live_in_its_memory_is_given_up_for_that():
    """Though it never did anything, either."""
    scene = Scene(replace(SETTINGS, deaths_max=3, memory_deaths_max=5))
    scene.start()
    for _ in range(3):
        scene.live_and_die(0, by_memory_limit=True)
    assert scene.take()[-1] == "give up for its memory: memory, memory, memory"


def test_one_that_is_to_be_replaced_is_so_at_once_however_often(scene):
    """Somebody has asked for that, so it is no death in a row."""
    scene.start()
    scene.take()
    for _ in range(10):
        scene.ready()
        scene.leave("restarted", again=True, by_request=True)
        assert scene.take() == ["start"]
    assert scene.machine.ndeaths == 0


def test_one_that_shall_close_is_not_replaced_though_it_was_to_be(scene):
    scene.start()
    scene.ready()
    scene.close()
    scene.take()
    scene.leave("restarted", again=True, by_request=True)
    assert scene.take() == []


@pytest.mark.parametrize("why", [TERMINATED, f"{TOO_SILENT} for 300 s", f"{INTERNAL_ERROR}: no"])
def test_a_worker_that_had_to_close_has_died(why: str) -> None:
    assert meaning_of(why, has_heirs=True) is None


@pytest.mark.parametrize("why", [RESTARTED, f"{RECYCLED}: 900 MiB of 1 GiB"])
def test_a_worker_that_was_sent_away_for_another_to_come_has_not_died(why: str) -> None:
    assert meaning_of(why, has_heirs=False) == WorkerLeft(why, again=True, by_request=True)


@pytest.mark.parametrize("has_heirs", [True, False])
def test_after_a_lifetime_another_comes_if_that_is_wanted(has_heirs: bool) -> None:
    assert meaning_of(LIFETIME, has_heirs=has_heirs) == WorkerLeft(LIFETIME, again=has_heirs)
    assert meaning_of("a client closed it", has_heirs=has_heirs) == WorkerLeft("a client closed it")
