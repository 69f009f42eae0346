"""Paused workers that can make no room by themselves are replaced, one at a time."""

from shoal.protocol.memory import PauseChanged, WantsReplacement
from shoal.protocol.messages import TaskOptions, WorkerHeartbeat
from tests.scenes.scheduler.scene import Scene

WHY = "recycled: its process has 330 MiB of 400 MiB"


def pause(scene: Scene, *names: str) -> None:
    for name in names:
        scene.from_worker(name, PauseChanged(True, "its memory is short"))


def ask(scene: Scene, name: str) -> None:
    scene.from_worker(name, WantsReplacement(WHY, 30.0))


def test_it_goes_once_others_have_what_only_it_holds(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[])
    scene.finish("x")
    scene.join("b")
    pause(scene, "a")
    scene.take()
    ask(scene, "a")
    assert scene.take() == ["b: copy x from a"]
    scene.holds("b", "x")
    assert scene.take() == [f"a: shut down: {WHY}"]
    assert scene.state("x") == "memory"


def test_what_may_run_nowhere_else_runs_on_its_successor(scene: Scene) -> None:
    scene.workers("a", "b")
    pause(scene, "a")
    scene.submit(x=[], options=TaskOptions(workers=["a"]))
    assert scene.take() == []
    ask(scene, "a")
    assert scene.take() == [f"a: shut down: {WHY}"]
    assert scene.state("x") == "no-worker"
    scene.join("a", pid=2, predecessor=1)
    assert scene.take() == ["a: run x #1"]


def test_one_is_replaced_at_a_time(scene: Scene) -> None:
    scene.workers("a", "b")
    scene.submit(x=[], y=[])
    scene.finish("x")
    scene.finish("y")
    scene.join("d")
    pause(scene, "a", "b")
    scene.take()
    ask(scene, "a")
    ask(scene, "b")
    assert scene.take() == ["d: copy x from a"]
    scene.holds("d", "x")
    assert scene.take() == [f"a: shut down: {WHY}"]
    ask(scene, "b")
    assert scene.take() == ["d: copy y from b"]


def test_it_stays_if_all_others_are_paused_and_it_holds_what_nobody_has(scene: Scene) -> None:
    """Else all that leak alike would go round in a circle, and lose what they hold."""
    scene.workers("a", "b")
    scene.submit(x=[])
    scene.finish("x")
    pause(scene, "a", "b")
    scene.take()
    ask(scene, "a")
    assert scene.take() == []
    assert scene.worker("a").status == "paused"
    ask(scene, "b")  # which holds nothing
    assert scene.take() == [f"b: shut down: {WHY}"]


def test_it_stays_if_others_make_no_progress_in_taking_what_it_holds(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[])
    scene.finish("x")
    scene.join("b")
    pause(scene, "a")
    ask(scene, "a")
    scene.take()
    for _ in range(40):
        scene.heartbeat("a")
        scene.heartbeat("b")
        scene.advance(1.0)
    assert scene.take() == []
    assert scene.worker("a").status == "paused"


def test_who_has_gone_on_meanwhile_is_not_replaced(scene: Scene) -> None:
    scene.workers("a", "b")
    pause(scene, "a")
    scene.from_worker("a", PauseChanged(False, ""))
    scene.take()
    ask(scene, "a")
    assert scene.take() == []


def test_a_worker_that_is_full_of_results_is_replaced_only_if_that_helps() -> None:
    """Else results would be moved to and fro for nothing."""
    scene = Scene()
    full = WantsReplacement(WHY, 30.0, is_of_results=True)
    scene.join("a", memory_limit=1000)
    scene.submit(x=[])
    scene.finish("x", nbytes=700)
    scene.join("b", memory_limit=1000)
    pause(scene, "a")
    scene.take()
    scene.from_worker("a", full)
    assert scene.take() == []  # nothing waits
    scene.submit(y=[], options=TaskOptions(workers=["a"]))
    scene.from_worker("b", WorkerHeartbeat(memory_bytes=200))
    scene.from_worker("a", full)
    assert scene.take() == []  # b would be full then, too
    scene.from_worker("b", WorkerHeartbeat(memory_bytes=50))
    scene.from_worker("a", full)
    assert scene.take() == ["b: copy x from a"]
    scene.holds("b", "x")
    assert scene.take() == [f"a: shut down: {WHY}"]
    scene.join("a", pid=2, predecessor=1)
    assert scene.take() == ["a: run y #1"]
