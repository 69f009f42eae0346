"""Tasks that may run for so long only: what workers are told, and what becomes of the others."""

from shoal.protocol.messages import TaskOptions, WorkerHeartbeat
from tests.scenes.scheduler.scene import Scene
from tests.scenes.scheduler.test_explain import explained
from tests.scenes.scheduler.test_suspects import fall_silent

LIMITED = TaskOptions(timeout=5.0)


def test_a_worker_is_told_how_long_a_run_may_take(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[], options=LIMITED)
    assert scene.take() == ["a: run x #1 within 5 s"]


def test_a_run_that_took_too_long_is_a_failure_and_retries_are_used(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[], options=TaskOptions(timeout=5.0, retries=1))
    scene.fail("x", "TaskTimeout: too long")
    assert scene.take() == ["a: run x #1 within 5 s", "a: run x #2 within 5 s"]
    scene.fail("x", "TaskTimeout: too long")
    assert scene.take() == ["c: x erred: TaskTimeout: too long"]


def test_a_run_that_nobody_wants_is_ended_if_it_has_a_limit(scene: Scene) -> None:
    """Its answer, that it has come back, changes nothing then."""
    scene.workers("a")
    scene.submit(x=[], options=LIMITED)
    scene.release("x")
    assert scene.take() == ["a: run x #1 within 5 s", "a: recall or end x #1"]
    scene.returned("x", on="a", nth=1)
    assert scene.take() == []


def test_what_a_silent_worker_runs_is_not_ended_as_it_may_still_count() -> None:
    scene = Scene(suspect_seconds=10.0, worker_ttl_seconds=60.0)
    scene.workers("a")
    scene.submit(x=[], options=LIMITED)
    fall_silent(scene)
    assert scene.take() == ["a: run x #1 within 5 s", "a: recall x #1"]


def test_whoever_asks_about_a_run_with_a_limit_reads_when_it_is_ended(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[], options=LIMITED)
    _, _, run = scene.run("x")
    scene.from_worker("a", WorkerHeartbeat(runs=[run], run_seconds=[3.0]))
    assert explained(scene, "x")[1] == (
        "worker a has been executing it for 3.0 s or more (no such task has ended yet); it is "
        "ended after 5.0 s"
    )
