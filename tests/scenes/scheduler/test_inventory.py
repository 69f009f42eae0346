"""What workers say that they hold: on reconnection, and as it turns up."""

from shoal.ids import Epoch, TaskId
from shoal.protocol.messages import ReplicasAdded, ReplicasGone, TaskOptions
from tests.scenes.scheduler.scene import Scene


def test_a_worker_that_comes_back_brings_what_is_still_needed(scene: Scene) -> None:
    """Its connection broke; x was to be computed anew, but there is no need any more."""
    scene.workers("a")
    scene.submit(x=[], y=["x"])
    scene.finish("x")
    number = scene.number("x")
    scene.lose("a")
    assert scene.take() == ["a: run x #1", "c: x in memory at a", "a: run y #1", "c: x lost"]

    scene.join("a", holds={"x": number})
    assert scene.take() == ["a: run y #2", "c: x in memory at a"]


def test_a_worker_that_comes_back_frees_what_is_not_needed(scene: Scene) -> None:
    """x was let go of meanwhile, and number 99 was never heard of."""
    scene.workers("a")
    scene.submit(x=[], y=[])
    scene.finish("x")
    number = scene.number("x")
    scene.lose("a")
    scene.release("x")
    scene.take()

    scene.names.keys[TaskId(99)] = "what?"
    scene.join("a", holds={"x": number, "what?": TaskId(99)})
    assert scene.take() == ["a: free x, what?", "a: run y #2"]


def test_an_inventory_names_keys_so_that_a_number_alone_is_not_trusted(scene: Scene) -> None:
    """The number is that of x, but the worker says that it holds y under it."""
    scene.workers("a")
    scene.submit(x=[])
    number = scene.number("x")
    scene.join("b", holds={"y": number})
    assert scene.take() == ["a: run x #1", "b: free x"]


def test_numbers_in_an_inventory_of_another_epoch_mean_nothing(scene: Scene) -> None:
    """The scheduler was restarted, so the number is of another task: only the key counts."""
    scene.submit(x=[])
    scene.join("a", holds={"y": scene.number("x")}, epoch=Epoch(6))
    scene.advance(5)
    assert scene.take() == ["a: run x #1"]


def test_a_worker_may_connect_anew_before_its_loss_is_known(scene: Scene) -> None:
    """The old connection counts as lost; x, which it runs, is run again, y is kept."""
    scene.workers("a")
    scene.submit(y=[], x=[])
    scene.finish("y")
    scene.take()

    scene.join("a", holds={"y": scene.number("y")})
    assert scene.take() == ["c: y lost", "c: y in memory at a", "a: run x #2"]


def test_a_copy_that_turns_up_ends_the_run_that_was_to_replace_it(scene: Scene) -> None:
    """b had fetched x, and says so only after a, which made x, has died and d runs x anew."""
    scene.workers("a", "b", "d")
    scene.submit(x=[])
    scene.finish("x")
    scene.lose("a")
    assert scene.take() == ["a: run x #1", "c: x in memory at a", "c: x lost", "b: run x #2"]

    scene.holds("d", "x")
    assert scene.take() == ["b: recall x #2", "c: x in memory at d"]

    scene.finish("x", on="b")
    assert scene.take() == ["b: free x"]


def test_a_copy_turns_up_in_the_step_in_which_the_last_was_lost(scene: Scene) -> None:
    """The worker gives up one copy and has another, as one frame says: nothing is run."""
    scene.workers("a")
    scene.submit(x=[])
    scene.finish("x")
    scene.take()

    number = scene.number("x")
    scene.from_worker("a", ReplicasGone([number]), ReplicasAdded([number], [10]))
    assert scene.take() == ["c: x lost", "c: x in memory at a"]


def test_a_copy_of_what_is_queued_turns_up(scene: Scene) -> None:
    """So it need not run."""
    scene.workers("a")
    scene.submit(p=[], q=[], x=[])
    assert scene.state("x") == "queued"
    scene.take()

    scene.holds("a", "x")
    assert scene.take() == ["c: x in memory at a"]
    scene.finish("p")
    assert scene.take() == ["c: p in memory at a"]


def test_a_copy_of_what_waits_turns_up(scene: Scene) -> None:
    """y waited for x, and x is needed by nobody any more once y is there."""
    scene.workers("a")
    scene.submit(x=[], y=["x"], wanted=["y"])
    scene.take()

    scene.holds("a", "y")
    assert scene.take() == ["c: y in memory at a", "a: recall x #1"]


def test_a_copy_of_what_no_worker_may_run_turns_up(scene: Scene) -> None:
    """x may run on b only, which isn't there; a has it all the same."""
    scene.workers("a")
    scene.submit(x=[], options=TaskOptions(workers=["b"]))
    scene.holds("a", "x")
    assert scene.take() == ["c: x in memory at a"]
    scene.join("b")
    assert scene.take() == []


def test_a_copy_of_what_failed_or_is_not_needed_is_dropped(scene: Scene) -> None:
    """x has failed; p was needed for q only."""
    scene.workers("a")
    scene.submit(x=[], p=[], q=["p"], wanted=["x", "q"])
    scene.fail("x")
    scene.finish("p")
    scene.finish("q")
    scene.take()

    scene.holds("a", "x", "p")
    assert scene.take() == ["a: free x, p"]


def test_a_second_copy_is_used_and_freed_like_the_first(scene: Scene) -> None:
    """b has fetched x: what needs x may run there without asking a."""
    scene.workers("a", "b")
    scene.submit(x=[])
    scene.finish("x")
    scene.holds("b", "x")
    scene.submit(y=["x"], z=["x"])
    assert scene.take()[-2:] == ["a: run y #1", "b: run z #1"]
    assert scene.worker("b").nbytes == 10
