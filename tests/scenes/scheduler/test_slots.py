"""Runs that secede, that rejoin, and that are to be run elsewhere."""

from itertools import pairwise

import pytest

from shoal.protocol.membership import Closing, RetireWorkers, SetResources
from shoal.protocol.messages import TaskOptions, WorkerHeartbeat
from shoal.protocol.slots import LongRunning, RunRejoined, RunRescheduled
from tests.scenes.scheduler.scene import Scene


@pytest.fixture
def scene() -> Scene:
    """One run at a time is out on each thread, so that it shows who has room."""
    return Scene(worker_saturation=1.0)


def secede(scene: Scene, key: str, *, seconds: float = 0.5, on: str = "", nth: int = 0) -> None:
    worker, task, run = scene.run(key, on, nth)
    scene.from_worker(worker.name, LongRunning(task, run, seconds))


def rejoin(scene: Scene, key: str) -> None:
    worker, task, run = scene.run(key)
    scene.from_worker(worker.name, RunRejoined(task, run))


def send_back(scene: Scene, key: str, *, on: str = "", nth: int = 0) -> None:
    worker, task, run = scene.run(key, on, nth)
    scene.from_worker(worker.name, RunRescheduled(task, run))


def test_what_secedes_makes_room_at_once_and_takes_it_again(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[], y=[], z=[])
    assert scene.take() == ["a: run x #1"]
    secede(scene, "x")
    assert scene.take() == ["a: run y #1"]
    rejoin(scene, "x")
    scene.finish("y", value=b"1")
    assert scene.take() == ["c: y in memory inline"]
    scene.finish("x", value=b"1")
    assert scene.take() == ["c: x in memory inline", "a: run z #1"]


def test_what_has_seceded_is_no_expected_work(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[])
    assert scene.worker("a").occupancy_us > 0
    secede(scene, "x")
    assert scene.worker("a").occupancy_us == 0
    rejoin(scene, "x")
    assert scene.worker("a").occupancy_us == 500_000
    secede(scene, "x")
    scene.finish("x", value=b"1")
    assert (scene.worker("a").occupancy_us, scene.worker("a").nwaiting) == (0, 0)


def test_only_the_time_with_a_slot_says_how_long_a_task_takes(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x1=[], x2=[])
    secede(scene, "x1", seconds=0.25)
    prefix = scene.task("x1").prefix
    assert (prefix.duration_us, prefix.nfinished) == (250_000, 0)
    scene.finish("x1", seconds=3600.0, value=b"1")
    assert (prefix.duration_us, prefix.nfinished) == (250_000, 1)
    scene.finish("x2", seconds=0.75, value=b"1")
    assert (prefix.duration_us, prefix.nfinished) == (500_000, 2)


def test_a_run_that_waits_and_has_seceded_makes_room_once(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[], y=[], z=[])
    worker, task, run = scene.run("x")
    scene.from_worker("a", WorkerHeartbeat(nwaiting=1))
    scene.from_worker("a", LongRunning(task, run, 0.1), WorkerHeartbeat(nwaiting=0))
    assert scene.take() == ["a: run x #1", "a: run y #1"]
    assert worker.nwaiting == 1


def test_what_is_said_twice_or_of_another_run_changes_nothing(scene: Scene) -> None:
    scene.workers("a", "b")
    scene.submit(x=[], options=TaskOptions(retries=1))
    scene.fail("x")
    first, second = [line.split(":")[0] for line in scene.take()]
    secede(scene, "x", on=first, nth=1)
    send_back(scene, "x", on=first, nth=1)
    assert scene.worker(second).nwaiting == 0
    secede(scene, "x")
    secede(scene, "x")
    assert scene.worker(second).nwaiting == 1
    rejoin(scene, "x")
    rejoin(scene, "x")
    assert scene.worker(second).nwaiting == 0
    assert scene.take() == []


def test_what_had_seceded_on_a_lost_worker_runs_elsewhere(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[])
    secede(scene, "x")
    scene.workers("b")
    scene.lose("a")
    assert scene.take() == ["a: run x #1", "b: run x #2"]
    assert scene.task("x").blame == 1
    assert scene.worker("b").nwaiting == 0


def test_what_is_released_while_it_is_long_running_counts_no_more(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[])
    secede(scene, "x")
    scene.release("x")
    assert scene.take() == ["a: run x #1", "a: recall x #1"]
    assert (scene.worker("a").nwaiting, scene.worker("a").seceded) == (0, {})


def test_a_worker_whose_task_has_seceded_is_not_chosen_to_go(scene: Scene) -> None:
    scene.workers("a", "b")
    scene.submit(x=[], options=TaskOptions(workers=["a"]))
    secede(scene, "x")
    scene.take()
    scene.call(RetireWorkers, closing=Closing(n=2))
    assert scene.take() == ["b: shut down: it was retired", "c: answer {'b': ''}"]
    scene.call(RetireWorkers, workers=["a"])  # by name it is; nobody waits for it to end
    assert scene.take()[0] == "a: shut down: it was retired"


def test_a_task_that_is_to_run_elsewhere_does_and_no_retry_is_used(scene: Scene) -> None:
    scene.workers("a", "b")
    scene.submit(x=[], options=TaskOptions(retries=1))
    send_back(scene, "x")
    first, second = [line.split(":")[0] for line in scene.take()]
    assert {first, second} == {"a", "b"}
    assert (scene.task("x").retries, scene.task("x").blame) == (1, 0)


def test_it_rather_waits_for_another_worker_than_to_go_back_to_the_same(scene: Scene) -> None:
    scene.workers("a", "b")
    scene.submit(y=[], options=TaskOptions(workers=["b"]))
    scene.submit(x=[])
    send_back(scene, "x", on="a")
    assert scene.take() == ["b: run y #1", "a: run x #1"]
    scene.advance(60)
    scene.heartbeat("a")
    assert scene.take() == []
    scene.finish("y", value=b"1")
    assert scene.take() == ["c: y in memory inline", "b: run x #2"]


def test_if_all_send_it_back_it_goes_on_from_one_to_the_next(scene: Scene) -> None:
    scene.workers("a", "b", "d")
    scene.submit(x=[])
    for _ in range(6):
        send_back(scene, "x")
    where = [line.split(":")[0] for line in scene.take()]
    assert sorted(where[:3]) == ["a", "b", "d"]
    assert all(one != other for one, other in pairwise(where))


def test_the_only_worker_runs_it_again(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[])
    send_back(scene, "x")
    send_back(scene, "x")
    assert scene.take() == ["a: run x #1", "a: run x #2", "a: run x #3"]
    scene.lose("a", expected=True)
    assert scene.state("x") == "queued"
    scene.workers("b")
    assert scene.take() == ["b: run x #4"]


def test_restrictions_hold_when_it_is_to_run_elsewhere(scene: Scene) -> None:
    scene.workers("a", "b", "d")
    scene.submit(x=[], options=TaskOptions(workers=["a", "b"]))
    for _ in range(3):
        send_back(scene, "x")
    assert {line.split(":")[0] for line in scene.take()} == {"a", "b"}


def test_workers_that_are_a_preference_only_do_not_keep_it_from_the_others(scene: Scene) -> None:
    scene.workers("a", "b", "d")
    scene.submit(x=[], options=TaskOptions(workers=["a"], allow_other_workers=True))
    for _ in range(2):
        send_back(scene, "x")
    assert sorted(line.split(":")[0] for line in scene.take()) == ["a", "b", "d"]


def test_one_that_needs_resources_goes_to_another_worker_that_has_them(scene: Scene) -> None:
    scene.join("a", resources={"GPU": 1})
    scene.join("b", resources={"GPU": 1})
    scene.workers("d")
    scene.submit(x=[], options=TaskOptions(resources={"GPU": 1}))
    send_back(scene, "x")
    assert [line.split(":")[0] for line in scene.take()] == ["a", "b"]
    scene.call(SetResources, worker="b", resources={"GPU": 1})
    assert scene.worker("a").available == {"GPU": 1}


def test_who_has_been_avoided_is_forgotten_with_the_task_or_the_worker(scene: Scene) -> None:
    scene.workers("a", "b")
    scene.submit(x=[], y=[])
    send_back(scene, "x")
    send_back(scene, "y")
    assert len(scene.machine.state.avoided) == 2
    scene.release("x")
    assert len(scene.machine.state.avoided) == 1
    scene.lose("a", expected=True)
    scene.lose("b", expected=True)
    assert scene.machine.state.avoided == {}


def test_a_task_for_an_executor_says_so_to_its_worker(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[], options=TaskOptions(executor="gpu"))
    assert scene.take() == ["a: run x #1 by gpu"]
