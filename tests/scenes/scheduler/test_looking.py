"""Looks that the machine answers, and clients that are told who comes and goes."""

from shoal.protocol.looking import CallOfTask
from shoal.protocol.messages import RegisterClient
from tests.scenes.scheduler.scene import Actor, Scene


def test_how_to_call_a_task_is_told_with_what_it_needs(scene: Scene) -> None:
    """Its code and its inputs, in the order of the arguments."""
    scene.workers("a")
    scene.submit(code="g", x=[], y=[])
    scene.submit(z=["y", "x"])
    scene.take()
    scene.call(CallOfTask, key="z")
    expected = "TaskCall(key='z', code=b'f', argument=b'', dependencies=['y', 'x'])"
    assert scene.take() == [f"c: answer {expected}"]


def test_a_task_that_failed_by_another_is_called_as_that_one(scene: Scene) -> None:
    """x raises, and so y and z fail; w has not failed."""
    scene.workers("a", nthreads=2)
    scene.submit(x=[], y=["x"], z=["y"], w=[])
    scene.fail("x")
    scene.take()
    for key in ("z", "x"):
        scene.call(CallOfTask, key=key, is_error=True)
    assert [line.partition(" code")[0] for line in scene.take()] == [
        "c: answer TaskCall(key='x',"
    ] * 2
    scene.call(CallOfTask, key="w", is_error=True)
    scene.call(CallOfTask, key="nobody's")
    assert [line[:40] for line in scene.take()] == [
        "c: refused NotATask: No errored futures ",
        "c: refused NotATask: No task is known by",
    ]


def test_a_scattered_value_can_not_be_called(scene: Scene) -> None:
    """There is no code of it."""
    scene.workers("a")
    scene.scatter("x")
    scene.take()
    scene.call(CallOfTask, key="x")
    assert scene.take()[0].startswith("c: refused NotATask")


def test_a_client_that_watches_is_told_who_is_there_and_who_comes_and_goes(scene: Scene) -> None:
    """Another client is not, and nobody is once the watcher has gone."""
    scene.workers("a")
    scene.actor("d")
    scene.take()
    joined = scene.machine.client_joined(RegisterClient("w", {}, True), scene.now)
    scene.actors["w"] = Actor(joined)
    scene.workers("b")
    scene.lose("a")
    assert scene.take() == ["w: workers: a", "w: joined: b", "w: left: a"]
    scene.lose_client("w")
    scene.workers("c")
    assert scene.take() == []


def test_versions_that_differ_from_a_client_s_are_told_with_its_welcome(scene: Scene) -> None:
    """Of the workers alone that have others; and nothing to a client that does not say its own."""
    scene.machine.about.versions = {"python": "3.12"}
    scene.join("a", versions={"python": "3.11"})
    scene.join("b", versions={"python": "3.12"})
    scene.take()
    client = scene.machine.client_joined(RegisterClient("w", {"python": "3.12"}), scene.now)
    ((_, (welcome,)),) = scene.machine.take_outgoing()
    assert welcome.versions == {"python": "3.12"}
    assert welcome.workers_versions == {"tcp://a:1": {"python": "3.11"}}
    scene.machine.client_lost(client, scene.now)
    scene.machine.client_joined(RegisterClient("v"), scene.now)
    ((_, (welcome,)),) = scene.machine.take_outgoing()
    assert welcome.workers_versions == {}
