"""Runs that nobody wants: what has not begun goes back, what has is ended if it has a timeout."""

from tests.scenes.worker.scene import Scene


def test_a_run_with_a_timeout_is_ended_once_nobody_wants_it(scene: Scene) -> None:
    """The threads know which of the two it is: it has begun or it has not."""
    scene.run_within("x#1", 5.0)
    scene.take()
    scene.recall("x#1", unwanted=True)
    assert scene.take() == ["withdraw x#1", "end x#1"]
    scene.withdraw("x#1")
    assert scene.take() == ["say x#1 returned"]
    assert scene.inventory() == "1: "


def test_a_run_without_a_timeout_goes_on_and_so_does_one_that_is_wanted(scene: Scene) -> None:
    scene.run("x#1")
    scene.run_within("y#1", 5.0)
    scene.take()
    scene.recall("x#1", unwanted=True)
    scene.recall("y#1")
    assert scene.take() == ["withdraw x#1", "withdraw y#1"]


def test_a_run_that_has_seceded_is_ended_as_well(scene: Scene) -> None:
    scene.run_within("x#1", 5.0)
    scene.secede("x#1")
    scene.take()
    scene.recall("x#1")
    assert scene.take() == []
    scene.recall("x#1", unwanted=True)
    assert scene.take() == ["end x#1"]


def test_what_waits_for_its_inputs_is_given_back_and_nothing_is_to_be_ended(scene: Scene) -> None:
    scene.pause()
    scene.run_within("x#1", 5.0)
    scene.take()
    scene.recall("x#1", unwanted=True)
    assert scene.take() == ["say x#1 returned"]
