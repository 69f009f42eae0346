"""What clients may ask, and the story of a task."""

from shoal.protocol.questions import (
    DescribeTasks,
    HasWhat,
    NThreads,
    Processing,
    Story,
    TaskStates,
    WhoHas,
)
from tests.scenes.scheduler.scene import Scene


def test_who_has_names_the_holders_of_each_key(scene: Scene) -> None:
    """x has two copies, y runs, z is not known."""
    scene.workers("a", "b")
    scene.submit(x=[], y=[])
    scene.finish("x")
    scene.holds("b", "x")
    scene.take()

    scene.call(WhoHas, keys=["x", "y", "z"])
    assert scene.take() == ["c: answer {'x': ['a', 'b'], 'y': []}"]
    scene.call(WhoHas)
    assert scene.take() == ["c: answer {'x': ['a', 'b']}"]


def test_has_what_names_the_keys_on_each_worker(scene: Scene) -> None:
    """By any name of the worker, or all of them."""
    scene.workers("a", "b")
    scene.submit(x=[])
    scene.finish("x")
    scene.take()

    scene.call(HasWhat, workers=["a"])
    scene.call(HasWhat)
    assert scene.take() == ["c: answer {'a': ['x']}", "c: answer {'a': ['x'], 'b': []}"]


def test_nthreads_tells_the_threads_of_each_worker(scene: Scene) -> None:
    """Of those asked for; an unknown one is left out."""
    scene.workers("a", "b", nthreads=3)
    scene.call(NThreads, workers=["tcp://b:1", "z"])
    scene.call(NThreads)
    assert scene.take() == ["c: answer {'b': 3}", "c: answer {'a': 3, 'b': 3}"]


def test_states_are_told_of_the_tasks_that_are_known(scene: Scene) -> None:
    """x is done, y runs, z waits for y; of w nobody knows."""
    scene.workers("a")
    scene.submit(x=[])
    scene.finish("x")
    scene.submit(y=[], z=["y"])
    scene.take()

    scene.call(TaskStates, keys=["x", "w"])
    assert scene.take() == ["c: answer {'x': 'memory'}"]
    scene.call(TaskStates)
    assert scene.take() == ["c: answer {'x': 'memory', 'y': 'processing', 'z': 'waiting'}"]


def test_what_workers_were_given_is_told_with_its_expected_time(scene: Scene) -> None:
    """Half a second, as long as nothing is known; a by name, then all."""
    scene.workers("a", "b")
    scene.submit(x=[])
    scene.take()

    scene.call(Processing, workers=["a"])
    assert scene.take() == ["c: answer {'a': {'x': 0.5}}"]
    scene.call(Processing)
    assert scene.take() == ["c: answer {'a': {'x': 0.5}, 'b': {}}"]


def test_a_task_is_described_with_its_neighbours(scene: Scene) -> None:
    """x is held by a and runs nowhere; y, which needs it, is on a; of w nobody knows."""
    scene.workers("a")
    scene.submit(x=[])
    scene.finish("x", nbytes=70)
    scene.submit(y=["x"])
    scene.take()

    scene.call(DescribeTasks, keys=["x", "y", "w"])
    (told,) = scene.take()
    for part in ("key='x'", "nbytes=70", "holders=['a']", "dependents=['y']"):
        assert part in told
    for part in ("key='y'", "placed_on='a'", "dependencies=['x']"):
        assert part in told
    assert "key='w'" not in told


def test_the_story_of_a_key_reads_in_order(scene: Scene) -> None:
    """x runs, is lost, and runs again; what y does is another story."""
    scene.workers("a", "b")
    scene.submit(x=[], y=[])
    scene.finish("x")
    scene.lose("a")
    scene.take()

    records = scene.machine.story.where({"x"}, frozenset())
    told = [(record.start, record.finish, record.cause) for record in records]
    assert told == [
        ("released", "waiting", "SubmitTasks"),
        ("waiting", "queued", "SubmitTasks"),
        ("queued", "processing", "SubmitTasks"),
        ("processing", "memory", "TaskFinished"),
        ("memory", "released", "worker-lost"),
        ("released", "waiting", "worker-lost"),
        ("waiting", "queued", "worker-lost"),
        ("queued", "processing", "worker-lost"),
    ]
    scene.call(Story, keys=["x"])
    [line] = scene.take()
    assert line.count("Transition(") == 8


def test_the_story_keeps_the_latest_records_only() -> None:
    """It is bounded, whatever happens."""
    scene = Scene(story_records_max=4)
    scene.submit(x=[], y=[], z=[])
    assert len(scene.machine.story) == 4
    records = scene.machine.story.where({"z"}, frozenset())
    assert [record.finish for record in records] == ["queued"]
