"""Tasks that use up what is held go before tasks that bring more of it, also as kinds get known."""

from shoal.scheduler.model.settings import SchedulerSettings
from shoal.scheduler.policies.queuing import LateBinding
from tests.scenes.scheduler.scene import Scene

GIB = 1 << 30
MB = 1_000_000


def loads_and_reductions(n: int) -> dict[str, list[str]]:
    """So many of each; a reduction follows its load at once."""
    graph: dict[str, list[str]] = {}
    for i in range(n):
        graph |= {f"load-{i}": [], f"sum-{i}": [f"load-{i}"]}
    return graph


def began(scene: Scene) -> list[str]:
    """Keys of the runs that were sent, in their order."""
    return [line.split()[2] for line in scene.take() if ": run " in line]


def test_loads_do_not_pass_reductions_that_wait_for_the_first_of_their_kind(scene: Scene) -> None:
    """Four threads: three loads are held, one reduction runs, and one more load keeps a slot."""
    scene.join("a", nthreads=4, memory_limit=2 * GIB)
    scene.submit(**loads_and_reductions(8))
    assert began(scene) == ["load-0"]
    scene.finish("load-0", nbytes=MB)
    assert began(scene) == ["sum-0", "load-1", "load-2", "load-3", "load-4"]
    for i in (1, 2, 3):
        scene.finish(f"load-{i}", nbytes=MB)
    assert began(scene) == []
    scene.finish("sum-0", value=b"1", nbytes=10)
    assert began(scene)[:3] == ["sum-1", "sum-2", "sum-3"]


def test_one_slot_is_left_whatever_is_held(scene: Scene) -> None:
    """What the first of its kind waits for may be what it has submitted itself."""
    scene.join("a", nthreads=2, memory_limit=2 * GIB)
    worker = scene.worker("a")
    queuing = LateBinding(SchedulerSettings())
    worker.nheld = 99
    assert queuing.has_room(worker)
    worker.nsent, worker.sent_us = 1, 1_000_000
    assert not queuing.has_room(worker)
    worker.nwaiting = 1
    assert queuing.has_room(worker)
    worker.nheld = worker.nsent = worker.nwaiting = worker.sent_us = 0
