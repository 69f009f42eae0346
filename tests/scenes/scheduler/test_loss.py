"""Results get lost, and come back."""

from shoal.protocol.messages import TaskOptions
from tests.scenes.scheduler.scene import Scene


def test_a_result_lost_before_use_is_computed_again(scene: Scene) -> None:
    """x finishes on a.  Then a dies while it runs y, which needs x: b must do both, x first."""
    scene.workers("a", "b")
    scene.submit(x=[], y=["x"], wanted=["y"])
    assert scene.take() == ["a: run x #1"]

    scene.finish("x")
    assert scene.take() == ["a: run y #1"]  # next to its input

    scene.lose("a")
    assert scene.take() == ["b: run x #2"]  # and y waits for it again

    scene.finish("x")
    assert scene.take() == ["b: run y #2"]


def test_a_lost_result_brings_back_all_that_it_was_made_from(scene: Scene) -> None:
    """x, then y, then z: only z is wanted, so x and y are freed.  Losing z means all over again."""
    scene.workers("a", "b")
    scene.submit(x=[], y=["x"], z=["y"], wanted=["z"])
    for key in ("x", "y", "z"):
        scene.finish(key)
    assert scene.take() == [
        "a: run x #1",
        "a: run y #1",
        "a: free x",
        "a: run z #1",
        "c: z in memory at a",
        "a: free y",
    ]
    assert [scene.state(key) for key in "xyz"] == ["released", "released", "memory"]

    scene.lose("a")
    assert scene.take() == ["c: z lost", "b: run x #2"]
    assert [scene.state(key) for key in "xyz"] == ["processing", "waiting", "waiting"]


def test_a_small_result_outlives_the_worker_that_made_it(scene: Scene) -> None:
    """x is small, so it came along when it finished.  Its worker dies, and nobody minds."""
    scene.workers("a")
    scene.submit(x=[], y=["x"])
    scene.finish("x", value=b"42")
    assert scene.take() == ["a: run x #1", "c: x in memory inline", "a: run y #1"]

    scene.join("b")
    scene.lose("a")
    assert scene.take() == ["b: run y #2 (x inline)"]
    assert scene.state("x") == "memory"


def test_a_result_with_another_copy_is_not_lost(scene: Scene) -> None:
    """b fetched x as an input, and said so; so a may go."""
    scene.workers("a", "b")
    scene.submit(x=[])
    scene.finish("x")
    scene.holds("b", "x")
    scene.take()

    scene.lose("a")
    assert scene.take() == []
    assert scene.state("x") == "memory"


def test_a_copy_that_a_worker_lost_by_itself_is_not_counted_on(scene: Scene) -> None:
    """A file of spilled results is gone on a: it says so, and x is computed once more."""
    scene.workers("a")
    scene.submit(x=[])
    scene.finish("x")
    scene.take()

    scene.gone("a", "x")
    assert scene.take() == ["c: x lost", "a: run x #2"]


def test_what_waits_in_a_backlog_for_a_lost_input_waits_again(scene: Scene) -> None:
    """Three tasks were placed next to x on a; two were sent, y3 was not.  a forgets x."""
    scene.workers("a")
    scene.submit(x=[], y1=["x"], y2=["x"], y3=["x"])
    scene.finish("x")
    assert scene.take() == ["a: run x #1", "c: x in memory at a", "a: run y1 #1", "a: run y2 #1"]
    assert scene.state("y3") == "processing"

    scene.gone("a", "x")
    assert scene.take() == ["c: x lost"]  # a has no room for it yet
    assert [scene.state(key) for key in ("x", "y3")] == ["queued", "waiting"]

    scene.unavailable("y1", "x")
    assert scene.take() == ["a: run x #2"]


def test_what_is_queued_with_a_small_input_never_waits_for_it_again(scene: Scene) -> None:
    """The value of x is here: y stays queued though no worker has a copy of x."""
    scene.workers("a")
    scene.submit(p=[], q=[], x=[])
    scene.finish("p")
    scene.finish("x", value=b"1")
    scene.submit(r=[], y=["x"])
    scene.take()

    scene.gone("a", "x")
    assert scene.take() == []
    assert scene.state("y") == "queued"


def test_what_no_worker_may_run_waits_again_when_an_input_is_lost(scene: Scene) -> None:
    """y is pinned to a worker that isn't there.  Meanwhile x is lost, and y needs it once more."""
    scene.workers("a")
    scene.submit(x=[])
    scene.submit(y=["x"], options=TaskOptions(workers=["z"]))
    scene.finish("x")
    assert scene.state("y") == "no-worker"
    scene.take()

    scene.gone("a", "x")
    assert scene.take() == ["c: x lost", "a: run x #2"]
    assert scene.state("y") == "waiting"

    scene.finish("x")
    assert scene.take() == ["c: x in memory at a"]
    assert scene.state("y") == "no-worker"


def test_an_unwanted_lost_result_is_not_computed_again(scene: Scene) -> None:
    """x was needed for y only, which runs and has it; x is lost in the step in which y ends."""
    scene.workers("a", "b")
    scene.submit(x=[], y=["x"], wanted=["y"])
    scene.finish("x")
    scene.finish("y")
    assert scene.take() == ["a: run x #1", "a: run y #1", "c: y in memory at a", "a: free x"]

    scene.release("y")
    assert scene.take() == ["a: free y"]
    assert scene.state("x") == scene.state("y") == "forgotten"

    scene.lose("a")
    assert scene.take() == []
