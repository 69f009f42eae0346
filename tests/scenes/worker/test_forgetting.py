"""Letting go: never under a run's feet, and never to anybody's surprise."""

from tests.scenes.worker.scene import Scene


def test_a_freed_replica_goes_with_the_last_run_that_uses_it(scene: Scene) -> None:
    """y and z use x; it is dead for peers as soon as it is freed."""
    scene.put("x")
    scene.run("y#1", x=None)
    scene.run("z#1", x=None)
    scene.take()
    assert scene.holds("x")
    scene.free("x")
    assert not scene.holds("x")
    assert scene.inventory() == "1: "
    scene.finish("y#1")
    assert scene.take() == ["say y#1 finished"]
    scene.finish("z#1")
    assert scene.take() == ["drop x", "say z#1 finished"]


def test_a_freed_replica_that_is_asked_for_again_is_reported_again(scene: Scene) -> None:
    """w would have to fetch x, but y still has it here."""
    scene.put("x")
    scene.run("y#1", x=None)
    scene.free("x")
    scene.take()
    scene.run("w#1", x="A")
    assert scene.take() == ["start w#1", "say added x"]
    scene.finish("y#1", "w#1")
    assert scene.inventory() == "1: x y w"


def test_a_freed_replica_that_a_run_says_is_held_is_held_again(scene: Scene) -> None:
    """The scheduler counts on it, so it is not dropped when y ends."""
    scene.put("x")
    scene.run("y#1", x=None)
    scene.free("x")
    scene.run("w#1", x=None)
    scene.finish("y#1", "w#1")
    scene.take()
    assert scene.inventory() == "1: x y w"


def test_what_is_freed_under_way_is_kept_for_its_runs_only(scene: Scene) -> None:
    """y waits for x, which is freed before it comes."""
    scene.run("y#1", x="A")
    scene.free("x")
    assert scene.arrive("A", "x") == "x"
    assert scene.take() == ["ask A for x", "start y#1"]
    scene.finish("y#1")
    assert scene.take() == ["drop x", "say y#1 finished"]


def test_a_copy_that_is_freed_under_way_is_not_kept(scene: Scene) -> None:
    """Nobody waits for it any more."""
    scene.acquire(x="A")
    scene.free("x")
    assert scene.arrive("A", "x") == ""
    assert scene.take() == ["ask A for x"]


def test_a_result_computed_as_its_old_copy_goes_stays(scene: Scene) -> None:
    """One batch ends the last use of freed x, and a new run of x."""
    scene.put("x")
    scene.run("y#1", x=None)
    scene.free("x")
    scene.run("x#3")
    scene.take()
    assert scene.finish("y#1", "x#3") == [True, True]
    assert scene.take() == ["say y#1 finished", "say x#3 finished"]
    assert scene.inventory() == "1: y x"


def test_freeing_what_is_not_here_changes_nothing(scene: Scene) -> None:
    """It may have been dropped for another reason."""
    scene.free("x")
    assert scene.take() == []


def test_a_lost_scheduler_takes_with_it_what_has_not_begun_and_no_results(scene: Scene) -> None:
    """x is held, y executes, z had not begun, w waits for input, v was being acquired."""
    scene.put("x")
    scene.run("y#1", "z#1")
    scene.run("w#1", a="A")
    scene.acquire(v="B")
    scene.take()
    scene.lose_scheduler()
    assert scene.take() == ["withdraw y#1 z#1"]
    scene.withdraw("z#1")
    assert scene.finish("y#1") == [True]
    assert scene.arrive("A", "a") == ""
    assert scene.arrive("B", "v") == ""
    assert scene.take() == []
    assert scene.inventory() == "1: x y"


def test_results_outlive_a_broken_connection_to_the_same_scheduler(scene: Scene) -> None:
    """They are in the inventory, and used as before."""
    scene.put("x")
    scene.lose_scheduler()
    scene.welcome(epoch=1)
    scene.take()
    scene.run("y#9", x=None)
    assert scene.take() == ["start y#9"]


def test_what_was_put_while_the_scheduler_was_away_is_told_when_it_is_back(scene: Scene) -> None:
    """The inventory was sent, then a client put x, then the welcome came."""
    scene.lose_scheduler()
    assert scene.inventory() == "1: "
    scene.put("x")
    assert scene.take() == []
    scene.welcome(epoch=1)
    assert scene.take() == ["say added x"]


def test_another_epoch_makes_all_numbers_void(scene: Scene) -> None:
    """A run of before ends under a number of its own: the task of now is not touched."""
    scene.put("x")
    scene.define(3)
    scene.run("y#1", x=None)
    scene.run("w#1", a="A")
    scene.take()
    scene.lose_scheduler()
    scene.welcome(epoch=2)
    assert scene.take() == ["withdraw y#1", "forget 3", "renumber x to -2 run y to -1"]
    scene.put("y")
    assert scene.finish("y#1") == [True]
    assert scene.arrive("A", "a") == ""
    assert scene.take() == ["say added y", "say orphan y finished"]
    assert scene.inventory() == "2: x y y"


def test_a_worker_that_leaves_says_so_while_somebody_listens(scene: Scene) -> None:
    """Once with, once without a scheduler."""
    scene.leave("retired")
    assert scene.take() == ["say leaving: retired"]
    scene.lose_scheduler()
    scene.leave("retired")
    assert scene.take() == []


def test_a_worker_that_leaves_gives_back_what_has_not_begun(scene: Scene) -> None:
    """A thread executes x, and y was handed to it as well; z waits for an input."""
    scene.run("x#1", "y#2")
    scene.run("z#3", w="A")
    assert scene.take() == ["start x#1 y#2", "ask A for w"]
    scene.leave("retired")
    assert scene.take() == ["withdraw x#1 y#2", "say leaving: retired", "say z#3 returned"]
    scene.withdraw("y#2")
    assert scene.take() == ["say y#2 returned"]
    scene.finish("x#1")
    assert scene.take() == ["say x#1 finished"]
