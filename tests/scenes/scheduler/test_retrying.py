"""Failed tasks that are tried again."""

from shoal.protocol.holding import RetryTasks
from shoal.protocol.messages import TaskOptions
from shoal.scheduler.machine.on_holding import failed_anew
from shoal.scheduler.model.entities import Task
from tests.scenes.scheduler.scene import Scene


def retry(scene: Scene, *keys: str, client: str = "c") -> None:
    actor = scene.actor(client)
    scene.from_client(client, RetryTasks([actor.number(key) for key in keys]))


def test_a_failed_task_runs_again_with_all_its_retries(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[], options=TaskOptions(retries=1))
    scene.fail("x")
    scene.fail("x")
    assert scene.take() == ["a: run x #1", "a: run x #2", "c: x erred: ValueError: no"]
    retry(scene, "x")
    assert scene.take() == ["c: x is tried again", "a: run x #3"]
    scene.fail("x")
    assert scene.take() == ["a: run x #4"]
    scene.finish("x")
    assert scene.take() == ["c: x in memory at a"]


def test_what_failed_first_is_tried_first_and_all_who_want_it_are_told(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[], y=["x"], z=["y"], wanted=["z"])
    scene.want("x", client="f")
    scene.fail("x")
    scene.take()
    retry(scene, "z")
    assert scene.take() == ["c: z is tried again", "f: x is tried again", "a: run x #2"]
    scene.finish("x", value=b"1")
    scene.finish("y", value=b"1")
    scene.finish("z", value=b"1")
    assert scene.state("z") == "memory"


def test_one_that_failed_with_it_stays_failed_until_it_is_asked_for(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[], y=["x"])
    scene.fail("x")
    retry(scene, "x")
    scene.finish("x", value=b"1")
    assert [scene.state(key) for key in "xy"] == ["memory", "erred"]
    scene.take()
    retry(scene, "y")
    assert scene.take() == ["c: y is tried again", "a: run y #1"]


def test_a_task_that_killed_workers_is_given_the_benefit_of_the_doubt() -> None:
    scene = Scene(allowed_failures=0)
    scene.workers("a")
    scene.submit(x=[])
    scene.lose("a")
    assert scene.state("x") == "erred"
    scene.join("b")
    retry(scene, "x")
    assert scene.task("x").blame == 0
    scene.finish("x", value=b"1")
    assert scene.state("x") == "memory"


def test_what_has_not_failed_goes_on_and_is_told_as_it_is(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[])
    retry(scene, "x")
    assert scene.take() == ["a: run x #1", "c: x is tried again"]
    scene.finish("x")
    scene.take()
    retry(scene, "x")
    assert scene.take() == ["c: x is tried again", "c: x in memory at a"]


def test_a_scattered_value_that_was_lost_fails_again(scene: Scene) -> None:
    scene.workers("a", "b")
    scene.scatter("s")
    scene.holds("a", "s")
    scene.lose("a")
    scene.take()
    retry(scene, "s")
    said = scene.take()
    assert said[0] == "c: s is tried again"
    assert said[1].startswith("c: s erred")


def test_a_task_of_which_not_all_inputs_were_known_is_not_tried(scene: Scene) -> None:
    """It would run without them."""
    scene.workers("a")
    scene.submit(x=[])
    scene.release("x")
    scene.submit(y=["x"])
    said = scene.take()
    assert said[-1].startswith("c: y erred")
    retry(scene, "y")
    again = scene.take()
    assert again[0] == "c: y is tried again"
    assert again[1].startswith("c: y erred")


def test_what_several_tasks_of_one_call_share_is_looked_at_once(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[], y=["x"], z=["x"])
    scene.fail("x")
    x, y, z = (scene.task(key) for key in "xyz")
    seen: dict[Task, None] = {}
    assert failed_anew(y, seen) == [y, x]
    assert failed_anew(z, seen) == [z]
    assert failed_anew(z, seen) == []
    scene.take()
    retry(scene, "y", "z")
    tried = [f"c: {key} is tried again" for key in "yxz"]
    assert scene.take() == [*tried, "a: run x #2"]
