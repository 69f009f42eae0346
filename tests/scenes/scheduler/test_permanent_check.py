"""Work that could run and does not is noticed, told once, and run."""

from shoal.protocol.messages import TaskOptions
from tests.scenes.scheduler.scene import Scene


def test_a_worker_that_was_left_out_of_an_index_is_found_again(scene: Scene) -> None:
    """The omission is planted: it has room, and the queue does not know of it."""
    scene.workers("a")
    scene.machine.state.open.discard(scene.worker("a"))
    scene.submit(x=[])
    scene.heartbeat("a")
    assert scene.take() == []
    scene.now += 0.9
    scene.heartbeat("a")
    assert scene.take() == []
    scene.now += 0.2
    scene.heartbeat("a")
    assert scene.take() == ["a: run x #1"]
    [warning] = scene.warnings
    assert warning.startswith(
        "The task 'x' (queued) could run, and worker tcp://a:1 has had nothing to do for 1.1 s."
    )
    assert "released" in warning


def test_the_same_again_is_mended_and_told_no_more(scene: Scene) -> None:
    scene.workers("a")
    for key in ("x", "y"):
        scene.machine.state.open.discard(scene.worker("a"))
        scene.submit(**{key: []})
        scene.heartbeat("a")
        scene.now += 1.5
        scene.heartbeat("a")
        scene.finish(key)
    assert len(scene.warnings) == 1


def test_what_waits_for_what_nobody_has_is_no_omission(scene: Scene) -> None:
    scene.join("a", resources={"gpu": 1.0})
    scene.submit(x=[], options=TaskOptions(resources={"gpu": 2.0}))
    scene.submit(y=[], options=TaskOptions(workers=["b"]))
    scene.scatter("v")
    scene.submit(z=["v"])
    scene.take()
    for _ in range(4):
        scene.now += 1.0
        scene.heartbeat("a")
    assert scene.take() == []
    assert not scene.warnings


def test_a_worker_without_anything_to_do_notes_nothing(scene: Scene) -> None:
    scene.workers("a", "b")
    scene.submit(x=[])
    scene.heartbeat("b")
    scene.finish("x")
    scene.heartbeat("a")
    assert not scene.machine.state.idle_since
