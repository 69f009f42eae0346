"""How many workers a load deserves."""

from typing import Any

import pytest

from shoal.protocol.memory import PauseChanged
from shoal.protocol.messages import TaskOptions
from shoal.protocol.scaling import Deserved
from shoal.protocol.slots import LongRunning
from shoal.scheduler.policies.scaling import deserved, target_of
from tests.scenes.scheduler.scene import Scene


def of(scene: Scene, seconds: float = 5.0, **size: int) -> Deserved:
    return deserved(scene.machine.state, seconds, **size)


def tasks(n: int, name: str = "x") -> dict[str, list[str]]:
    return {f"{name}{i}": [] for i in range(n)}


def a_load(n: int, seconds: float, **settings: Any) -> Scene:
    """So many tasks, that take so long each as far as anybody knows; nobody is there."""
    scene = Scene(known_seconds={"x": seconds}, **settings)
    scene.submit(**tasks(n))
    return scene


def test_nothing_to_do_deserves_nobody() -> None:
    assert of(Scene()).nworkers == 0


def test_work_is_done_in_the_time_that_it_may_take() -> None:
    assert of(a_load(1000, 0.1)).nworkers == 20
    assert of(a_load(1000, 0.1), 20.0).nworkers == 5


def test_never_more_than_there_are_tasks() -> None:
    assert of(a_load(10, 1000.0)).nworkers == 10
    assert of(a_load(10, 1000.0), nthreads=5).nworkers == 2
    assert of(a_load(10, 1.0), 0.0).nworkers == 10  # that may take no time at all


def test_very_little_work_deserves_one() -> None:
    assert of(a_load(1, 0.001)).nworkers == 1


@pytest.mark.parametrize("saturation", [1.1, float("inf")])
def test_tasks_count_alike_wherever_they_wait(saturation: float) -> None:
    """Queued at the scheduler, or placed early."""
    scene = Scene(known_seconds={"x": 1000.0}, worker_saturation=saturation)
    scene.workers("a", nthreads=5)
    scene.submit(**tasks(200))
    assert of(scene).nworkers == 40


def test_work_is_what_such_tasks_have_taken() -> None:
    """The next hundred are as long as the first one was."""
    scene = Scene()
    scene.workers("a")
    scene.submit(**tasks(100))
    assert of(scene).for_work == 10  # at half a second each, as is set
    scene.finish("x0", seconds=4.0)
    assert of(scene).for_work == 80


def test_a_chain_deserves_one_worker_however_long_it_is() -> None:
    scene = Scene(known_seconds={"x": 100.0})
    scene.submit(x0=[], x1=["x0"], x2=["x1"], x3=["x2"])
    assert of(scene).nworkers == 1


def test_a_task_that_has_left_its_thread_deserves_no_more_workers() -> None:
    scene = Scene(known_seconds={"x": 1000.0})
    scene.workers("a")
    scene.submit(x0=[])
    worker, task, run = scene.run("x0")
    assert of(scene).ntasks == 1
    scene.from_worker(worker.name, LongRunning(task, run, 1.0))
    found = of(scene)
    assert (found.ntasks, found.nworkers, found.nkept) == (0, 0, 1)


def test_tasks_that_need_much_memory_fill_a_worker_by_fewer() -> None:
    """Of three threads only one can run one, as each takes half of the memory."""
    scene = Scene(known_seconds={"x": 1000.0}, known_bytes={"x": 2 * 2**30})
    scene.join("a", nthreads=3, memory_limit=4 * 2**30)
    scene.submit(**tasks(12))
    assert of(scene).nworkers == 12


def test_results_that_fill_the_memory_deserve_twice_the_workers_and_then_it_stays_so() -> None:
    """With twice the memory there is no reason for more, and none to let half of it go."""
    scene = Scene(inline_bytes_max=1)
    scene.join("a", memory_limit=100)
    scene.submit(x=[])
    scene.finish("x", nbytes=61)
    found = of(scene)
    assert (found.for_work, found.for_memory, found.nworkers) == (0, 2, 2)
    scene.join("b", memory_limit=100)
    found = of(scene)
    assert (found.nworkers, found.nkept, target_of(found)) == (0, 2, 2)


def test_memory_without_a_limit_is_never_full() -> None:
    scene = Scene(inline_bytes_max=1)
    scene.workers("a")
    scene.submit(x=[])
    scene.finish("x", nbytes=2**50)
    assert of(scene).for_memory == 0


def test_another_takes_the_part_of_a_worker_that_is_paused() -> None:
    scene = Scene(known_seconds={"x": 1000.0})
    scene.workers("a")
    scene.submit(**tasks(3))
    assert of(scene, 3000.0).nworkers == 1
    scene.from_worker("a", PauseChanged(True, "it is full"))
    found = of(scene, 3000.0)
    assert (found.npaused, found.nworkers) == (1, 2)


def test_a_busy_worker_is_kept_though_the_load_deserves_fewer() -> None:
    """Three run one short task each; the fourth has nothing to do."""
    scene = Scene(known_seconds={"x": 0.1})
    scene.workers("a", "b", "c", "d")
    scene.submit(**tasks(3))
    found = of(scene)
    assert (found.nworkers, found.nthere, found.nkept) == (1, 4, 3)
    assert (target_of(found), target_of(found, spare=1), target_of(found, spare=5)) == (3, 3, 6)


def test_a_worker_that_is_about_to_go_counts_no_more() -> None:
    scene = Scene()
    scene.workers("a", "b")
    scene.leave("a")
    found = of(scene)
    assert (found.nthere, found.names) == (1, ["b"])


def test_what_nobody_may_run_deserves_workers_that_may() -> None:
    scene = Scene(known_seconds={"x": 1000.0})
    scene.workers("a")
    scene.submit(**tasks(4), options=TaskOptions(resources={"GPU": 1.0}))
    assert of(scene).nworkers == 4
