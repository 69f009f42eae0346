"""Workers join, leave and fall silent."""

import pytest

from shoal.errors import NameTaken
from shoal.protocol.membership import AwaitWorkers
from shoal.protocol.messages import ClientHeartbeat, RegisterClient
from tests.scenes.scheduler.scene import Actor, Scene


def test_a_name_that_is_taken_is_refused_and_nothing_changes(scene: Scene) -> None:
    """Another worker, at another address, calls itself a; x goes on as if nobody had come."""
    first = scene.join("a")
    scene.submit(x=[])
    scene.take()

    with pytest.raises(NameTaken, match="tcp://a:1 is connected under the name 'a'"):
        scene.join("a", address="tcp://elsewhere:1")
    assert scene.machine.take_outgoing() == []
    assert scene.machine.state.workers == {"tcp://a:1": first}
    assert scene.machine.state.worker_by_id == {first.id: first}


def test_a_name_may_be_another_workers_host(scene: Scene) -> None:
    """Only names have to differ from each other."""
    scene.join("a", host="b")
    scene.join("b", host="b")
    assert len(scene.machine.state.workers) == 2


def test_a_silent_worker_is_given_up_after_its_time_to_live() -> None:
    """b gives a sign of life, a doesn't: what a ran is run on b."""
    scene = Scene(worker_ttl_seconds=60.0)
    scene.workers("a", "b")
    scene.submit(x=[])
    assert scene.take() == ["a: run x #1"]

    scene.advance(50)
    scene.heartbeat("b")
    assert scene.advance(11) == ["a"]
    assert sorted(scene.take()) == [
        "a: shut down: the scheduler did not hear from it for 60 s",
        "b: run x #2",
    ]
    assert scene.task("x").blame == 1
    assert scene.worker("b").memory_bytes == 1


def test_nothing_is_to_be_done_with_time_when_nobody_is_there() -> None:
    """The last worker was given up, and no other comes."""
    scene = Scene(worker_ttl_seconds=60.0)
    scene.workers("a")
    assert scene.advance(100) == ["a"]
    assert scene.machine.wake_at is None


def test_a_worker_that_is_heard_lives_on() -> None:
    """Any message will do."""
    scene = Scene(worker_ttl_seconds=60.0)
    scene.workers("a")
    for _ in range(5):
        assert scene.advance(50) == []
        scene.heartbeat("a")
    assert scene.take() == []


def test_who_awaits_workers_is_answered_when_they_are_there(scene: Scene) -> None:
    """Two are asked for; one that leaves doesn't count."""
    scene.workers("a")
    scene.call(AwaitWorkers, nworkers=1)
    assert scene.take() == ["c: answer 1"]

    scene.call(AwaitWorkers, nworkers=2)
    scene.leave("a")
    scene.join("b")
    assert scene.take() == []

    scene.join("d")
    assert scene.take() == ["c: answer 2"]

    scene.join("e")
    assert scene.take() == []


def test_a_client_that_left_is_not_answered(scene: Scene) -> None:
    """c and d both wait, and c goes away."""
    scene.call(AwaitWorkers, nworkers=1)
    scene.call(AwaitWorkers, client="d", nworkers=1)
    scene.lose_client("c")
    scene.join("a")
    assert scene.take() == ["d: answer 1"]


def join_that_may_return(scene: Scene, name: str) -> Actor:
    """A client that looks for a scheduler which it has lost."""
    register = RegisterClient(name, may_return=True)
    actor = scene.actors[name] = Actor(scene.machine.client_joined(register, scene.now))
    scene.machine.take_outgoing()
    return actor


def test_a_client_that_is_silent_for_long_is_let_go_of_if_it_can_come_back() -> None:
    """Its connection is to end, and what it wants goes with it; d could not come back."""
    scene = Scene(client_ttl_seconds=300.0)
    frozen = join_that_may_return(scene, "c")
    scene.submit(x=[], client="c")
    scene.submit(y=[], client="d")
    scene.advance(299.0)
    assert scene.machine.take_silent_clients() == []
    scene.advance(2.0)
    assert scene.machine.take_silent_clients() == [frozen.client]


def test_a_client_that_gives_signs_of_life_is_kept() -> None:
    scene = Scene(client_ttl_seconds=300.0)
    join_that_may_return(scene, "c")
    for _ in range(10):
        scene.advance(100.0)
        scene.from_client("c", ClientHeartbeat())
    assert scene.machine.take_silent_clients() == []
