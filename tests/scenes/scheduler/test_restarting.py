"""Workers that are replaced, and everything that ends as all of them are."""

from shoal.protocol.membership import RestartWorkers
from shoal.protocol.messages import TaskOptions
from tests.scenes.scheduler.scene import EPOCH, Scene


def kept(scene: Scene, *names: str) -> None:
    """Workers with nannies."""
    for name in names:
        scene.join(name, has_nanny=True, pid=len(scene.worker_by_name) + 1)


def test_a_restarted_worker_is_sent_away_and_its_successor_is_waited_for(scene: Scene) -> None:
    kept(scene, "a", "b")
    scene.submit(x=[])
    scene.finish("x")
    scene.take()
    scene.call(RestartWorkers, workers=["a"])
    assert scene.take() == ["c: x lost", "a: shut down: restarted", "b: run x #2"]
    scene.join("a", address="tcp://a2:1")
    assert scene.take() == ["c: answer {'a': 'OK'}"]


def test_a_successor_under_another_name_is_known_by_whose_place_it_takes(scene: Scene) -> None:
    kept(scene, "a")
    scene.call(RestartWorkers, workers=["a"])
    scene.take()
    scene.join("other", host="a")
    assert scene.take() == []
    scene.join("heir", host="a", predecessor=1)
    assert scene.take() == ["c: answer {'a': 'OK'}"]


def test_one_that_does_not_come_is_told_of_in_time(scene: Scene) -> None:
    kept(scene, "a")
    scene.call(RestartWorkers, workers=["a"], timeout_seconds=5.0)
    scene.take()
    scene.advance(4.9)
    assert scene.take() == []
    scene.advance(0.2)
    assert scene.take() == ["c: answer {'a': 'timed out'}"]


def test_nothing_is_done_to_a_worker_that_nobody_would_start_again(scene: Scene) -> None:
    kept(scene, "a")
    scene.workers("b")
    scene.call(RestartWorkers, workers=["a", "b"])
    assert scene.take() == ["c: answer {'b': 'no nanny'}"]
    assert len(scene.machine.state.workers) == 2


def test_as_everything_restarts_all_wants_of_all_clients_end(scene: Scene) -> None:
    kept(scene, "a")
    scene.workers("b")
    scene.submit(x=[], y=["x"])
    scene.want("x", client="f")
    scene.take()
    scene.call(RestartWorkers, lets_go=True, timeout_seconds=5.0)
    assert scene.take() == [
        "c: x cancelled: scheduler-restart",
        "c: y cancelled: scheduler-restart",
        "f: x cancelled: scheduler-restart",
        "a: shut down: restarted",
        "b: shut down: the cluster is restarted",
    ]
    assert not scene.machine.state.tasks
    scene.join("a", address="tcp://a2:1")
    scene.join("anybody")  # whatever has started b starts another, under any name
    assert scene.take() == ["c: answer {'a': 'OK', 'b': 'OK'}"]


def test_whoever_does_not_wait_is_answered_at_once(scene: Scene) -> None:
    kept(scene, "a")
    scene.workers("b")
    scene.call(RestartWorkers, lets_go=True, waits=False)
    assert scene.take()[-1] == "c: answer {'a': 'OK', 'b': 'removed'}"


def test_slices_of_a_graph_that_come_after_the_restart_fail(scene: Scene) -> None:
    kept(scene, "a")
    scene.submit(x=[], wanted=[], held=["x"], ahead=1)
    scene.call(RestartWorkers, lets_go=True)
    scene.take()
    scene.submit(y=["x"], let_go=["x"], ahead=0)
    assert scene.take()[0].startswith("c: y erred")


def test_nobody_is_answered_who_has_gone(scene: Scene) -> None:
    kept(scene, "a")
    scene.call(RestartWorkers, workers=["a"])
    scene.lose_client("c")
    scene.take()
    scene.advance(40.0)
    assert scene.take() == []
    assert scene.machine.state.restarts == []


def test_one_that_comes_back_before_it_was_told_to_go_is_told_and_is_no_successor(
    scene: Scene,
) -> None:
    kept(scene, "a")
    scene.workers("b")
    scene.submit(x=[], options=TaskOptions(workers=["a"]))
    scene.finish("x")
    number = scene.number("x")
    scene.call(RestartWorkers, workers=["a"])
    scene.take()
    scene.join("a", has_nanny=True, pid=1, holds={"x": number})  # its connection broke
    assert scene.take() == ["a: shut down: restarted", "c: x in memory at a"]
    assert scene.worker("a").is_leaving
    scene.lose("a", expected=True)
    scene.take()
    scene.join("a", has_nanny=True, pid=2)
    assert "c: answer {'a': 'OK'}" in scene.take()


def test_who_connects_anew_in_the_meantime_is_nobodys_successor(scene: Scene) -> None:
    scene.workers("a", "b")
    scene.call(RestartWorkers, lets_go=True)
    scene.take()
    scene.join("other", pid=9, epoch=EPOCH)
    assert scene.take() == []
    scene.workers("d")
    assert scene.take() == []
    scene.workers("e")
    assert scene.take() == ["c: answer {'a': 'OK', 'b': 'OK'}"]


def test_those_that_were_sent_away_are_named_once(scene: Scene) -> None:
    """So that their connections can close."""
    kept(scene, "a")
    scene.workers("b")
    scene.call(RestartWorkers, lets_go=True)
    assert scene.machine.take_sent_away() == {
        scene.worker("a"): "restarted",
        scene.worker("b"): "the cluster is restarted",
    }
    assert scene.machine.take_sent_away() == {}
