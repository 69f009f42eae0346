"""Work that could run and does not is noticed, told once, and run."""

from shoal.protocol.messages import (
    Message,
    RunTask,
    TaskFinished,
    TaskOptions,
    WorkerHeartbeat,
)
from shoal.scheduler.machine.invariants import check
from shoal.scheduler.machine.permanent_check import TASKS_LOOKED_AT
from shoal.scheduler.model.entities import Worker
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


def test_what_this_very_step_is_about_to_run_was_not_left_out(scene: Scene) -> None:
    """The worker was seen idle before the chain came, and says that x is done and that it lives."""
    scene.workers("a")
    scene.submit(w=[])
    scene.finish("w")
    scene.machine.state.idle_since[scene.worker("a")] = scene.now
    scene.submit(x=[], y=["x"])
    scene.now += 2.0
    _, task, run = scene.run("x")
    done = TaskFinished(task, run, 10, 1.0, None, "builtins.list")
    scene.take()
    scene.from_worker("a", done, WorkerHeartbeat(memory_bytes=1))
    assert "a: run y #1" in scene.take()
    assert not scene.warnings


def leave_out(scene: Scene, key: str, needs: str) -> None:
    """`key` is taken to wait for one input more than it does; it has all, and nobody notices."""
    scene.submit(**{needs: [], key: [needs]})
    scene.task(key).nwaiting += 1
    worker, task, run = scene.run(needs)
    said(scene, worker, TaskFinished(task, run, 10, 1.0, None, "builtins.list"))
    assert scene.state(key) == "waiting"


def said(scene: Scene, worker: Worker, message: Message) -> list[Message]:
    """What a worker is told as it says this; whether all is in order is not looked at."""
    scene.machine.receive_from_worker(worker, [message], scene.now)
    return [each for peer, told in scene.machine.take_outgoing() if peer is worker for each in told]


def looks_until_it_is_run(scene: Scene) -> int:
    """How many signs of life it takes, a good second after each other."""
    worker = scene.worker("a")
    for nth in range(1, 6):
        scene.now += 1.1
        told = said(scene, worker, WorkerHeartbeat(memory_bytes=1))
        if any(isinstance(each, RunTask) for each in told):
            assert not list(check(scene.machine.state))
            return nth
    raise AssertionError("it is still left out")


def test_inputs_that_were_miscounted_are_counted_anew(scene: Scene) -> None:
    scene.workers("a")
    leave_out(scene, "y", needs="x")
    assert looks_until_it_is_run(scene) == 2  # by the first it has just become idle
    [warning] = scene.machine.take_warnings()
    assert warning.startswith("The task 'y' (waiting) could run")


def test_who_was_left_out_behind_very_many_others_is_found_by_a_later_look(scene: Scene) -> None:
    scene.workers("a", nthreads=TASKS_LOOKED_AT)
    many = [f"kept-{index}" for index in range(TASKS_LOOKED_AT)]
    scene.submit(**{key: [] for key in many})
    scene.finish(*many)
    leave_out(scene, "y", needs="x")
    assert looks_until_it_is_run(scene) == 3
