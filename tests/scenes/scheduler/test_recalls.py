"""Runs that are asked back from a worker that is slow to begin them."""

from shoal.protocol.messages import TaskOptions
from tests.scenes.scheduler.scene import Scene


def runs(scene: Scene) -> list[str]:
    """Which runs began since the last look, and where."""
    return [line for line in scene.take() if ": run " in line]


def test_what_comes_back_waits_for_its_limit_behind_the_more_urgent(scene: Scene) -> None:
    """Two of them may run; x1 was asked back for b, and meanwhile z came."""
    scene.workers("a")
    scene.submit(x0=[], x1=[], options=TaskOptions(limits={"db": 2}))
    scene.join("b")
    scene.advance(0.1)
    assert scene.take()[-1] == "a: recall x1 #1"
    scene.submit(z=[], options=TaskOptions(limits={"db": 2}, priority=1))
    scene.returned("x1")
    assert runs(scene) == ["b: run z #1"]
    scene.finish("z", value=b"1")
    assert runs(scene) == ["b: run x1 #2"]


def test_what_comes_back_waits_for_its_resources_behind_the_more_urgent(scene: Scene) -> None:
    """x1 was asked back for b, and meanwhile z came, which needs all that b has."""
    scene.join("a", resources={"gpu": 2})
    scene.submit(x0=[], x1=[], options=TaskOptions(resources={"gpu": 1}))
    scene.join("b", resources={"gpu": 1})
    scene.advance(0.1)
    assert scene.take()[-1] == "a: recall x1 #1"
    scene.submit(z=[], options=TaskOptions(resources={"gpu": 1}, priority=1, workers=["b"]))
    scene.returned("x1")
    assert scene.worker("b").available["gpu"] >= 0


def test_what_needs_resources_comes_back_to_go_to_whom_it_was_asked_back_for(scene: Scene) -> None:
    """And is not sent where it was, to be asked back for ever."""
    scene.join("a", resources={"gpu": 2})
    scene.submit(x0=[], x1=[], options=TaskOptions(resources={"gpu": 1}))
    scene.join("b", resources={"gpu": 1})
    scene.advance(0.1)
    scene.take()
    scene.returned("x1")
    assert runs(scene) == ["b: run x1 #2"]
