"""The client of a worker's tasks is lost with it: what it wanted is there for their next run."""

from shoal.protocol.detached import ServeTasks
from shoal.scheduler.machine.nested import GRACE_SECONDS
from tests.scenes.scheduler.scene import Scene


def test_what_a_lost_workers_tasks_wanted_is_kept_for_a_while(scene: Scene) -> None:
    """d is the client of w's tasks: x had ended, y runs, z waits; its successor e asks again."""
    scene.workers("a", "w")
    scene.from_client("d", ServeTasks())
    scene.submit(client="d", x=[], y=[], z=["y"])
    scene.finish("x")
    where = scene.task("y").worker
    scene.take()
    scene.lose_client("d")
    assert scene.take() == []  # nothing is freed, nothing called off
    assert [scene.state(key) for key in "xyz"] == ["memory", "processing", "waiting"]

    scene.from_client("e", ServeTasks())
    scene.submit(client="e", x=[], y=[], z=["y"])
    assert scene.task("y").worker is where
    told = scene.take()
    assert len(told) == 1
    assert told[0].startswith("e: x in memory at")

    scene.advance(GRACE_SECONDS + 1)
    assert [scene.state(key) for key in "xyz"] == ["memory", "processing", "waiting"]
    assert not scene.machine.state.keepers
    assert not scene.machine.state.let_go_at


def test_what_no_next_run_asks_for_is_let_go_of_in_the_end(scene: Scene) -> None:
    """Two such clients are lost one after the other; each has its time."""
    scene.workers("a", nthreads=4)
    for client, key in (("d", "x"), ("e", "y")):
        scene.from_client(client, ServeTasks())
        scene.submit(client=client, **{key: []})
        scene.finish(key)
        scene.lose_client(client)
        scene.take()
        scene.advance(GRACE_SECONDS / 2 - 1)
    assert scene.take() == []
    scene.advance(3)
    assert scene.take() == ["a: free x"]
    assert (scene.state("x"), scene.state("y")) == ("forgotten", "memory")
    scene.advance(GRACE_SECONDS / 2)
    assert scene.take() == ["a: free y"]
    assert not scene.machine.state.keepers
    assert not scene.machine.state.let_go_at


def test_what_has_failed_is_not_kept_for_the_next_run(scene: Scene) -> None:
    """It would fail at once, of what may have been the first run's fault."""
    scene.workers("a")
    scene.from_client("d", ServeTasks())
    scene.submit(client="d", x=[])
    scene.fail("x")
    scene.lose_client("d")
    assert scene.state("x") == "forgotten"
    assert not scene.machine.state.keepers


def test_what_another_client_wanted_goes_with_it(scene: Scene) -> None:
    """Whoever connects for a person, and not for tasks."""
    scene.workers("a")
    scene.from_client("d", ServeTasks())
    scene.submit(client="e", x=[])
    scene.lose_client("e")
    assert scene.state("x") == "forgotten"
