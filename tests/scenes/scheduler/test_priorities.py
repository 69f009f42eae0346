"""The more urgent goes first also where tasks are moved, and where workers come; case C076."""

from shoal.protocol.messages import TaskOptions
from tests.scenes.scheduler.scene import Scene


def urgent(priority: float, **said: object) -> TaskOptions:
    return TaskOptions(priority=priority, **said)  # type: ignore[arg-type]


def begun(scene: Scene) -> list[str]:
    """Keys of the runs that were sent since the last look."""
    return [line.split()[2] for line in scene.take() if ": run " in line]


def test_a_worker_that_joins_is_sent_the_most_urgent_of_what_waits(scene: Scene) -> None:
    scene.join("a", nthreads=1)
    for i in range(8):
        scene.submit(**{f"t{i}": []}, options=urgent(float(i)))
    assert begun(scene) == ["t0", "t1"]
    scene.join("b", nthreads=2)
    assert begun(scene) == ["t7", "t6", "t5"]


def test_of_what_is_placed_on_another_worker_the_most_urgent_is_taken(scene: Scene) -> None:
    scene.join("a", nthreads=1)
    scene.submit(x=[])
    scene.finish("x", nbytes=2000)
    for i in range(8):
        scene.submit(**{f"t{i}": ["x"]}, options=urgent(float(i)))
    assert begun(scene)[1:] == ["t0", "t1"]
    scene.join("b", nthreads=1)
    assert begun(scene) == ["t7", "t6"]


def test_what_is_taken_back_keeps_its_place(scene: Scene) -> None:
    """Runs that had not begun are recalled for a worker that idles."""
    scene.join("a", nthreads=1)
    scene.submit(low=[], options=urgent(-1.0))
    scene.submit(lower=[], options=urgent(-2.0))
    assert begun(scene) == ["low", "lower"]
    scene.submit(**{f"t{i}": [] for i in range(3)})
    scene.join("b", nthreads=1)
    assert begun(scene) == ["t0", "t1"]
    scene.finish("t0", value=b"1")
    scene.finish("t1", value=b"1")
    assert begun(scene) == ["t2"]
    scene.finish("t2", value=b"1")
    scene.submit(u0=[], u1=[], u2=[])
    assert begun(scene) == ["u0", "u1"]
    scene.returned("lower")
    assert begun(scene) == ["u2"]
    assert scene.state("lower") == "queued"


def test_a_retried_or_rescheduled_task_keeps_its_place(scene: Scene) -> None:
    scene.join("a", nthreads=1)
    scene.submit(x=[], options=urgent(1.0, retries=1))
    scene.submit(**{f"t{i}": [] for i in range(4)})
    scene.take()
    scene.fail("x")
    assert begun(scene) == ["x"]


def test_after_a_loss_the_most_urgent_of_what_was_lost_goes_first(scene: Scene) -> None:
    scene.join("a", nthreads=2)
    for i in range(3):
        scene.submit(**{f"t{i}": []}, options=urgent(float(i)))
    scene.submit(**{f"s{i}": [] for i in range(3)})
    scene.take()
    scene.lose("a", expected=True)
    scene.join("b", nthreads=1)
    assert begun(scene) == ["t2", "t1"]


def test_tasks_of_one_priority_and_several_kinds_go_in_the_order_of_submission(
    scene: Scene,
) -> None:
    """With resources or limits, restricted, or plain."""
    scene.join("a", nthreads=1, resources={"r": 9.0})
    kinds = [
        TaskOptions(),
        TaskOptions(resources={"r": 1.0}),
        TaskOptions(workers=["a"]),
        TaskOptions(limits={"db": 5}),
    ]
    scene.submit(first=[], second=[])
    for i in range(8):
        scene.submit(**{f"t{i}": []}, options=kinds[i % 4])
    order = begun(scene)
    while len(order) < 10:
        scene.finish(order[len(order) - 2], value=b"1")
        order += begun(scene)
    assert order == ["first", "second", *[f"t{i}" for i in range(8)]]
