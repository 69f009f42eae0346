"""A scheduler that came back finds what workers have from before, by key, and runs none of it."""

from shoal.ids import Epoch, Key
from shoal.protocol.messages import ReleaseTasks, TaskOptions
from shoal.protocol.orphans import OrphanFinished, OrphansGone
from tests.scenes.scheduler.scene import Scene


def test_a_result_from_before_is_taken_up_by_whoever_defines_its_task(scene: Scene) -> None:
    """The worker is told the number; once it knows it, the task is in memory, and was never run."""
    scene.come_back("a", "x")
    scene.submit(x=[])
    assert scene.take() == ["a: adopt x"]
    assert scene.state("x") == "released"
    scene.adopted("a", "x", value=b"1")
    assert scene.take() == ["c: x in memory inline"]


def test_a_worker_that_comes_later_brings_what_was_about_to_be_run(scene: Scene) -> None:
    scene.submit(x=[], y=["x"])
    scene.come_back("a", "x")
    scene.adopted("a", "x")
    assert scene.take() == ["a: adopt x", "c: x in memory at a"]
    scene.advance(5)
    assert scene.take() == ["a: run y #1"]


def test_what_only_a_task_from_before_needed_is_not_run(scene: Scene) -> None:
    """y is there, so x is not begun, though it is known."""
    scene.come_back("a", "y")
    scene.submit(x=[], y=["x"], wanted=["y"])
    scene.adopted("a", "y")
    scene.advance(5)
    assert scene.take() == ["a: adopt y", "c: y in memory at a"]
    assert scene.state("x") == "released"


def test_a_run_from_before_is_waited_for(scene: Scene) -> None:
    """Nothing that it needs is begun; its result is adopted like any other."""
    scene.come_back("a", runs=["y"])
    scene.submit(x=[], y=["x"], wanted=["y"])
    scene.advance(5)
    assert scene.take() == []
    scene.from_worker("a", OrphanFinished(Key("y"), 10))
    assert scene.take() == ["a: adopt y"]
    scene.adopted("a", "y")
    assert scene.take() == ["c: y in memory at a"]


def test_a_run_from_before_that_fails_is_made_up_for(scene: Scene) -> None:
    scene.come_back("a", runs=["x"])
    scene.submit(x=[])
    scene.advance(5)
    scene.from_worker("a", OrphansGone([Key("x")]))
    assert scene.take() == ["a: run x #1"]


def test_a_run_from_before_that_is_lost_with_its_worker_is_made_up_for(scene: Scene) -> None:
    scene.come_back("a", runs=["x"])
    scene.workers("b")
    scene.submit(x=[])
    scene.advance(5)
    scene.lose("a")
    assert scene.take() == ["b: run x #1"]


def test_a_holder_that_is_lost_before_it_has_answered_is_made_up_for(scene: Scene) -> None:
    scene.come_back("a", "x")
    scene.workers("b")
    scene.submit(x=[])
    scene.advance(5)
    scene.lose("a")
    assert scene.take() == ["a: adopt x", "b: run x #1"]


def test_what_nobody_asks_for_is_let_go_of(scene: Scene) -> None:
    """After a minute; also a run, whose end is not waited for."""
    scene.come_back("a", "x", "y", runs=["z"])
    scene.submit(x=[])
    scene.adopted("a", "x")
    scene.take()
    scene.advance(59)
    assert scene.take() == []
    scene.advance(2)
    assert scene.take() == ["a: let go of y, z"]
    scene.from_worker("a", OrphanFinished(Key("z"), 10))
    assert scene.take() == ["a: let go of z"]


def test_what_is_waited_for_is_not_let_go_of(scene: Scene) -> None:
    scene.come_back("a", runs=["x"])
    scene.submit(x=[])
    scene.advance(100)
    assert scene.take() == []
    scene.from_worker("a", OrphanFinished(Key("x"), 10))
    scene.adopted("a", "x")
    assert scene.take() == ["a: adopt x", "c: x in memory at a"]


def test_what_is_not_wanted_any_more_as_it_is_adopted_is_freed(scene: Scene) -> None:
    scene.come_back("a", "x")
    scene.submit(x=[])
    number = scene.number("x")
    scene.release("x")
    assert scene.state("x") == "forgotten"
    scene.adopted("a", "x")
    assert scene.take() == ["a: adopt x", "a: free x"]
    assert number not in scene.machine.state.task_by_id


def test_what_is_submitted_anew_before_the_answer_came_is_run(scene: Scene) -> None:
    """The worker knows it by the number of a task that was forgotten."""
    scene.come_back("a", "x")
    scene.advance(5)
    scene.submit(x=[])
    number = scene.number("x")
    scene.release("x")
    scene.submit(x=[])
    from_before = scene.machine.state.orphans.by_key[Key("x")]
    assert list(from_before.asked.values()) == [number]
    assert scene.take() == ["a: adopt x"]
    scene.adopted_as("a", "x", number)
    assert scene.take() == ["a: free x", "a: run x #1"]


def test_two_holders_are_both_known(scene: Scene) -> None:
    scene.come_back("a", "x")
    scene.come_back("b", "x")
    scene.submit(x=[])
    scene.adopted("a", "x")
    scene.adopted("b", "x")
    assert scene.take() == ["a: adopt x", "b: adopt x", "c: x in memory at a"]
    scene.lose("a")
    assert scene.take() == []


def test_a_copy_that_comes_later_is_known_as_well(scene: Scene) -> None:
    scene.come_back("a", "x")
    scene.submit(x=[])
    scene.adopted("a", "x")
    scene.take()
    scene.come_back("b", "x")
    assert scene.take() == ["b: adopt x"]
    scene.adopted("b", "x")
    assert len(scene.task("x").who_has or ()) == 2


def test_what_runs_already_is_taken_back_once_somebody_has_it(scene: Scene) -> None:
    """Its holder was not back when there was time."""
    scene.workers("b")
    scene.submit(x=[])
    scene.come_back("a", "x")
    assert scene.take() == ["b: run x #1", "a: adopt x"]
    scene.adopted("a", "x")
    assert scene.take() == ["b: recall x #1", "c: x in memory at a"]


def test_a_value_that_was_scattered_before_is_found_by_its_key(scene: Scene) -> None:
    """Nobody says what it calls; nor could it be computed again."""
    scene.come_back("a", "data")
    scene.want("data")
    scene.adopted("a", "data")
    assert scene.take() == ["a: adopt data", "c: data in memory at a"]
    scene.lose("a")
    assert scene.take()[-1].startswith("c: data erred: ")


def test_who_names_a_key_first_gets_what_another_submits(scene: Scene) -> None:
    """Both clients come back, in whatever order; a third has what it needs by name."""
    scene.come_back("a")
    scene.want("x", client="d")
    scene.submit("e", z=[])
    assert scene.take() == []
    scene.submit("c", y=[], x=["y"], wanted=["x"])
    scene.advance(5)
    assert scene.take() == ["a: run z #1", "a: run y #1"]
    scene.finish("y", value=b"1")
    scene.finish("z", value=b"1")
    scene.finish("x", value=b"1")
    assert {"c: x in memory inline", "d: x in memory inline"} <= set(scene.take())


def test_a_key_that_nobody_brings_is_said_to_be_lost_once_time_is_over(scene: Scene) -> None:
    scene.come_back("a")
    scene.want("x")
    assert scene.take() == []
    scene.advance(5)
    assert scene.take()[0].startswith("c: x erred: ")


def test_a_key_is_unknown_at_once_where_nobody_comes_back(scene: Scene) -> None:
    scene.workers("a")
    scene.want("x")
    assert scene.take() == ["c: x cancelled: unknown"]


def test_a_spec_comes_to_a_task_that_was_adopted_by_name(scene: Scene) -> None:
    """So it can be computed again once its holder is lost."""
    scene.come_back("a", "x")
    scene.want("x", client="d")
    scene.adopted("a", "x")
    scene.submit("c", x=[])
    assert scene.take() == ["a: adopt x", "d: x in memory at a", "c: x in memory at a"]
    scene.workers("b")
    scene.advance(5)
    scene.lose("a")
    assert scene.take()[-1] == "b: run x #1"


def test_what_a_worker_does_not_keep_is_not_asked_for(scene: Scene) -> None:
    """It is of an older version, and lets go of all that is of another epoch."""
    scene.submit(x=[])
    scene.come_back("a", "x", keeps_orphans=False)
    scene.advance(5)
    assert scene.take() == ["a: run x #1"]


def test_an_actor_goes_on_where_it_lives(scene: Scene) -> None:
    """Its proxy comes along; a second one is not made."""
    scene.come_back("a", "x")
    scene.submit(x=[], options=TaskOptions(actor=True))
    scene.adopted("a", "x", value=b"proxy")
    assert scene.take() == ["a: adopt x", "c: x in memory inline"]
    assert scene.worker("a").actors == {scene.task("x"): None}


def test_an_actor_that_is_named_by_its_key_is_an_actor(scene: Scene) -> None:
    """Its worker says so; it is not copied like other results, nor taken for lost data."""
    scene.come_back("a", "x")
    scene.want("x")
    scene.adopted("a", "x", value=b"proxy", actors=["x"])
    assert scene.take() == ["a: adopt x", "c: x in memory inline"]
    assert scene.worker("a").actors == {scene.task("x"): None}
    scene.lose("a")
    assert any(line.startswith("c: x erred: ") for line in scene.take())


def test_a_connection_that_breaks_in_the_same_life_brings_its_orphans_again(scene: Scene) -> None:
    """They are in the inventory under numbers below zero."""
    scene.come_back("a", "x")
    scene.submit(x=[])
    scene.lose("a")
    scene.take()
    scene.join("a", holds={"x": -1}, epoch=Epoch(7))
    assert scene.take() == ["a: adopt x"]
    scene.adopted("a", "x")
    assert scene.take() == ["c: x in memory at a"]


def test_a_worker_that_has_what_was_named_is_not_asked_for_what_was_let_go(scene: Scene) -> None:
    """The client lets go of a key before any worker came that has it."""
    scene.come_back("a")
    scene.want("x")
    scene.from_client("c", ReleaseTasks([scene.actor("c").number("x")]))
    scene.come_back("b", "x")
    assert scene.take() == []
    assert scene.machine.state.orphans.named == {}


def test_a_run_from_before_that_ends_when_nobody_needs_it_any_more_leaves_nothing(
    scene: Scene,
) -> None:
    """x was awaited when its worker's time was over; then y, which needs it, came from b."""
    scene.come_back("a", runs=["x"])
    scene.submit(x=[], y=["x"], wanted=["y"])
    scene.advance(100)
    scene.come_back("b", "y")
    scene.adopted("b", "y")
    scene.take()
    assert scene.state("x") == "released"
    scene.from_worker("a", OrphanFinished(Key("x"), 10))
    assert scene.take() == ["a: let go of x"]
