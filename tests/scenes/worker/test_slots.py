"""Runs that secede, that rejoin, and that are to be run elsewhere, as their worker has it."""

from tests.scenes.worker.scene import Scene


def test_a_run_that_secedes_is_long_running_until_it_ends(scene: Scene) -> None:
    scene.run("x#1")
    scene.secede("x#1")
    assert scene.take() == ["start x#1", "say x#1 is long-running after 0.5 s"]
    scene.secede("x#1")
    assert scene.take() == []
    assert scene.finish("x#1") == [True]
    assert scene.take() == ["say x#1 finished"]
    words = [what for what, _ in scene.story("x")]
    assert words == ["handed to the threads", "long-running", "finished"]


def test_a_run_may_rejoin_and_secede_again(scene: Scene) -> None:
    scene.run("x#1")
    scene.rejoin("x#1")
    assert scene.take() == ["start x#1"]
    scene.secede("x#1")
    scene.rejoin("x#1")
    scene.secede("x#1")
    assert scene.take() == [
        "say x#1 is long-running after 0.5 s",
        "say x#1 rejoined",
        "say x#1 is long-running after 0.5 s",
    ]


def test_what_has_seceded_is_not_given_back(scene: Scene) -> None:
    scene.run("x#1", "y#1")
    scene.secede("x#1")
    scene.take()
    scene.recall("x#1", "y#1")
    assert scene.take() == ["withdraw y#1"]
    scene.finish("x#1")
    assert scene.take() == ["say x#1 finished"]


def test_a_run_that_is_to_run_elsewhere_keeps_nothing_here(scene: Scene) -> None:
    scene.put("x")
    scene.take()
    scene.run("y#1", x=None)
    scene.free("x")
    scene.send_back("y#1")
    assert scene.take() == ["start y#1", "drop x", "say y#1 is to run elsewhere"]
    assert scene.inventory() == "1: "


def test_nobody_is_told_of_what_a_lost_scheduler_sent(scene: Scene) -> None:
    scene.run("x#1", "y#1", "z#1")
    scene.secede("x#1")
    scene.take()
    scene.lose_scheduler()
    assert scene.take() == ["withdraw y#1 z#1"]
    scene.secede("y#1")
    scene.rejoin("x#1")
    scene.welcome()
    scene.finish("x#1")
    scene.send_back("y#1")
    scene.finish("z#1")
    assert scene.take() == []


def test_what_has_seceded_may_outlive_the_epoch_that_it_was_sent_in(scene: Scene) -> None:
    scene.run("x#1")
    scene.secede("x#1")
    scene.lose_scheduler()
    scene.welcome(epoch=2)
    scene.take()
    scene.rejoin("x#1")
    scene.secede("x#1")
    scene.finish("x#1")
    assert scene.take() == ["say orphan x finished"]
