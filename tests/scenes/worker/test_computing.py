"""Runs: started in order, answered once, given back if they have not begun."""

from tests.scenes.worker.scene import Scene


def test_a_run_without_inputs_starts_at_once_and_its_result_is_kept(scene: Scene) -> None:
    """x needs nothing."""
    scene.run("x#1")
    assert scene.take() == ["start x#1"]
    assert scene.finish("x#1") == [True]
    assert scene.take() == ["say x#1 finished"]
    assert scene.inventory() == "1: x"
    scene.free("x")
    assert scene.take() == ["drop x"]


def test_what_is_most_urgent_starts_first(scene: Scene) -> None:
    """Of the runs of one frame; then the lowest sequence."""
    scene.run_in_order(("a#1", 0.0, 3), ("b#1", 5.0, 2), ("c#1", 0.0, 1))
    assert scene.take() == ["start b#1 c#1 a#1"]


def test_a_run_that_fails_keeps_nothing(scene: Scene) -> None:
    """x raises."""
    scene.run("x#1")
    scene.fail("x#1")
    assert scene.take() == ["start x#1", "say x#1 failed"]
    assert scene.inventory() == "1: "


def test_a_run_that_waits_is_returned_at_once(scene: Scene) -> None:
    """y waits for x, which nobody else wants: its arrival is for nobody."""
    scene.run("y#1", x="A")
    assert scene.take() == ["ask A for x"]
    scene.recall("y#1")
    assert scene.take() == ["say y#1 returned"]
    assert scene.arrive("A", "x") == ""
    assert scene.take() == []


def test_a_run_that_was_handed_over_is_returned_when_the_threads_give_it_back(
    scene: Scene,
) -> None:
    """x had not begun, y had."""
    scene.run("x#1", "y#1")
    scene.recall("x#1", "y#1")
    assert scene.take() == ["start x#1 y#1", "withdraw x#1 y#1"]
    scene.withdraw("x#1")
    assert scene.take() == ["say x#1 returned"]
    scene.finish("y#1")
    assert scene.take() == ["say y#1 finished"]


def test_a_recall_of_what_has_ended_changes_nothing(scene: Scene) -> None:
    """The answer and the recall crossed."""
    scene.run("x#1")
    scene.finish("x#1")
    scene.take()
    scene.recall("x#1", "z#9")
    assert scene.take() == []


def test_the_same_run_told_twice_starts_once(scene: Scene) -> None:
    """It should not happen; if it does, there is one answer all the same."""
    scene.run("x#1")
    scene.run("x#1")
    assert scene.take() == ["start x#1"]


def test_a_stale_run_answers_with_its_own_number_and_its_result_is_not_mixed_up(
    scene: Scene,
) -> None:
    """x runs twice here, since the first run could not be stopped."""
    scene.run("x#1")
    scene.run("x#2")
    assert scene.take() == ["start x#1", "start x#2"]
    assert scene.finish("x#2") == [True]
    assert scene.finish("x#1") == [False]
    assert scene.take() == ["say x#2 finished", "say x#1 finished"]
    assert scene.inventory() == "1: x"


def test_an_overtaken_run_that_ends_first_keeps_nothing(scene: Scene) -> None:
    """Its task has a newer run, whose result is the one that counts."""
    scene.run("x#1")
    scene.run("x#2")
    assert scene.finish("x#1") == [False]
    assert scene.inventory() == "1: "
    assert scene.finish("x#2") == [True]


def test_each_of_two_runs_of_a_task_can_be_recalled(scene: Scene) -> None:
    """The older one, by its own number."""
    scene.run("x#1")
    scene.run("x#2")
    scene.take()
    scene.recall("x#1")
    assert scene.take() == ["withdraw x#1"]
    scene.withdraw("x#1")
    assert scene.take() == ["say x#1 returned"]


def test_codes_are_passed_on_and_forgotten(scene: Scene) -> None:
    """The shell loads them."""
    scene.define(7)
    scene.forget(7)
    assert scene.take() == ["define 7", "forget 7"]


def test_a_worker_that_is_sent_away_closes(scene: Scene) -> None:
    """Shutdown."""
    scene.shut_down("enough")
    assert scene.take() == ["close: enough"]


def test_the_story_of_a_key_is_told_in_order(scene: Scene) -> None:
    """What happened to x, with the numbers of its runs."""
    scene.run("x#1")
    scene.finish("x#1")
    scene.free("x")
    assert scene.story("x") == [("handed to the threads", 1), ("finished", 1), ("freed", 0)]
