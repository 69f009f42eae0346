"""Work that nobody waits for runs to its end, can be listed, and can be cancelled."""

from shoal.ids import ClientTaskId, Key
from shoal.protocol.detached import CancelKeys, DetachedTasks, DetachTasks
from shoal.scheduler.machine import keeping
from shoal.scheduler.model.keepers import DETACHED
from tests.scenes.scheduler.scene import Scene


def detach(scene: Scene, *keys: str, client: str = "c") -> None:
    """Fire these and forget them."""
    actor = scene.actor(client)
    scene.from_client(client, DetachTasks([actor.number(key) for key in keys]))


def test_a_detached_task_outlives_its_future_and_its_client(scene: Scene) -> None:
    """y needs x; the client lets go of both futures, and then goes itself."""
    scene.workers("a")
    scene.submit(x=[], y=["x"])
    detach(scene, "y")
    scene.release("x", "y")
    scene.lose_client()
    scene.finish("x")
    assert scene.take() == ["a: run x #1", "a: run y #1"]
    assert scene.state("y") == "processing"

    scene.finish("y")
    assert scene.take() == ["a: free x, y"]
    assert scene.state("y") == "forgotten"
    assert not scene.machine.state.keepers


def test_detached_twice_is_detached_once(scene: Scene) -> None:
    """And by two clients."""
    scene.workers("a")
    scene.submit(x=[])
    scene.want("x", client="d")
    detach(scene, "x", "x")
    detach(scene, "x", client="d")
    assert [owner.name for owner, _ in scene.task("x").wants] == ["c", "d", DETACHED]


def test_a_future_is_told_of_a_task_that_was_detached_as_well(scene: Scene) -> None:
    """Its result stays for as long as the future does."""
    scene.workers("a")
    scene.submit(x=[])
    detach(scene, "x")
    scene.finish("x")
    assert scene.take() == ["a: run x #1", "c: x in memory at a"]
    assert scene.state("x") == "memory"
    assert [owner.name for owner, _ in scene.task("x").wants] == ["c"]


def test_what_has_ended_need_not_be_detached(scene: Scene) -> None:
    """Nor need what is not known any more."""
    scene.workers("a")
    scene.submit(x=[], y=[])
    scene.finish("x")
    scene.fail("y")
    detach(scene, "x", "y")
    scene.release("x", "y")
    detach(scene, "x")
    assert not scene.machine.state.keepers
    assert scene.state("x") == scene.state("y") == "forgotten"


def test_a_detached_task_that_fails_is_let_go_of(scene: Scene) -> None:
    """With what needs it."""
    scene.workers("a")
    scene.submit(x=[], y=["x"])
    detach(scene, "y")
    scene.release("x", "y")
    scene.fail("x")
    assert scene.state("x") == scene.state("y") == "forgotten"


def test_a_detached_task_is_run_again_where_its_worker_dies(scene: Scene) -> None:
    """Nobody has to wait for it."""
    scene.workers("a", "b")
    scene.submit(x=[])
    detach(scene, "x")
    scene.lose_client()
    scene.lose("a")
    scene.finish("x", on="b")
    assert scene.take() == ["a: run x #1", "b: run x #2", "b: free x"]


def test_detached_tasks_are_listed_until_they_have_ended(scene: Scene) -> None:
    """By whoever asks."""
    scene.workers("a")
    scene.submit(x=[], y=[])
    detach(scene, "x", "y")
    scene.lose_client()
    scene.finish("x")
    scene.take()
    scene.call(DetachedTasks, client="d")
    assert scene.take() == ["d: answer {'y': 'processing'}"]


def test_whoever_knows_its_key_cancels_a_detached_task(scene: Scene) -> None:
    """The client that submitted it has gone."""
    scene.workers("a")
    scene.submit(x=[], y=["x"])
    detach(scene, "x", "y")
    scene.lose_client()
    scene.take()
    scene.from_client("d", CancelKeys([Key("x"), Key("z")]))
    assert scene.take() == ["a: recall x #1"]
    assert scene.state("x") == scene.state("y") == "forgotten"


def test_cancelling_a_key_spares_what_another_client_waits_for(scene: Scene) -> None:
    """Unless it is forced."""
    scene.workers("a")
    scene.submit(x=[])
    detach(scene, "x")
    scene.actor("d")
    scene.take()
    scene.from_client("d", CancelKeys([Key("x")]))
    assert scene.take() == []
    assert [owner.name for owner, _ in scene.task("x").wants] == ["c"]

    scene.from_client("d", CancelKeys([Key("x")], force=True, reason="no"))
    assert scene.take() == ["c: x cancelled: no", "a: recall x #1"]


def test_a_cancelled_future_ends_its_task_though_it_was_detached(scene: Scene) -> None:
    """Nobody waits for it any more."""
    scene.workers("a")
    scene.submit(x=[])
    detach(scene, "x")
    scene.cancel("x", reason="no")
    assert scene.take() == ["a: run x #1", "c: x cancelled: no", "a: recall x #1"]
    assert not scene.machine.state.keepers


def test_what_is_kept_for_a_name_stays_until_it_is_let_go_of(scene: Scene) -> None:
    """As often as it was kept; a number that has ended changes nothing."""
    scene.workers("a")
    scene.submit(x=[])
    core = scene.machine._core
    first, second = (keeping.keep(core, "queue-q", scene.task("x")) for _ in range(2))
    scene.release("x")
    scene.finish("x")
    assert scene.take() == ["a: run x #1"]
    for number in (first, ClientTaskId(77)):
        keeping.stop_keeping(core, "queue-q", number)
        scene.heartbeat("a")
        assert scene.state("x") == "memory"
    keeping.stop_keeping(core, "queue-q", second)
    scene.heartbeat("a")
    assert scene.take() == ["a: free x"]
    assert not scene.machine.state.keepers


def test_all_that_is_kept_for_a_name_is_let_go_of_at_once(scene: Scene) -> None:
    """Also what was cancelled before."""
    scene.workers("a")
    scene.submit(x=[], y=[])
    core = scene.machine._core
    for key in ("x", "y"):
        keeping.keep(core, "published-d", scene.task(key))
    scene.cancel("x", force=True)
    scene.release("y")
    keeping.stop_keeping_all(core, "published-d")
    scene.heartbeat("a")
    assert scene.state("x") == scene.state("y") == "forgotten"
    assert not scene.machine.state.keepers
