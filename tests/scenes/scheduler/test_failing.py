"""Tasks raise, and whose tasks fail with them."""

from shoal.protocol.messages import TaskOptions
from tests.scenes.scheduler.scene import Scene


def test_a_task_is_retried_as_often_as_allowed_and_then_fails(scene: Scene) -> None:
    """Two retries mean three runs."""
    scene.workers("a")
    scene.submit(x=[], options=TaskOptions(retries=2))
    assert scene.take() == ["a: run x #1"]

    scene.fail("x")
    assert scene.take() == ["a: run x #2"]

    scene.fail("x")
    assert scene.take() == ["a: run x #3"]

    scene.fail("x")
    assert scene.take() == ["c: x erred: ValueError: no"]


def test_an_error_reaches_all_that_wait_for_it_and_nothing_else(scene: Scene) -> None:
    """y waits for x, z for y; w waits for v only, and goes on."""
    scene.workers("a")
    scene.submit(v=[], x=[], w=["v"], y=["x"], z=["y", "v"])
    assert scene.take() == ["a: run v #1", "a: run x #1"]

    scene.fail("x")
    assert sorted(scene.take()) == [
        "c: x erred: ValueError: no",
        "c: y erred: ValueError: no (of x)",
        "c: z erred: ValueError: no (of x)",
    ]

    scene.finish("v")
    assert scene.take() == ["c: v in memory at a", "a: run w #1"]


def test_a_task_submitted_after_its_input_failed_fails_at_once(scene: Scene) -> None:
    """x has failed already; y needs it and v, and v is not even started for it."""
    scene.workers("a")
    scene.submit(x=[])
    scene.fail("x")
    scene.take()

    scene.submit(v=[], y=["v", "x"], wanted=["y"])
    assert scene.take() == ["c: y erred: ValueError: no (of x)"]

    scene.release("y")
    assert scene.take() == []
    assert scene.state("v") == scene.state("y") == "forgotten"


def test_a_failed_task_is_forgotten_with_its_last_want(scene: Scene) -> None:
    """Nobody asks for the error any more, so the key is free for another try."""
    scene.workers("a")
    scene.submit(x=[], y=["x"])
    scene.fail("x")
    scene.take()

    scene.release("x")
    assert scene.state("x") == "erred"  # y still says that it failed because of x
    scene.release("y")
    assert scene.state("x") == scene.state("y") == "forgotten"

    scene.submit(x=[])
    assert scene.take() == ["a: run x #1"]


def test_whoever_wants_a_failed_task_later_is_told_at_once(scene: Scene) -> None:
    """Another client asks for x by name, after it failed."""
    scene.workers("a")
    scene.submit(x=[])
    scene.fail("x")
    scene.take()

    scene.want("x", client="d")
    assert scene.take() == ["d: x erred: ValueError: no"]


def test_a_failure_ends_the_wait_of_what_had_its_input_and_lost_it(scene: Scene) -> None:
    """y runs while x, its input, is computed anew and fails: if y can't get x, it fails too."""
    scene.workers("a", "b")
    scene.submit(x=[], y=["x"])
    scene.finish("x")
    scene.gone("a", "x")
    assert scene.take() == [
        "a: run x #1",
        "c: x in memory at a",
        "a: run y #1",
        "c: x lost",
        "b: run x #2",
    ]

    scene.fail("x")
    assert scene.take() == ["c: x erred: ValueError: no"]  # y may have read x in time

    scene.unavailable("y", "x")
    assert scene.take() == ["c: y erred: ValueError: no (of x)"]


def test_a_task_that_depends_on_what_is_not_known_fails_with_advice(scene: Scene) -> None:
    """The client let go of x before y arrived.  v, the other input of y, is not kept for it."""
    scene.workers("a")
    scene.submit(x=[])
    scene.finish("x")
    scene.release("x")
    scene.take()

    scene.submit(v=[], y=["v", "x"], z=["y"], wanted=["y", "z"])
    unknown = "UnknownDependency: Task y depends on a result that was released or cancelled"
    lines = scene.take()
    assert [line[: len(unknown) + 12] for line in lines] == [
        f"c: y erred: {unknown}",
        f"c: z erred: {unknown}",
    ]
    assert scene.state("v") == "forgotten"


def test_a_retry_goes_elsewhere_first_and_back_if_there_is_nobody_else(scene: Scene) -> None:
    """A package may be missing on one worker only, or its disk be full."""
    scene.workers("a", "b")
    scene.submit(x=[], options=TaskOptions(retries=3, workers=["a", "b"]))
    first, other = ("a", "b") if scene.run("x")[0].name == "a" else ("b", "a")
    scene.take()
    scene.fail("x")
    assert scene.take() == [f"{other}: run x #2"]
    scene.lose(first)
    scene.take()
    scene.fail("x")
    assert scene.take() == [f"{other}: run x #3"]
