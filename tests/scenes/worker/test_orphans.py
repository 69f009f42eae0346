"""What outlives the scheduler that it was for: known by key, until it has a number again."""

from shoal.ids import Epoch, Key
from shoal.protocol.messages import FreeReplicas, WorkerWelcome
from shoal.protocol.orphans import AdoptReplicas
from tests.scenes.worker.scene import Scene, number_of


def lose_and_find_another(scene: Scene, epoch: int = 2) -> list[str]:
    """The scheduler is lost; what the worker says and does until another has let it in."""
    scene.lose_scheduler()
    scene.take()
    scene.welcome(epoch=epoch)
    return scene.take()


def test_results_outlive_the_scheduler_under_numbers_of_the_workers_own(scene: Scene) -> None:
    """In the inventory they are by key; the same numbers may mean others from then on."""
    scene.put("x", "y")
    assert lose_and_find_another(scene) == ["renumber x to -1 y to -2"]
    assert scene.inventory() == "2: x y"
    assert not scene.holds("x")
    scene.put("x")
    assert scene.take() == ["say added x"]
    assert scene.inventory() == "2: x y x"


def test_a_result_that_is_adopted_is_used_under_its_new_number(scene: Scene) -> None:
    """x is task z now."""
    scene.put("x")
    lose_and_find_another(scene)
    scene.adopt(x="z")
    assert scene.take() == ["renumber -1 to z", "say adopted x 10"]
    assert scene.holds("z")
    scene.run("y#1", z=None)
    assert scene.take() == ["start y#1"]
    scene.finish("y#1")
    scene.free("z")
    assert scene.take() == ["say y#1 finished", "drop z"]


def test_what_is_not_here_can_not_be_adopted(scene: Scene) -> None:
    scene.adopt(x="z")
    assert scene.take() == ["say orphans gone: x"]


def test_what_nobody_asks_for_is_dropped(scene: Scene) -> None:
    scene.put("x", "y")
    lose_and_find_another(scene)
    scene.free_orphans("x", "never heard of")
    assert scene.take() == ["drop -1"]
    assert scene.inventory() == "2: y"


def test_a_run_goes_on_and_its_result_is_offered_by_key(scene: Scene) -> None:
    """It had begun; the other had not, and is nobody's."""
    scene.begun = {"x#1"}
    scene.run("x#1")
    scene.run("w#2", a="A")
    assert lose_and_find_another(scene) == ["renumber run x to -1"]
    assert scene.inventory() == "2: ; runs x"
    assert scene.finish("x#1") == [True]
    assert scene.take() == ["say orphan x finished"]
    assert scene.inventory() == "2: x"
    scene.adopt(x="z")
    assert scene.take() == ["renumber -1 to z", "say adopted x 10"]


def test_a_run_that_fails_is_said_to_be_gone(scene: Scene) -> None:
    scene.run("x#1")
    lose_and_find_another(scene)
    scene.fail("x#1")
    assert scene.take() == ["say orphans gone: x"]


def test_a_run_that_nobody_wants_keeps_nothing(scene: Scene) -> None:
    scene.run("x#1")
    lose_and_find_another(scene)
    scene.free_orphans("x")
    assert scene.finish("x#1") == [False]
    assert scene.take() == []
    assert scene.inventory() == "2: "


def test_a_run_that_ends_while_there_is_no_scheduler_is_in_the_inventory(scene: Scene) -> None:
    """Of the scheduler that was lost, if that is the one that is found."""
    scene.run("x#1")
    scene.lose_scheduler()
    assert scene.inventory() == "1: ; runs x"
    assert scene.finish("x#1") == [True]
    assert scene.inventory() == "1: x"
    scene.take()
    scene.welcome(epoch=1)
    assert scene.take() == ["say added x"]
    assert scene.holds("x")


def test_a_run_that_ends_once_the_same_scheduler_is_back_keeps_nothing(scene: Scene) -> None:
    """It has the task run elsewhere."""
    scene.run("x#1")
    scene.lose_scheduler()
    scene.welcome(epoch=1)
    scene.take()
    assert scene.finish("x#1") == [False]
    assert scene.take() == []


def test_what_ended_between_the_question_and_the_answer_is_told(scene: Scene) -> None:
    """The inventory had said that three go on; two have ended when the worker is let in."""
    scene.run("x#1", "y#1", "z#1")
    scene.lose_scheduler()
    assert scene.inventory() == "1: ; runs x y z"
    scene.finish("x#1")
    scene.fail("y#1")
    scene.take()
    scene.welcome(epoch=2)
    assert scene.take()[-2:] == ["say orphan x finished", "say orphans gone: y"]
    assert scene.inventory() == "2: x; runs z"


def test_results_and_runs_outlive_two_schedulers(scene: Scene) -> None:
    """What was adopted by the first has a number of the worker's own again."""
    scene.put("x", "y")
    scene.run("v#1")
    lose_and_find_another(scene)
    scene.adopt(x="z")
    scene.take()
    assert lose_and_find_another(scene, epoch=3) == ["renumber z to -5 run -1 to -4"]
    assert scene.inventory() == "3: y x; runs v"
    scene.finish("v#1")
    assert scene.inventory() == "3: y x v"


def test_of_two_results_of_a_key_the_younger_stays(scene: Scene) -> None:
    """x was kept from before, and was made again."""
    scene.put("x")
    lose_and_find_another(scene)
    scene.run("x#7")
    scene.finish("x#7")
    scene.take()
    scene.lose_scheduler()
    scene.welcome(epoch=3)
    assert scene.take() == ["drop -1", "renumber x to -2"]
    assert scene.inventory() == "3: x"


def test_what_came_from_elsewhere_meanwhile_stays_and_the_orphan_goes(scene: Scene) -> None:
    scene.put("x")
    lose_and_find_another(scene)
    scene.put("z")
    scene.adopt(x="z")
    assert scene.take() == ["say added z", "drop -1", "say adopted x 10"]


def test_who_waits_for_a_value_has_it_once_it_is_adopted(scene: Scene) -> None:
    """y was sent with another holder, and x turns out to be here."""
    scene.put("x")
    lose_and_find_another(scene)
    scene.run("y#1", z="A")
    scene.adopt(x="z")
    assert scene.take() == ["ask A for z", "renumber -1 to z", "say adopted x 10", "start y#1"]
    assert scene.arrive("A", "z") == ""


def test_what_was_freed_but_in_use_does_not_outlive_the_scheduler(scene: Scene) -> None:
    scene.put("x")
    scene.run("y#1", x=None)
    scene.free("x")
    scene.take()
    scene.lose_scheduler()
    scene.welcome(epoch=2)
    assert "drop x" in scene.take()
    assert scene.inventory() == "2: ; runs y"


def test_a_number_that_is_freed_in_the_frame_of_the_welcome_is_of_the_new_epoch(
    scene: Scene,
) -> None:
    """What the same number meant before stays."""
    scene.put("x", "y")
    scene.lose_scheduler()
    scene.take()
    scene.tell(
        WorkerWelcome(Epoch(2), 1, 1.0),
        AdoptReplicas([Key("y")], [number_of("x")]),
        FreeReplicas([number_of("x")]),
    )
    assert scene.take() == [
        "renumber x to -1 y to -2",
        "renumber -2 to x",
        "drop x",
        "say adopted y 10",
    ]
    assert scene.inventory() == "2: x"
