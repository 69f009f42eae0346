"""A worker whose memory is short begins nothing, and goes on where it has stopped."""

from tests.scenes.worker.scene import Scene


def test_a_paused_worker_takes_back_what_no_thread_has_begun(scene: Scene) -> None:
    scene.run("x#1", "y#1", "z#1")
    scene.begun = {"x#1"}
    scene.take()
    scene.pause("300 of 400 MiB")
    assert scene.take() == ["hold x#1 y#1 z#1", "say paused: 300 of 400 MiB"]
    scene.finish("x#1")
    assert scene.take() == ["say x#1 finished"]
    scene.resume("200 of 400 MiB")
    assert scene.take() == ["start y#1 z#1", "say not paused: 200 of 400 MiB"]
    assert [what for what, _ in scene.story("y")] == [
        "handed to the threads",
        "held back, as memory is short",
        "handed to the threads",
    ]


def test_it_begins_neither_runs_nor_fetches(scene: Scene) -> None:
    scene.pause()
    scene.take()
    scene.run("x#1")
    scene.run("y#1", a="A")
    scene.acquire(b="B")
    assert scene.take() == []
    scene.resume()
    assert sorted(scene.take()) == [
        "ask A for a",
        "ask B for b",
        "say not paused: memory is free",
        "start x#1",
    ]


def test_what_is_under_way_arrives_and_waits(scene: Scene) -> None:
    scene.run("y#1", a="A")
    scene.pause()
    scene.take()
    assert scene.arrive("A", "a") == "a"
    assert scene.take() == ["say added a"]
    scene.resume()
    assert scene.take() == ["start y#1", "say not paused: memory is free"]


def test_what_it_was_sent_goes_back_if_it_is_recalled(scene: Scene) -> None:
    scene.run("x#1", "y#1")
    scene.begun = {"y#1"}
    scene.pause()
    scene.run("z#1", a="A")
    scene.take()
    scene.recall("x#1", "y#1", "z#1")
    assert scene.take() == ["withdraw y#1", "say x#1 returned", "say z#1 returned"]
    scene.resume()
    assert scene.take() == ["say not paused: memory is free"]


def test_the_most_urgent_goes_first_when_it_resumes(scene: Scene) -> None:
    scene.pause()
    scene.run_in_order(("x#1", 0.0, 3), ("y#1", 0.0, 1), ("z#1", 1.0, 2))
    scene.take()
    scene.resume()
    assert scene.take()[0] == "start z#1 y#1 x#1"


def test_results_are_served_and_dropped_as_before(scene: Scene) -> None:
    scene.put("x", "y")
    scene.pause()
    scene.take()
    assert scene.holds("x")
    scene.free("x")
    assert scene.take() == ["drop x"]


def test_a_scheduler_that_comes_back_is_told_again(scene: Scene) -> None:
    scene.run("x#1")
    scene.pause("full")
    scene.lose_scheduler()
    scene.take()
    scene.welcome()
    assert scene.take() == ["say paused: full"]
    scene.lose_scheduler()
    scene.resume()
    scene.welcome()
    assert scene.take() == []


def test_to_pause_or_resume_twice_is_said_once(scene: Scene) -> None:
    scene.pause()
    scene.pause()
    scene.resume()
    scene.resume("again")
    assert scene.take() == ["say paused: memory is short", "say not paused: memory is free"]


def test_another_reason_for_the_same_pause_is_told(scene: Scene) -> None:
    scene.run("x#1")
    scene.pause()
    scene.pause("and the disk is full")
    assert scene.take() == [
        "start x#1",
        "hold x#1",
        "say paused: memory is short",
        "say paused: and the disk is full",
    ]


def test_who_is_told_to_go_on_waits_for_memory_and_the_other_way_round(scene: Scene) -> None:
    scene.pause()
    scene.pause("told to", by_hand=True)
    scene.run("x#1")
    scene.resume("told to", by_hand=True)
    assert scene.take() == ["say paused: memory is short"]
    scene.pause("told to", by_hand=True)
    scene.resume()
    assert scene.take() == ["say paused: told to"]
    scene.resume("told to", by_hand=True)
    assert scene.take() == ["start x#1", "say not paused: told to"]


def test_a_run_goes_back_that_another_life_of_the_scheduler_has_sent(scene: Scene) -> None:
    scene.run("x#1")
    scene.pause()
    scene.lose_scheduler()
    scene.welcome(epoch=2)
    scene.run("x#7")
    scene.resume()
    assert scene.take()[-2:] == ["start x#7", "say not paused: memory is free"]


def test_what_a_run_took_is_told_before_how_it_ended(scene: Scene) -> None:
    scene.run("x#1", "y#2")
    scene.take()
    scene.gauge(x=100, y=7)
    scene.finish("x#1")
    assert scene.take() == ["say gauged x#1 100 y#2 7", "say x#1 finished"]
    scene.lose_scheduler()
    scene.welcome()
    scene.take()
    scene.gauge(y=8)
    assert scene.take() == []


def test_what_arrives_at_once_is_bounded_but_something_always_may() -> None:
    scene = Scene(incoming_bytes_max=25)
    scene.run("x#1", a="A", b="B", c="C")
    scene.run("y#1", d="D")
    assert scene.take() == ["ask A for a", "ask B for b", "ask C for c"]
    scene.arrive("A", "a")
    assert "ask D for d" in scene.take()


def test_one_result_is_fetched_however_large_it_is() -> None:
    scene = Scene(incoming_bytes_max=5)
    scene.run("x#1", a="A", b="A")
    assert scene.take() == ["ask A for a"]
    scene.arrive("A", "a")
    assert "ask A for b" in scene.take()
