"""Clients are told of tasks that nobody may run, once these have waited for a while."""

import pytest

from shoal.protocol.limits import TasksStranded
from shoal.protocol.membership import ResourcesChanged
from shoal.protocol.messages import TaskOptions
from tests.scenes.scheduler.scene import Scene


@pytest.fixture
def scene() -> Scene:
    return Scene(stranded_warning_seconds=3.0)


def needs(**resources: float) -> TaskOptions:
    return TaskOptions(resources=resources)


def test_who_waits_for_what_nobody_has_is_told_once_for_all_such_tasks(scene: Scene) -> None:
    """Case C007."""
    scene.join("a", resources={"gpu": 1.0})
    scene.submit(x=[], y=[], z=[], options=needs(mem=2.0))
    scene.advance(2.9)
    assert scene.take() == []
    scene.advance(0.2)
    assert scene.take() == ["c: x and 2 stranded: {'mem': 2.0}, 1 workers"]
    scene.submit(w=[], options=needs(mem=2.0))
    scene.advance(10)
    assert scene.take() == []
    scene.from_worker("a", ResourcesChanged({"mem": 2.0}))
    assert scene.take() == ["a: run x #1"]


def test_the_same_is_told_when_a_worker_is_named_that_is_not_there(scene: Scene) -> None:
    """Case C008."""
    scene.workers("a")
    scene.submit(x=[], options=TaskOptions(workers=["typo"]))
    scene.advance(3.1)
    assert scene.take() == ["c: x and 0 stranded: {'typo': 1}, 1 workers"]
    scene.workers("typo")
    assert scene.take() == ["typo: run x #1"]


def test_whoever_waits_for_what_depends_on_it_is_told(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(wanted=["z"], x=[], y=["x"], z=["y"], options=needs(mem=2.0))
    scene.advance(3.1)
    assert scene.take() == ["c: x and 0 stranded: {'mem': 2.0}, 1 workers"]


def test_each_client_that_waits_is_told(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[], options=needs(mem=2.0))
    scene.want("x", client="d")
    scene.advance(3.1)
    assert [line[:1] for line in scene.take()] == ["c", "d"]


def test_nobody_is_told_of_what_was_run_or_let_go_in_time(scene: Scene) -> None:
    scene.join("a", resources={"gpu": 1.0})
    scene.submit(x=[], options=needs(mem=2.0))
    scene.submit(y=[], options=needs(mem=3.0))
    scene.advance(1)
    scene.release("y")
    scene.join("b", resources={"mem": 2.0})
    scene.take()
    scene.advance(5)
    assert scene.take() == []


def test_it_is_told_again_after_some_minutes(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[], options=needs(mem=2.0))
    scene.advance(3.1)
    scene.take()
    scene.advance(280)
    scene.submit(y=[], options=needs(mem=2.0))
    scene.heartbeat("a")
    scene.advance(15)
    assert scene.take() == []
    scene.heartbeat("a")
    scene.advance(10)
    scene.submit(z=[], options=needs(mem=2.0))
    scene.advance(3.1)
    assert scene.take() == ["c: z and 0 stranded: {'mem': 2.0}, 1 workers"]


def test_once_what_was_told_of_waits_no_more_another_is_told_of(scene: Scene) -> None:
    """Its input was there before; the first such task was given up meanwhile."""
    scene.workers("a")
    scene.submit(i=[])
    scene.finish("i")
    scene.submit(x=["i"], options=needs(GPU=1.0))
    scene.advance(3.1)
    scene.release("x")
    scene.take()
    scene.submit(y=["i"], options=needs(GPU=1.0))
    scene.advance(3.1)
    assert scene.take() == ["c: y and 0 stranded: {'GPU': 1.0}, 1 workers"]
    scene.submit(z=["i"], options=needs(GPU=1.0))
    scene.advance(10)
    assert scene.take() == []


def test_who_gives_up_again_and_again_is_not_told_each_time(scene: Scene) -> None:
    scene.workers("a")
    told = []
    for i in range(40):
        scene.submit(**{f"x{i}": []}, options=needs(GPU=1.0))
        scene.advance(3.1)
        scene.release(f"x{i}")
        scene.heartbeat("a")
        told += [line for line in scene.take() if "stranded" in line]
    assert len(told) == 20


def test_not_too_much_is_told_to_one_client(scene: Scene) -> None:
    scene.workers("a")
    for i in range(100):
        scene.submit(**{f"x{i}": []}, options=needs(mem=2.0 + i))
    scene.advance(3.1)
    assert len(scene.take()) == 20


def test_very_many_tasks_are_looked_at_in_several_steps(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(**{f"x{i}": [] for i in range(4500)}, options=needs(mem=2.0))
    before = scene.machine.nsteps
    scene.advance(3.1)
    assert scene.machine.nsteps - before >= 3
    assert len(scene.take()) == 1
    assert not scene.machine.state.untold


def test_without_the_setting_nobody_is_told() -> None:
    scene = Scene(stranded_warning_seconds=None)
    scene.workers("a")
    scene.submit(x=[], options=needs(mem=2.0))
    scene.advance(60)
    assert scene.take() == []


def test_once_all_clients_have_gone_nothing_is_kept_of_it(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[], options=needs(mem=2.0))
    scene.lose_client("c")
    assert not scene.machine.state.untold


def test_those_that_are_stranded_again_and_again_are_kept_once(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[], options=needs(mem=2.0))
    for _ in range(1000):
        scene.join("b", resources={"mem": 2.0})
        scene.lose("b", expected=True)
    assert len(scene.machine.state.untold) < 300


def test_that_there_are_no_workers_yet_is_no_news(scene: Scene) -> None:
    """As with tasks that any worker may run; what needs a certain one is another matter."""
    scene.submit(x=[], options=TaskOptions(limits={"db": 1}))
    scene.submit(y=[])
    scene.advance(10)
    assert scene.take() == []
    scene.submit(z=[], options=needs(mem=2.0))
    scene.advance(10)
    assert scene.take() == ["c: z and 0 stranded: {'mem': 2.0}, 0 workers"]


def test_what_those_have_that_may_not_run_it_is_no_offer(scene: Scene) -> None:
    scene.join("a", resources={"mem": 5.0})
    scene.join("b", resources={"mem": 1.0})
    scene.submit(x=[], options=TaskOptions(resources={"mem": 2.0}, workers=["b"]))
    scene.take()
    client = scene.actors["c"].client
    scene.machine.wake(scene.now + 3.1)
    (message,) = (m for peer, said in scene.machine.take_outgoing() if peer is client for m in said)
    assert isinstance(message, TasksStranded)
    assert (message.offered, message.workers) == ({"mem": 1.0}, ["b"])


def test_the_log_has_it_too_once_in_the_words_of_explanations(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[], y=[], options=needs(gpu=2.0))
    scene.advance(3.1)
    [warning] = scene.warnings
    assert warning.startswith(
        "2 tasks, 'x' among them, have been ready for 3 s, and no worker may run them: it needs "
        "gpu=2 of one worker, and none has so much, for 3.0 s now; the most that one has: gpu=0."
    )
    scene.submit(z=[], options=needs(gpu=2.0))
    scene.advance(20.0)
    assert len(scene.warnings) == 1
    scene.release("x", "y", "z")
    scene.advance(300.0)
    scene.submit(w=[], options=needs(gpu=2.0))
    scene.advance(3.1)
    assert len(scene.warnings) == 2


def test_of_very_many_wishes_the_log_has_some(scene: Scene) -> None:
    scene.workers("a")
    for i in range(40):
        scene.submit(**{f"x{i}": []}, options=needs(**{f"r{i}": 1.0}))
    scene.advance(10.0)
    assert len(scene.warnings) == 20
