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
    assert not scene.machine.state.witnesses


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


def test_a_result_that_comes_back_elsewhere_has_its_dependents_come_there(scene: Scene) -> None:
    """a dies with x, and x comes back on e: y, which b had tried in vain, goes there at once."""
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
    assert scene.run("y")[0].name == "e"
    scene.finish("y")
    assert scene.state("y") == "memory"


def busy_holder(scene: Scene, *others: str) -> None:
    """x is on a, which runs w; the others have nothing to do."""
    scene.workers("a", *others)
    scene.submit(x=[], options=on("a"))
    scene.finish("x")
    scene.submit(w=[], options=on("a"))


def test_what_two_could_not_get_is_tried_by_nobody_else(scene: Scene) -> None:
    """b and d learn it; then all that needs x waits for a, though e and f are idle."""
    busy_holder(scene, "b", "d", "e", "f")
    scene.submit(y1=["x"], y2=["x"])
    places = [scene.run(key)[0].name for key in ("y1", "y2")]
    assert "a" not in places
    for key in ("y1", "y2"):
        scene.fail(key, NO, immovable=["x"])
    scene.take()
    keys = [f"z{i}" for i in range(20)]
    scene.submit(**{key: ["x"] for key in keys})
    assert scene.take() == []
    assert all(scene.task(key).worker is scene.worker("a") for key in keys)
    scene.finish("w")
    for key in ("y1", "y2", *keys):
        assert scene.run(key)[0].name == "a"
        scene.finish(key)


def test_what_cannot_be_moved_is_noted_once_however_many_need_it(scene: Scene) -> None:
    busy_holder(scene, "b", "d", "e")
    scene.submit(y1=["x"], y2=["x"], **{f"z{i}": ["x"] for i in range(50)})
    for key in ("y1", "y2"):
        scene.fail(key, NO, immovable=["x"])
    state = scene.machine.state
    assert [task.key for task in state.witnesses] == ["x"]
    assert len(state.witnesses[scene.task("x")]) == 2
    assert not state.avoided


def test_who_could_not_get_it_once_is_not_asked_again_while_others_are(scene: Scene) -> None:
    """b may just lack a module; z goes to d, where it may well work."""
    busy_holder(scene, "b", "d")
    scene.submit(y=["x"])
    failed = scene.run("y")[0].name
    scene.fail("y", NO, immovable=["x"])
    assert scene.task("y").worker is scene.worker("a")
    scene.submit(z=["x"])
    assert scene.run("z")[0].name == ({"b", "d"} - {failed}).pop()


def test_what_others_have_got_is_kept_from_those_alone_that_could_not_get_it(scene: Scene) -> None:
    """Two lack what it takes to read x, and f has a copy: e may have one as well."""
    busy_holder(scene, "b", "d", "e", "f")
    scene.submit(y1=["x"], y2=["x"])
    failed = [scene.run(key)[0].name for key in ("y1", "y2")]
    others = [name for name in ("b", "d", "e", "f") if name not in failed]
    scene.holds(others[0], "x")
    for key in ("y1", "y2"):
        scene.fail(key, NO, immovable=["x"])
    scene.submit(z1=["x"], z2=["x"])
    assert sorted(scene.run(key)[0].name for key in ("z1", "z2")) == others


def test_an_idle_worker_takes_nothing_whose_inputs_it_could_not_get(scene: Scene) -> None:
    """What waits on a is not taken by b, which has failed; nor by anybody, once d has as well."""
    busy_holder(scene, "b", "d")
    keys = [f"y{i}" for i in range(6)]
    scene.submit(**{key: ["x"] for key in keys})
    holder = scene.worker("a")
    for key in keys:
        if scene.task(key).worker is not holder:
            scene.fail(key, NO, immovable=["x"])
    assert len(scene.machine.state.witnesses[scene.task("x")]) == 2
    scene.take()
    scene.advance(1.0)
    assert scene.take() == []
    assert all(scene.task(key).worker is holder for key in keys)


def test_a_worker_that_has_gone_bears_no_witness(scene: Scene) -> None:
    busy_holder(scene, "b", "d")
    scene.submit(y=["x"])
    failed = scene.run("y")[0].name
    scene.fail("y", NO, immovable=["x"])
    scene.lose(failed)
    assert not scene.machine.state.witnesses


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
