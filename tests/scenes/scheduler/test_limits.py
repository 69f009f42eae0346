"""Names of which only so many tasks run at once, in the whole cluster."""

import pytest

from shoal.protocol.framing import ProtocolError
from shoal.protocol.limits import GetLimits, SetLimits
from shoal.protocol.messages import TaskOptions
from shoal.protocol.slots import LongRunning, RunRescheduled
from tests.scenes.scheduler.scene import Scene


def named(**limits: int) -> TaskOptions:
    return TaskOptions(limits=limits)


def out(scene: Scene) -> list[str]:
    """Which runs began since the last look, and where."""
    return [line for line in scene.take() if ": run " in line]


def test_no_more_run_at_once_than_they_say_whatever_their_workers(scene: Scene) -> None:
    scene.workers("a", "b", "c", nthreads=4)
    scene.submit(**{f"x{i}": [] for i in range(5)}, options=named(db=2))
    assert out(scene) == ["a: run x0 #1", "b: run x1 #1"]
    scene.finish("x1", value=b"1")
    assert out(scene) == ["c: run x2 #1"]
    scene.finish("x0", value=b"1")
    scene.finish("x2", value=b"1")
    assert len(out(scene)) == 2
    assert scene.state("x4") == "processing"


def test_others_pass_by_those_that_wait_for_their_limit(scene: Scene) -> None:
    scene.workers("a", nthreads=8)
    scene.submit(x=[], y=[], options=named(db=1))
    scene.submit(z=[])
    scene.submit(w=[], options=named(web=1))
    assert sorted(out(scene)) == ["a: run w #1", "a: run x #1", "a: run z #1"]
    assert scene.state("y") == "queued"


def test_a_task_of_several_names_needs_room_in_each(scene: Scene) -> None:
    scene.workers("a", nthreads=8)
    scene.submit(x=[], options=named(db=1))
    scene.submit(y=[], options=named(db=1, web=1))
    scene.submit(z=[], options=named(web=1))
    assert out(scene) == ["a: run x #1", "a: run z #1"]
    scene.finish("x", value=b"1")
    assert out(scene) == []
    scene.finish("z", value=b"1")
    assert out(scene) == ["a: run y #1"]


def test_each_task_goes_by_the_number_that_it_says_itself(scene: Scene) -> None:
    """All that have the name count."""
    scene.workers("a", nthreads=8)
    scene.submit(x=[], y=[], z=[], options=named(db=3))
    scene.submit(w=[], options=named(db=1))
    assert len(out(scene)) == 3
    scene.finish("x", value=b"1")
    scene.finish("y", value=b"1")
    assert out(scene) == []
    scene.finish("z", value=b"1")
    assert out(scene) == ["a: run w #1"]


def test_what_is_set_holds_instead_and_for_what_waits_already(scene: Scene) -> None:
    scene.workers("a", nthreads=8)
    scene.submit(**{f"x{i}": [] for i in range(4)}, options=named(db=1))
    assert len(out(scene)) == 1
    scene.call(SetLimits, limits={"db": 3})
    assert len(out(scene)) == 2
    scene.call(SetLimits, limits={"db": 0})
    for key in ("x0", "x1", "x2"):
        scene.finish(key, value=b"1")
    assert out(scene) == []
    scene.call(SetLimits, limits={"db": None})
    assert out(scene) == ["a: run x3 #1"]


def test_a_name_without_a_number_is_bounded_once_that_is_set() -> None:
    scene = Scene(limits={"disk": 1})
    scene.workers("a", nthreads=8)
    scene.submit(x=[], y=[], options=named(db=0))
    scene.submit(p=[], q=[], options=named(disk=0))
    assert len(out(scene)) == 3


def test_limits_are_shown_as_they_stand(scene: Scene) -> None:
    scene.workers("a", nthreads=8)
    scene.submit(x=[], y=[], z=[], options=named(db=2))
    scene.call(SetLimits, limits={"web": 5})
    scene.take()
    scene.call(GetLimits)
    (line,) = scene.take()
    assert "'web': LimitSeen(nruns_max=5, nruns=0, nwaiting=0)" in line
    assert "'db': LimitSeen(nruns_max=None, nruns=2, nwaiting=1)" in line


def test_a_limit_below_zero_is_no_limit(scene: Scene) -> None:
    with pytest.raises(ProtocolError):
        scene.call(SetLimits, limits={"db": -1})


@pytest.mark.parametrize("end", ["fail", "retry", "returned", "reschedule", "lose", "released"])
def test_a_run_gives_its_place_back_however_it_ends(scene: Scene, end: str) -> None:
    scene.workers("a", "b", nthreads=1)
    scene.submit(x=[], options=TaskOptions(limits={"db": 1}, retries=int(end == "retry")))
    scene.submit(y=[], options=named(db=1))
    _worker, task, run = scene.run("x")
    if end in ("fail", "retry"):
        scene.fail("x")
    elif end == "returned":
        scene.returned("x")
    elif end == "reschedule":
        scene.from_worker("a", RunRescheduled(task, run))
    elif end == "lose":
        scene.lose("a")
    else:
        scene.release("x")
        assert scene.state("y") == "queued", "its thread can't be stopped"
        scene.finish("x")
    is_again = end in ("retry", "returned", "reschedule", "lose")
    assert scene.state("x" if is_again else "y") == "processing"
    assert scene.machine.state.limits.nruns == {"db": 1}
    if is_again:
        scene.finish("x", value=b"1")
    scene.finish("y", value=b"1")
    assert scene.machine.state.limits.nruns == {}


def test_what_has_seceded_is_counted_until_it_ends(scene: Scene) -> None:
    """It goes on with whatever its name stands for."""
    scene.workers("a", nthreads=4)
    scene.submit(x=[], y=[], options=named(db=1))
    _, task, run = scene.run("x")
    scene.from_worker("a", LongRunning(task, run, 0.1))
    assert scene.state("y") == "queued"
    scene.finish("x", value=b"1")
    assert scene.state("y") == "processing"


def test_limits_hold_beside_resources_and_named_workers(scene: Scene) -> None:
    """A place that gets free on one worker may be had by a task of another."""
    scene.join("a", nthreads=2, resources={"gpu": 1.0})
    scene.join("b", nthreads=2)
    scene.submit(x=[], options=named(db=1))
    scene.submit(y=[], options=TaskOptions(limits={"db": 1}, workers=["b"]))
    scene.submit(z=[], options=TaskOptions(limits={"db": 1}, resources={"gpu": 1.0}))
    assert out(scene) == ["a: run x #1"]
    scene.finish("x", value=b"1")
    assert out(scene) == ["b: run y #1"]
    scene.finish("y", value=b"1")
    assert out(scene) == ["a: run z #1"]


def test_the_most_urgent_of_a_name_is_the_next_also_where_a_worker_joins(scene: Scene) -> None:
    """Case C076."""
    scene.workers("a", nthreads=1)
    for i in range(4):
        scene.submit(**{f"t{i}": []}, options=TaskOptions(priority=float(i), limits={"db": 2}))
    assert out(scene) == ["a: run t0 #1", "a: run t1 #1"]
    scene.workers("b", nthreads=2)
    assert out(scene) == []
    scene.finish("t0", value=b"1")
    assert out(scene) == ["b: run t3 #1"]


def test_a_suspect_with_a_name_runs_alone_and_then_the_others(scene: Scene) -> None:
    scene.workers("a", "b", nthreads=2)
    scene.submit(x=[], options=named(db=1))
    scene.submit(y=[], z=[])
    scene.lose("a")
    scene.take()
    assert scene.state("x") == "queued"
    scene.finish("y", value=b"1")
    if scene.state("z") == "processing":
        scene.finish("z", value=b"1")
    assert scene.state("x") == "processing"


def test_without_any_worker_they_wait_for_one(scene: Scene) -> None:
    scene.submit(x=[], options=named(db=1))
    assert scene.state("x") == "no-worker"
    scene.workers("a")
    assert out(scene) == ["a: run x #1"]


def test_inputs_are_used_where_they_are_if_there_is_room(scene: Scene) -> None:
    scene.workers("a", "b", nthreads=2)
    scene.submit(x=[])
    scene.finish("x", nbytes=10**9)
    scene.submit(y=["x"], z=["x"], options=named(db=1))
    assert out(scene)[-1] == "a: run y #1"
