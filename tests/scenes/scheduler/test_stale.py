"""Answers that come too late change nothing, and leave nothing behind."""

from shoal.protocol.messages import TaskFinished, TaskOptions
from tests.scenes.scheduler.scene import Scene


def test_a_result_of_a_run_that_was_lost_to_another_worker_is_dropped(scene: Scene) -> None:
    """x was recalled from a and runs on b; then a says that it has finished its run after all."""
    scene.workers("a")
    scene.submit(w=[], x=[])
    scene.join("b")
    scene.advance(0.01)
    assert scene.take() == ["a: run w #1", "a: run x #1", "a: recall x #1"]

    scene.returned("x")
    assert scene.take() == ["b: run x #2"]

    scene.finish("x", on="a", nth=1)
    assert scene.take() == ["a: free x"]
    assert scene.task("x").worker is scene.worker("b")

    scene.finish("x", on="b")
    assert scene.take() == ["c: x in memory at b"]


def test_a_failure_of_an_old_run_is_ignored(scene: Scene) -> None:
    """The same, but the old run raised; and the old run is said to be given back; and so on."""
    scene.workers("a")
    scene.submit(w=[], x=[])
    scene.join("b")
    scene.advance(0.01)
    scene.returned("x")
    scene.take()

    scene.fail("x", on="a", nth=1)
    scene.returned("x", on="a", nth=1)
    scene.unavailable("x", "w", on="a", nth=1)
    assert scene.take() == []
    assert scene.task("x").worker is scene.worker("b")


def test_answers_about_forgotten_tasks_change_nothing(scene: Scene) -> None:
    """Nobody wants x, w, y any more when a answers; only a result has to be dropped."""
    scene.workers("a", nthreads=3)
    scene.submit(w=[], x=[], y=[], z=[])
    scene.release("w", "x", "y", "z")
    scene.take()

    scene.fail("w")
    scene.returned("x")
    scene.finish("y")
    assert scene.take() == ["a: free y"]


def test_a_result_said_twice_is_kept_once(scene: Scene) -> None:
    """The second answer has the same run, which is over; the value is where it should be."""
    scene.workers("a")
    scene.submit(x=[])
    scene.finish("x")
    scene.finish("x")
    assert scene.take() == ["a: run x #1", "c: x in memory at a"]


def test_a_result_left_by_an_old_run_is_replaced_by_the_new_one(scene: Scene) -> None:
    """x is recalled from a and sent there again: the answer to the first run is no answer."""
    _run_again_on_the_same_worker(scene)
    scene.finish("x", nth=1)
    assert scene.take() == []
    assert scene.state("x") == "processing"

    scene.finish("x", nth=2)
    assert scene.take() == ["c: x in memory at a"]
    scene.release("x")
    assert scene.take() == ["a: free x"]


def test_a_result_left_by_an_old_run_is_dropped_if_the_new_one_fails(scene: Scene) -> None:
    """Nothing will overwrite it, so it has to be said."""
    _run_again_on_the_same_worker(scene)
    scene.finish("x", nth=1)
    scene.fail("x", nth=2)
    assert sorted(scene.take()) == ["a: free x", "c: x erred: ValueError: no"]


def test_a_result_left_by_an_old_run_is_dropped_if_the_new_one_is_let_go(scene: Scene) -> None:
    """The new run is recalled, and may never have begun."""
    _run_again_on_the_same_worker(scene)
    scene.finish("x", nth=1)
    scene.release("x")
    assert scene.take() == ["a: recall x #2", "a: free x"]


def test_a_result_left_by_an_old_run_is_dropped_if_the_task_is_stolen(scene: Scene) -> None:
    """x was given back and waits in the backlog of a, where its first run ends; b takes it."""
    scene.workers("a")
    scene.submit(w=[])
    scene.finish("w")
    scene.submit(x=["w"], y=["w"])
    assert scene.take()[2:] == ["a: run x #1", "a: run y #1"]
    scene.submit(z=["w"], options=TaskOptions(priority=1))
    scene.returned("x")
    assert scene.take() == ["a: run z #1"]
    scene.finish("x", nth=1)
    assert scene.take() == []

    scene.join("b")
    assert scene.take() == ["b: run x #2 (w from a)", "a: free x"]


def test_a_result_left_by_an_old_run_may_turn_out_to_be_a_replica(scene: Scene) -> None:
    """Somebody else computed x meanwhile; a says that it holds it: that is worth keeping."""
    _run_again_on_the_same_worker(scene)
    scene.finish("x", nth=1)
    scene.holds("a", "x")
    assert scene.take() == ["a: recall x #2", "c: x in memory at a"]
    scene.release("x")
    assert scene.take() == ["a: free x"]


def test_a_key_may_be_submitted_anew_while_its_old_run_still_executes(scene: Scene) -> None:
    """x was let go of and comes back: it is another task with the same key, and a runs both."""
    scene.workers("a", nthreads=2)
    scene.submit(x=[])
    first = scene.run("x")
    scene.release("x")
    scene.submit(x=[])
    assert scene.take() == ["a: run x #1", "a: recall x #1", "a: run x #1"]
    second = scene.run("x")
    assert first[1] != second[1]

    scene.runs.append(first)
    scene.finish("x")
    assert scene.take() == ["a: free x"]  # the number of the first
    assert scene.state("x") == "processing"

    scene.runs.append(second)
    scene.finish("x")
    assert scene.take() == ["c: x in memory at a"]


def test_an_answer_about_the_run_of_another_worker_is_none(scene: Scene) -> None:
    """The run is present, but it is not b's: b is confused, and x goes on."""
    scene.workers("a", "b")
    scene.submit(x=[])
    _, task, run = scene.run("x", on="a")
    scene.from_worker("b", TaskFinished(task, run, 10, 1.0))
    assert scene.take() == ["a: run x #1", "b: free x"]
    assert scene.state("x") == "processing"


def test_a_replica_of_a_forgotten_task_is_dropped(scene: Scene) -> None:
    """b fetched x for y; but both were let go of before it said so."""
    scene.workers("a", "b")
    scene.submit(x=[])
    scene.finish("x")
    scene.release("x")
    scene.take()

    scene.holds("b", "x")
    assert scene.take() == ["b: free x"]


def test_a_lost_copy_that_was_not_counted_on_is_no_news(scene: Scene) -> None:
    """b says that it lost x, which it was not known to hold; a says it of a forgotten task."""
    scene.workers("a", "b")
    scene.submit(x=[])
    scene.finish("x")
    scene.take()
    scene.gone("b", "x")
    assert scene.take() == []

    scene.release("x")
    scene.gone("a", "x")
    assert scene.take() == ["a: free x"]


def _run_again_on_the_same_worker(scene: Scene) -> None:
    """x is sent to a, given back, and sent to a once more."""
    scene.workers("a")
    scene.submit(x=[])
    scene.returned("x")
    assert scene.take() == ["a: run x #1", "a: run x #2"]
