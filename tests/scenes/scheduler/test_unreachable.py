"""Workers that can't get their inputs from each other."""

from shoal.protocol.messages import TaskOptions
from tests.scenes.scheduler.scene import Scene

ON_B = TaskOptions(workers=["b"])


def test_an_input_that_its_holder_lacks_is_computed_again(scene: Scene) -> None:
    """a was thought to hold x, and doesn't: y, on b, waits until it is there once more."""
    scene.workers("a", "b")
    scene.submit(x=[], wanted=[], held=["x"], ahead=1)
    scene.finish("x")
    scene.submit(y=["x"], options=ON_B, let_go=["x"], ahead=0)
    assert scene.take() == ["a: run x #1", "b: run y #1 (x from a)"]

    scene.unavailable("y", "x")
    assert sorted(scene.take()) == ["a: free x", "a: run x #2"]

    scene.finish("x", on="a")
    assert scene.take() == ["b: run y #2 (x from a)"]


def test_a_holder_out_of_reach_keeps_its_copy_and_is_avoided(scene: Scene) -> None:
    """b can't reach a, which has x; so y runs on a itself, though a has more to do."""
    scene.workers("a", "b")
    scene.submit(x=[])
    scene.finish("x")
    scene.submit(w1=[], w2=[], options=TaskOptions(workers=["a"]))
    scene.submit(y=["x"])
    assert scene.take()[2:] == ["a: run w1 #1", "a: run w2 #1", "b: run y #1 (x from a)"]

    scene.unavailable("y", "x", unreachable=["a"])
    assert scene.take() == []  # y is in the backlog of a
    assert scene.task("y").worker is scene.worker("a")

    scene.finish("w1")
    assert scene.take() == ["c: w1 in memory at a", "a: run y #2"]


def test_a_holder_out_of_reach_is_tried_again_after_a_while(scene: Scene) -> None:
    """Half a minute later b may be able to reach a once more."""
    scene.workers("a", "b")
    scene.submit(x=[])
    scene.finish("x")
    scene.submit(w1=[], w2=[], options=TaskOptions(workers=["a"]))
    scene.submit(y=["x"])
    scene.unavailable("y", "x", unreachable=["a"])
    scene.release("y")
    scene.take()

    scene.advance(31)
    scene.take()
    scene.submit(z=["x"])
    assert scene.take() == ["b: run z #1 (x from a)"]


def test_a_task_that_would_rather_be_elsewhere_runs_where_its_input_is(scene: Scene) -> None:
    """y is to run on b if that is possible, and b can't reach a, which has x; so a runs it."""
    scene.workers("a", "b")
    scene.submit(x=[], options=TaskOptions(workers=["a"], allow_other_workers=True))
    scene.finish("x")
    scene.submit(y=["x"], options=TaskOptions(workers=["b"], allow_other_workers=True))
    assert scene.take()[2:] == ["b: run y #1 (x from a)"]

    scene.unavailable("y", "x", unreachable=["a"])
    assert scene.take() == ["a: run y #2"]


def test_an_input_that_stays_out_of_reach_is_computed_again(scene: Scene) -> None:
    """y may run on b only.  The third time that b can't get x from a, a's copy counts no more."""
    scene.workers("a", "b")
    scene.submit(x=[])
    scene.finish("x")
    scene.submit(w=[], options=TaskOptions(workers=["a"]))
    scene.submit(y=["x"], options=ON_B)
    for _ in range(2):
        scene.take()
        scene.unavailable("y", "x", unreachable=["a"])
    assert scene.take() == ["b: run y #3 (x from a)"]

    scene.unavailable("y", "x", unreachable=["a"])
    assert sorted(scene.take()) == ["a: free x", "b: run x #2", "c: x lost"]

    scene.finish("x", on="b")
    assert scene.take() == ["c: x in memory at b", "b: run y #4"]


def test_a_task_whose_inputs_stay_out_of_reach_fails_in_the_end() -> None:
    """Whatever is tried, b gets no x; nobody waits for ever."""
    scene = Scene(fetch_attempts_max=2)
    scene.workers("a", "b")
    scene.submit(x=[])
    scene.finish("x")
    scene.submit(y=["x"], options=ON_B)
    scene.unavailable("y", "x", unreachable=["a"])
    scene.take()

    scene.unavailable("y", "x", unreachable=["a"])
    assert scene.take() == [
        "c: y erred: InputsUnreachable: Task 'y' could not get its inputs 'x': 2 attempts to fetch "
        "them failed, the last on tcp://b:1."
    ]
    assert scene.state("x") == "memory"


def test_a_copy_in_the_scheduler_makes_a_missing_one_irrelevant(scene: Scene) -> None:
    """x is small, and its value is known here: y just gets it the next time."""
    scene.workers("a", "b")
    scene.submit(x=[])
    scene.finish("x", value=b"1")
    scene.submit(y=["x"], options=TaskOptions(workers=["a"]))
    assert scene.take()[2:] == ["a: run y #1"]

    scene.unavailable("y", "x")
    assert sorted(scene.take()) == ["a: free x", "a: run y #2 (x inline)"]


def test_success_makes_earlier_troubles_forgotten() -> None:
    """One attempt failed, then it ran; when it is lost, the attempts are counted from none."""
    scene = Scene(fetch_attempts_max=2)
    scene.workers("a", "b")
    scene.submit(x=[])
    scene.finish("x")
    scene.submit(y=["x"], options=ON_B)
    scene.unavailable("y", "x", unreachable=["a"])
    scene.finish("y")
    scene.gone("b", "y")
    scene.take()

    scene.unavailable("y", "x", unreachable=["a"])
    assert scene.take() == ["b: run y #4 (x from a)"]
