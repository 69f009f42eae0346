"""What runs first, and how much is out at once."""

import pytest

from shoal.ids import Key
from shoal.protocol.messages import TaskOptions, WorkerHeartbeat
from tests.scenes.scheduler.scene import Scene


def test_tasks_run_in_the_order_of_submission(scene: Scene) -> None:
    """Two messages before the first worker comes."""
    scene.submit(x=[], w=[])
    scene.submit(a=[])
    scene.workers("a", nthreads=4)
    assert scene.take() == ["a: run x #1", "a: run w #1", "a: run a #1"]


def test_the_more_urgent_runs_first(scene: Scene) -> None:
    """Whatever was submitted before."""
    scene.submit(x=[])
    scene.submit(y=[], options=TaskOptions(priority=0.5))
    scene.submit(z=[], options=TaskOptions(priority=-1))
    scene.submit(w=[], options=TaskOptions(priority=10))
    scene.workers("a", nthreads=4)
    assert scene.take() == ["a: run w #1", "a: run y #1", "a: run x #1", "a: run z #1"]


@pytest.mark.parametrize("urgency", [float("inf"), 1e300])
def test_boundless_urgency_is_just_very_urgent(scene: Scene, urgency: float) -> None:
    """Nothing breaks, in either direction."""
    scene.submit(x=[], options=TaskOptions(priority=-urgency))
    scene.submit(y=[], options=TaskOptions(priority=1000))
    scene.submit(z=[], options=TaskOptions(priority=urgency))
    scene.workers("a", nthreads=3)
    assert scene.take() == ["a: run z #1", "a: run y #1", "a: run x #1"]


def test_no_number_for_an_urgency_is_the_least(scene: Scene) -> None:
    """It can't be compared, so it has to wait."""
    scene.submit(x=[], options=TaskOptions(priority=float("nan")))
    scene.submit(y=[], options=TaskOptions(priority=-5))
    scene.workers("a", nthreads=2)
    assert scene.take() == ["a: run y #1", "a: run x #1"]


def test_a_graph_in_slices_runs_before_what_was_submitted_after_its_first(scene: Scene) -> None:
    """The second slice comes after another task of the client, but belongs before it."""
    scene.submit(x1=[], ahead=1)
    scene.submit(y=[])
    scene.submit(x2=[], ahead=0)
    scene.submit(z=[])
    scene.workers("a", nthreads=4)
    assert scene.take() == ["a: run x1 #1", "a: run x2 #1", "a: run y #1", "a: run z #1"]


@pytest.mark.parametrize(
    ("nthreads", "saturation", "nout"), [(1, 1.1, 2), (10, 1.1, 11), (4, 1.0, 4), (2, 0.01, 1)]
)
def test_slots_are_the_saturation_times_the_threads_rounded_up(
    nthreads: int, saturation: float, nout: int
) -> None:
    """As long as no task has finished, this is all that is out."""
    scene = Scene(worker_saturation=saturation)
    scene.submit(**{f"x{i}": [] for i in range(30)})
    scene.workers("a", nthreads=nthreads)
    assert len(scene.take()) == nout
    assert scene.state(f"x{nout}") == "queued"


def test_without_saturation_everything_is_placed_and_sent_when_there_is_room() -> None:
    """As users know it from `worker-saturation: inf`."""
    scene = Scene(worker_saturation=float("inf"))
    scene.submit(**{f"x{i}": [] for i in range(300)})
    scene.workers("a")
    assert len(scene.take()) == 2
    assert {scene.state(f"x{i}") for i in range(300)} == {"processing"}


def test_the_pipe_opens_once_tasks_are_known_to_be_short(scene: Scene) -> None:
    """The first x took 100 us: ten such are a millisecond, and are sent beyond the slots."""
    scene.workers("a")
    scene.submit(**{f"x{i:02}": [] for i in range(40)})
    assert len(scene.take()) == 2

    scene.finish("x00", seconds=100e-6)
    lines = scene.take()
    # x01 was sent when nothing was known, and still counts as long; when it ends, the pipe opens
    assert lines == ["c: x00 in memory at a", "a: run x02 #1"]

    scene.finish("x01", seconds=100e-6)
    assert scene.take()[1:] == [f"a: run x{i:02} #1" for i in range(3, 12)]


def test_the_pipe_has_a_limit_whatever_tasks_take() -> None:
    """No-ops are expected to take a microsecond at least, and no more than so many are out."""
    scene = Scene(pipe_runs_max=5)
    scene.workers("a")
    scene.submit(**{f"x{i:02}": [] for i in range(40)})
    scene.finish("x00", "x01", seconds=0.0)
    assert scene.worker("a").nsent == 5


def test_tasks_of_an_unknown_prefix_keep_the_pipe_empty(scene: Scene) -> None:
    """x is known to be short; of y nothing is known, so one is enough to fill the pipe."""
    scene.workers("a")
    scene.submit(x0=[])
    scene.finish("x0", seconds=1e-6)
    scene.submit(y0=[], y1=[], y2=[], x1=[])
    assert scene.take()[2:] == ["a: run y0 #1", "a: run y1 #1"]


def test_room_goes_to_the_more_urgent_of_backlog_and_queue(scene: Scene) -> None:
    """a has y1 to y4 in its backlog, for x is there; q1 and q2 may run anywhere."""
    scene.workers("a")
    scene.submit(x=[])
    scene.finish("x")
    scene.submit(y1=["x"], y2=["x"])
    scene.submit(q1=[])
    scene.submit(y3=["x"])
    scene.submit(q2=[], options=TaskOptions(priority=1))
    scene.submit(y4=["x"])
    scene.take()

    for key in ("y1", "y2", "q2", "q1", "y3"):
        scene.finish(key)
    assert [line for line in scene.take() if line.startswith("a")] == [
        "a: run q2 #1",
        "a: run q1 #1",
        "a: run y3 #1",
        "a: run y4 #1",
    ]


def test_a_task_that_left_the_queue_and_came_back_runs_once(scene: Scene) -> None:
    """x2 is queued, given up, and submitted again."""
    scene.workers("a")
    scene.submit(x0=[], x1=[], x2=[], x3=[])
    scene.release("x2")
    scene.submit(x2=[])
    scene.take()

    scene.finish("x0")
    scene.finish("x1")
    assert scene.take() == [
        "c: x0 in memory at a",
        "a: run x3 #1",
        "c: x1 in memory at a",
        "a: run x2 #1",
    ]


def test_what_a_task_submits_comes_before_what_was_submitted_earlier() -> None:
    """So that a task which waits for it need not wait until all others of its kind wait too."""
    scene = Scene(worker_saturation=1.0)
    scene.workers("a")
    scene.submit(x1=[], x2=[], x3=[])
    scene.submit("inner", y1=[], y2=["y1"], options=TaskOptions(inside=Key("x1")))
    scene.from_worker("a", WorkerHeartbeat(nwaiting=1))
    scene.submit("inner", z=[], options=TaskOptions(inside=Key("y1")))
    scene.finish("y1", value=b"1")
    scene.finish("z", value=b"1")
    scene.finish("y2", value=b"1")
    runs = [line for line in scene.take() if line.startswith("a: run")]
    assert [line.split()[2] for line in runs] == ["x1", "y1", "z", "y2", "x2"]


def test_a_task_of_more_urgency_comes_before_what_tasks_submit() -> None:
    scene = Scene(worker_saturation=1.0)
    scene.workers("a")
    scene.submit(x=[], options=TaskOptions(priority=1.0))
    scene.submit(y=[], options=TaskOptions(inside=Key("x")))
    scene.submit(z=[], options=TaskOptions(inside=Key("unknown"), priority=0.5))
    scene.finish("x", value=b"1")
    scene.finish("z", value=b"1")
    runs = [line for line in scene.take() if line.startswith("a: run")]
    assert [line.split()[2] for line in runs] == ["x", "z", "y"]
