"""Workers that start nothing, as their memory is short."""

import pytest

from shoal.protocol.memory import PauseChanged
from shoal.protocol.messages import TaskOptions
from tests.scenes.scheduler.scene import Scene

WHY = "1.70 GiB of 2.00 GiB are used"
ONLY_A = TaskOptions(workers=["a"])


def pause(scene: Scene, name: str) -> None:
    scene.from_worker(name, PauseChanged(True, WHY))


def resume(scene: Scene, name: str) -> None:
    scene.from_worker(name, PauseChanged(False, ""))


def test_what_a_paused_worker_has_not_begun_runs_elsewhere(scene: Scene) -> None:
    """x has begun there, y was sent, and z is placed."""
    scene.workers("a", "b")
    options = TaskOptions(workers=["a"], allow_other_workers=True)
    scene.submit(i=[], options=options)
    scene.finish("i")
    scene.submit(x=["i"], y=["i"], z=["i"], options=options)
    assert scene.take()[2:] == ["a: run x #1", "a: run y #1"]
    pause(scene, "a")
    assert scene.take() == ["a: recall x #1, y #1", "b: run z #1 (i from a)"]
    scene.returned("y")
    assert scene.take() == ["b: run y #2 (i from a)"]  # a serves what it holds
    scene.finish("x")
    assert scene.state("x") == "memory"


def test_nothing_is_placed_on_a_paused_worker_or_sent_to_it(scene: Scene) -> None:
    scene.workers("a", "b")
    scene.submit(i=[], options=ONLY_A)
    scene.finish("i")
    pause(scene, "a")
    scene.submit(x=["i"], y=[])
    scene.scatter("v")
    assert scene.take()[2:] == [
        "b: run x #1 (i from a)",
        "b: run y #1",
        "c: answer {'v': ['b']}",
    ]
    assert scene.worker("a").identity().status == "paused"


def test_a_task_for_a_paused_worker_waits_for_it(scene: Scene) -> None:
    """Case C010: it runs once the worker, or its successor, may."""
    scene.workers("a", "b")
    pause(scene, "a")
    scene.submit(x=[], options=ONLY_A)
    assert scene.take() == []
    assert scene.state("x") == "no-worker"
    resume(scene, "a")
    assert scene.take() == ["a: run x #1"]


def test_what_comes_back_to_a_task_for_a_paused_worker_alone_waits_too(scene: Scene) -> None:
    scene.workers("a", "b")
    scene.submit(x=[], y=[], options=ONLY_A)
    pause(scene, "a")
    assert scene.take() == ["a: run x #1", "a: run y #1", "a: recall x #1, y #1"]
    scene.returned("y")
    assert scene.state("y") == "no-worker"
    resume(scene, "a")
    assert scene.take() == ["a: run y #2"]


def test_while_all_are_paused_tasks_wait_and_go_on_with_the_first_that_resumes(
    scene: Scene,
) -> None:
    scene.workers("a", "b")
    pause(scene, "a")
    pause(scene, "b")
    scene.submit(x=[], y=[])
    assert scene.take() == []
    assert scene.state("x") == "queued"
    resume(scene, "b")
    assert scene.take() == ["b: run x #1", "b: run y #1"]


def test_tasks_with_demands_leave_a_paused_worker_and_come_back(scene: Scene) -> None:
    scene.join("a", resources={"gpu": 1.0})
    options = TaskOptions(resources={"gpu": 1.0})
    scene.submit(x=[], y=[], options=options)
    pause(scene, "a")
    assert scene.state("y") == "no-worker"
    scene.join("b", resources={"gpu": 1.0})
    assert scene.take() == ["a: run x #1", "a: recall x #1", "b: run y #1"]
    pause(scene, "b")
    scene.submit(z=[], options=options)
    resume(scene, "b")
    scene.finish("y")
    assert scene.take()[-1] == "b: run z #1"


def test_a_worker_that_pauses_twice_is_told_once(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[])
    pause(scene, "a")
    pause(scene, "a")
    assert scene.take() == ["a: run x #1", "a: recall x #1"]
    assert scene.worker("a").pause_why == WHY


def test_a_paused_worker_that_is_about_to_go_takes_no_work_when_it_resumes(scene: Scene) -> None:
    scene.workers("a")
    pause(scene, "a")
    scene.leave("a")
    resume(scene, "a")
    scene.submit(x=[])
    assert scene.take() == []


@pytest.fixture
def told() -> Scene:
    return Scene(stranded_warning_seconds=3.0)


def test_who_waits_is_told_once_all_have_been_paused_for_a_while(told: Scene) -> None:
    told.workers("a", "b")
    told.submit(x=[], y=[])
    told.want("x", client="d")
    pause(told, "a")
    told.finish("x")
    told.finish("y")
    told.take()
    told.submit(z=[])
    told.take()
    pause(told, "b")
    told.returned("z")
    told.take()
    told.advance(2.9)
    assert told.take() == []
    told.advance(0.2)
    assert told.take() == [f"c: all 2 paused for 3 s, a: {WHY}"]  # d waits for nothing
    told.want("z", client="d")
    told.take()
    told.advance(3.0)
    assert told.take() == [f"d: all 2 paused for 6 s, a: {WHY}"]
    told.advance(10.0)
    assert told.take() == []


def test_nobody_is_told_of_a_pause_that_ends_in_time(told: Scene) -> None:
    told.workers("a", "b")
    told.submit(x=[], y=[], z=[])
    pause(told, "a")
    pause(told, "b")
    told.advance(2.0)
    resume(told, "b")
    told.advance(0.5)
    pause(told, "b")
    told.take()
    told.advance(2.9)
    assert told.take() == []
    told.join("e")
    told.advance(10.0)
    assert not any(line.startswith("c: ") for line in told.take())


def test_the_last_that_was_not_paused_may_have_gone(told: Scene) -> None:
    told.workers("a", "b")
    pause(told, "a")
    told.lose("b")
    told.submit(x=[])
    told.take()
    told.advance(3.1)
    assert told.take() == [f"c: all 1 paused for 3 s, a: {WHY}"]
    told.lose("a")
    told.submit(y=[])
    told.take()
    told.advance(400.0)
    assert told.take() == []


def test_it_is_told_again_after_some_minutes(told: Scene) -> None:
    told.workers("a")
    pause(told, "a")
    told.submit(x=[])
    told.take()
    told.advance(3.1)
    assert told.take() == [f"c: all 1 paused for 3 s, a: {WHY}"]
    for _ in range(10):
        told.heartbeat("a")
        told.advance(29.0)
    assert told.take() == []
    told.heartbeat("a")
    told.advance(15.0)
    (again,) = told.take()
    assert again.startswith("c: all 1 paused for 30")


def test_nobody_is_told_as_long_as_all_that_there_is_to_do_goes_on(told: Scene) -> None:
    told.workers("a")
    told.submit(x=[], y=["x"])
    pause(told, "a")
    told.take()
    told.advance(10.0)
    assert told.take() == []
    told.finish("x")
    told.take()
    told.advance(3.0)
    assert told.take() == [f"c: all 1 paused for 12 s, a: {WHY}"]
