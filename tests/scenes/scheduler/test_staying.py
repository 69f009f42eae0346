"""Results that can't be moved, such as those with an open socket: what needs them comes to them."""

import pytest

from shoal.protocol.messages import TaskOptions
from tests.scenes.scheduler.scene import Scene

NO = "TypeError: cannot pickle"


def on(name: str) -> TaskOptions:
    return TaskOptions(workers=[name])


def test_a_task_whose_input_cannot_be_sent_runs_on_the_holder_of_it(scene: Scene) -> None:
    """a is busy, so y was sent to b; nothing failed but the way."""
    scene.workers("a", "b", "d")
    scene.submit(x=[], options=on("a"))
    scene.finish("x")
    scene.submit(w=[], options=on("a"))
    scene.submit(y=["x"])
    assert scene.run("y")[0].name != "a"
    scene.take()
    scene.fail("y", NO, immovable=["x"])
    scene.finish("w")
    assert scene.run("y")[0].name == "a"
    scene.finish("y")
    assert scene.state("y") == "memory"
    scene.release("x", "w", "y")
    assert not scene.machine.state.avoided


def test_a_task_that_may_not_run_on_the_holder_fails_and_says_why(scene: Scene) -> None:
    scene.workers("a", "b")
    scene.submit(x=[], options=on("a"))
    scene.finish("x")
    scene.submit(y=["x"], options=on("b"))
    scene.take()
    scene.fail("y", NO, immovable=["x"])
    assert scene.take() == [f"c: y erred: {NO}"]


def test_inputs_of_two_workers_that_cannot_be_sent_are_an_error_in_the_end() -> None:
    """It is tried where the one is, and where the other is; then whoever waits is told."""
    scene = Scene(fetch_attempts_max=3)
    scene.workers("a", "b")
    scene.submit(x=[], options=on("a"))
    scene.submit(z=[], options=on("b"))
    scene.finish("x")
    scene.finish("z")
    scene.submit(y=["x", "z"])
    places = []
    for _ in range(3):
        assert scene.state("y") == "processing"
        places.append(scene.run("y")[0].name)
        scene.fail("y", NO, immovable=["z" if places[-1] == "a" else "x"])
    assert scene.state("y") == "erred"
    assert set(places) == {"a", "b"}


def test_a_holder_that_was_avoided_before_is_so_no_more(scene: Scene) -> None:
    """a dies with x, and x comes back on e, from which y was kept away as the others."""
    scene.workers("a", "b", "d", "e")
    scene.submit(x=[], options=TaskOptions(workers=["a", "e"]))
    scene.finish("x")
    scene.submit(w=[], options=on("a"))
    scene.submit(y=["x"])
    scene.fail("y", NO, immovable=["x"])
    scene.finish("w")
    scene.lose("a")
    assert scene.run("x")[0].name == "e"
    scene.finish("x")
    assert scene.run("y")[0].name == "b"
    scene.submit(v=[], options=on("e"))
    scene.submit(u=[], options=on("e"))
    scene.fail("y", NO, immovable=["x"])
    place = scene.task("y").worker
    assert place is not None
    assert place.name == "e"


@pytest.mark.parametrize(
    "needs", [TaskOptions(resources={"gpu": 1.0}), TaskOptions(limits={"db": 5})]
)
def test_what_needs_resources_or_is_limited_waits_until_the_holder_has_room(
    scene: Scene, needs: TaskOptions
) -> None:
    """a has none left, and b has: y is sent there once, and others that need as much go there."""
    scene.join("a", resources={"gpu": 1.0})
    scene.join("b", resources={"gpu": 1.0})
    scene.submit(x=[], options=on("a"))
    scene.finish("x")
    held = TaskOptions(workers=["a"], resources={"gpu": 1.0})
    scene.submit(w=[], options=held)
    scene.submit(v=[], options=held)
    scene.submit(u=[], options=on("a"))
    scene.submit(y=["x"], options=needs)
    assert scene.run("y")[0].name == "b"
    scene.take()
    scene.fail("y", NO, immovable=["x"])
    assert scene.take() == []
    scene.submit(z=[], options=needs)
    assert scene.take() == ["b: run z #1"]
    for key in ("w", "u", "v"):
        scene.finish(key)
    assert scene.run("y")[0].name == "a"
    scene.finish("y")
    assert scene.state("y") == "memory"


def test_what_needs_resources_goes_elsewhere_if_the_holder_dies(scene: Scene) -> None:
    """x is made again on b, and y runs there."""
    scene.join("a", resources={"gpu": 1.0})
    scene.join("b", resources={"gpu": 1.0})
    scene.submit(x=[], options=TaskOptions(workers=["a", "b"]))
    scene.finish("x")
    scene.submit(w=[], options=TaskOptions(workers=["a"], resources={"gpu": 1.0}))
    scene.submit(y=["x"], options=TaskOptions(resources={"gpu": 1.0}))
    scene.fail("y", NO, immovable=["x"])
    assert scene.state("y") == "queued"
    scene.lose("a")
    scene.finish("x")
    assert scene.run("y")[0].name == "b"
    scene.finish("y")
    assert scene.state("y") == "memory"


def test_an_input_that_was_lost_before_it_could_be_said_that_it_cannot_be_sent(
    scene: Scene,
) -> None:
    """a dies with x as b says so: y waits until x is there again, whoever has it then."""
    scene.workers("a", "b", "d")
    scene.submit(x=[], options=TaskOptions(workers=["a", "d"]))
    scene.finish("x")
    scene.submit(w=[], options=on("a"))
    scene.submit(y=["x"])
    assert scene.run("y")[0].name == "b"
    scene.lose("a")
    scene.fail("y", NO, immovable=["x"])
    assert scene.state("y") == "waiting"
    scene.finish("x")
    assert scene.run("y")[0].name == "d"
    scene.finish("y")
    assert scene.state("y") == "memory"


def test_an_input_that_the_asker_has_made_anew_meanwhile(scene: Scene) -> None:
    """a dies, and b makes x; only then does b hear that a could not send it."""
    scene.workers("a")
    scene.join("b", nthreads=2)
    scene.submit(x=[], options=TaskOptions(workers=["a", "b"]))
    assert scene.run("x")[0].name == "a"
    scene.finish("x")
    scene.submit(w=[], options=on("a"))
    scene.submit(y=["x"])
    assert scene.run("y")[0].name == "b"
    scene.lose("a")
    scene.finish("x")
    scene.fail("y", NO, immovable=["x"])
    assert scene.run("y")[0].name == "b"
    scene.finish("y")
    assert scene.state("y") == "memory"
