"""A scheduler that has come back waits for those who may have the results, and not for long."""

from shoal.ids import Epoch, Key
from shoal.protocol.messages import ClientHeartbeat, RegisterClient, SubmitTasks
from shoal.protocol.placement import ExplainTasks
from tests.scenes.scheduler.scene import Actor, Scene


def returns(scene: Scene, client: str, *workers: str) -> None:
    """A client comes back that knew workers."""
    addresses = [f"tcp://{name}:1" for name in workers]
    message = RegisterClient(client, returning=True, workers=addresses)
    scene.actors[client] = Actor(scene.machine.client_joined(message, scene.now))
    scene.take()
    scene.machine.take_outgoing()


def says_it_is_all(scene: Scene, client: str) -> None:
    """A client has said all that it lives on."""
    scene.from_client(client, ClientHeartbeat())


def test_nothing_is_run_before_the_workers_that_a_client_knows_are_back(scene: Scene) -> None:
    returns(scene, "c", "a", "b")
    scene.submit(x=[], y=[])
    says_it_is_all(scene, "c")
    scene.come_back("a", "x")
    assert scene.take() == ["a: adopt x"]
    scene.come_back("b")
    assert scene.take() == ["a: run y #1"]


def test_nothing_waits_if_all_that_a_client_knows_are_there(scene: Scene) -> None:
    scene.workers("a")
    returns(scene, "c", "a")
    scene.submit(x=[])
    says_it_is_all(scene, "c")
    assert scene.take() == ["a: run x #1"]


def test_nothing_is_run_before_a_client_that_came_back_has_said_all(scene: Scene) -> None:
    """x is needed by y alone, and that is found."""
    scene.come_back("a", "y")
    returns(scene, "c", "a")
    scene.submit(x=[], wanted=[], held=["x"])
    assert scene.take() == []
    scene.submit(y=["x"], wanted=["y"])
    assert scene.take() == ["a: adopt y"]
    number = scene.actor("c").number("x")
    scene.from_client("c", SubmitTasks(number, [], [], [], [], [""], [], let_go=[number]))
    says_it_is_all(scene, "c")
    assert scene.take() == []
    scene.submit(z=[])
    assert scene.take() == ["a: run z #1"]


def test_a_client_that_goes_before_it_has_said_all_is_not_waited_for(scene: Scene) -> None:
    scene.come_back("a")
    returns(scene, "c", "a")
    returns(scene, "d", "a")
    scene.submit(x=[])
    says_it_is_all(scene, "c")
    assert scene.take() == []
    scene.lose_client("d")
    assert scene.take() == ["a: run x #1"]


def test_who_does_not_come_is_waited_for_some_seconds(scene: Scene) -> None:
    scene.workers("a")
    returns(scene, "c", "a", "b")
    scene.submit(x=[])
    scene.advance(4.9)
    assert scene.take() == []
    scene.advance(0.2)
    assert scene.take() == ["a: run x #1"]


def test_what_was_queued_before_the_first_came_back_waits_as_well(scene: Scene) -> None:
    """A client came before any worker did."""
    scene.submit(x=[], y=[])
    scene.come_back("a", nthreads=2)
    assert scene.take() == []
    scene.advance(5)
    assert scene.take() == ["a: run x #1", "a: run y #1"]


def test_another_client_that_comes_back_meanwhile_names_others(scene: Scene) -> None:
    """c knew a, which is there; d knew b, which is not."""
    scene.come_back("a")
    returns(scene, "c", "a")
    returns(scene, "d", "b")
    scene.submit(x=[])
    assert scene.take() == []
    scene.come_back("b", "x")
    assert scene.take() == ["b: adopt x"]


def test_it_happens_once(scene: Scene) -> None:
    """Who comes late finds runs under way."""
    scene.come_back("a")
    scene.advance(5)
    scene.come_back("b")
    scene.submit(x=[])
    assert scene.take() == ["a: run x #1"]


def test_a_scheduler_that_has_been_there_for_long_waits_for_nobody(scene: Scene) -> None:
    scene.workers("a")
    scene.advance(100)
    returns(scene, "c", "b")
    scene.submit(x=[])
    assert scene.take() == ["a: run x #1"]


def test_it_can_be_switched_off() -> None:
    scene = Scene(recovery_seconds=0.0)
    scene.come_back("a")
    scene.submit(x=[])
    assert scene.take() == ["a: run x #1"]


def test_whoever_asks_is_told_why_nothing_is_run(scene: Scene) -> None:
    returns(scene, "c", "a")
    scene.workers("b")
    scene.submit(x=[])
    scene.call(ExplainTasks, keys=[Key("x")])
    [line] = scene.take()
    assert "the scheduler was lost, and has come back: it has nothing run until 1 worker (" in line


def test_whoever_asks_is_told_who_runs_a_task_since_before(scene: Scene) -> None:
    scene.come_back("a", runs=["x"])
    scene.submit(x=[])
    scene.call(ExplainTasks, keys=[Key("x")])
    [line] = scene.take()
    assert "worker a runs it since before the scheduler was lost" in line


def test_a_worker_of_this_epoch_that_comes_back_begins_no_recovery(scene: Scene) -> None:
    scene.join("a", epoch=Epoch(7))
    scene.submit(x=[])
    assert scene.take() == ["a: run x #1"]
