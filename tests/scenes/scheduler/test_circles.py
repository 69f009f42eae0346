"""Tasks that wait for what those that submitted them have, and who is told of it."""

import pytest

from shoal.ids import Key
from shoal.protocol.messages import TaskOptions
from shoal.protocol.placement import ExplainTasks
from tests.scenes.scheduler.scene import Scene


@pytest.fixture
def scene() -> Scene:
    scene = Scene(stranded_warning_seconds=3.0)
    scene.machine.state.serving[scene.actor("inner").client] = None
    return scene


def within(key: str, **limits: int) -> TaskOptions:
    return TaskOptions(limits=limits, inside=Key(key))


def told(scene: Scene) -> list[str]:
    """What clients hear of it."""
    return [line for line in scene.take() if " needs " in line]


def test_who_waits_for_a_task_that_may_wait_for_its_own_place_is_told(scene: Scene) -> None:
    scene.workers("a", nthreads=4)
    scene.submit(outer=[], options=TaskOptions(limits={"db": 1}))
    scene.submit(x=[], client="inner", options=within("outer", db=1))
    assert scene.state("x") == "queued"
    scene.take()
    scene.advance(3.1)
    assert told(scene) == ["c: x needs db of outer, 1 in all"]
    scene.submit(y=[], client="inner", options=within("outer", db=1))
    scene.heartbeat("a")
    scene.advance(4)
    assert told(scene) == []
    scene.call(ExplainTasks, keys=[Key("x")])
    assert "'outer', which has submitted it, has what it needs" in scene.take()[-1]


def test_while_anybody_else_has_a_place_nobody_is_told(scene: Scene) -> None:
    """Once he has ended, the others go on."""
    scene.workers("a", nthreads=4)
    scene.submit(outer=[], other=[], options=TaskOptions(limits={"db": 2}))
    scene.submit(x=[], client="inner", options=within("outer", db=2))
    scene.advance(3.1)
    assert told(scene) == []
    scene.finish("other", value=b"1")
    assert scene.state("x") == "processing"


def test_several_that_have_all_places_are_told_of_together(scene: Scene) -> None:
    scene.workers("a", nthreads=4)
    scene.submit(p=[], q=[], options=TaskOptions(limits={"db": 2}))
    scene.submit(x=[], client="inner", options=within("p", db=2))
    scene.advance(2)
    scene.submit(y=[], client="inner", options=within("q", db=2))
    scene.advance(1.1)
    assert told(scene) == ["c: x needs db of p, 2 in all"]


def test_those_that_come_later_are_looked_at_later(scene: Scene) -> None:
    """Nobody has submitted anything in the place of q when x is looked at."""
    scene.workers("a", nthreads=4)
    scene.submit(p=[], q=[], options=TaskOptions(limits={"db": 2}))
    scene.submit(x=[], client="inner", options=within("p", db=2))
    scene.heartbeat("a")
    scene.advance(3.1)
    scene.submit(y=[], client="inner", options=within("q", db=2))
    scene.heartbeat("a")
    scene.advance(3.1)
    assert told(scene) == ["c: x needs db of p, 2 in all"]


def test_the_same_goes_for_resources(scene: Scene) -> None:
    scene.join("a", nthreads=4, resources={"gpu": 1.0})
    scene.submit(outer=[], options=TaskOptions(resources={"gpu": 1.0}))
    inner = TaskOptions(resources={"gpu": 1.0}, inside=Key("outer"))
    scene.submit(x=[], client="inner", options=inner)
    scene.advance(3.1)
    assert told(scene) == ["c: x needs gpu of outer, 1 in all"]


def test_where_another_worker_will_have_it_nobody_is_told(scene: Scene) -> None:
    for name in "ab":
        scene.join(name, nthreads=1, resources={"gpu": 1.0})
    scene.submit(outer=[], other=[], options=TaskOptions(resources={"gpu": 1.0}))
    inner = TaskOptions(resources={"gpu": 1.0}, inside=Key("outer"))
    scene.submit(x=[], client="inner", options=inner)
    scene.advance(3.1)
    assert told(scene) == []


def test_what_was_let_go_in_time_is_not_told_of(scene: Scene) -> None:
    scene.workers("a", nthreads=4)
    scene.submit(outer=[], options=TaskOptions(limits={"db": 1}))
    scene.submit(x=[], client="inner", options=within("outer", db=1))
    scene.release("x", client="inner")
    scene.advance(3.1)
    assert told(scene) == []
    assert not scene.machine.state.nested_since


def test_what_a_task_needs_that_nobody_has_is_told_to_those_that_want_the_outer_one(
    scene: Scene,
) -> None:
    """Nobody reads what the client of a worker logs."""
    scene.workers("a", nthreads=4)
    scene.submit(outer=[])
    inner = TaskOptions(resources={"gpu": 1.0}, inside=Key("outer"))
    scene.submit(x=[], client="inner", options=inner)
    scene.take()
    scene.advance(3.1)
    assert scene.take() == ["c: x and 0 stranded: {'gpu': 1.0}, 1 workers"]
