"""Ready tasks that no connected worker may run: they wait, and fail if that is limited."""

from shoal.protocol.membership import RetireWorkers
from shoal.protocol.messages import TaskOptions
from tests.scenes.scheduler.scene import Scene

ON_B = TaskOptions(workers=["tcp://b:1"])


def test_without_a_limit_a_task_waits_for_ever() -> None:
    scene = Scene()
    scene.workers("a")
    scene.submit(x=[], options=ON_B)
    scene.advance(100_000.0)
    assert scene.state("x") == "no-worker"


def test_a_task_that_nobody_may_run_fails_when_its_time_is_over() -> None:
    """y fails with it; z, which the worker runs meanwhile, does not."""
    scene = Scene(no_workers_seconds=10.0)
    scene.workers("a")
    scene.submit(z=[])
    scene.submit(x=[], options=ON_B)
    scene.submit(y=["x"])
    scene.take()

    for _ in range(9):
        scene.heartbeat("a")
        scene.advance(1.0)
    assert scene.take() == []
    scene.advance(1.0)
    lines = scene.take()
    assert len(lines) == 2
    assert lines[0].startswith("c: x erred: NoValidWorkerError: Task 'x' was ready for 10 s")
    assert "one of the workers tcp://b:1" in lines[0]
    assert lines[1].startswith("c: y erred: NoValidWorkerError: Task 'x' was ready for 10 s")
    assert scene.state("z") == "processing"


def test_workers_that_may_not_run_it_do_not_prolong_its_time() -> None:
    """One comes every two seconds, and each time the task is looked at anew."""
    scene = Scene(no_workers_seconds=10.0)
    scene.submit(x=[], options=ON_B)
    for number in range(5):
        scene.advance(2.0)
        assert scene.state("x") == ("no-worker" if number < 4 else "erred")
        scene.join(f"w{number}")


def test_its_time_begins_anew_when_it_was_being_run() -> None:
    """b comes at 8 and is lost at 9, so that 10 is not the end, but 19."""
    scene = Scene(no_workers_seconds=10.0)
    scene.submit(x=[], options=ON_B)
    scene.advance(8.0)
    scene.join("b")
    assert scene.take() == ["b: run x #1"]
    scene.advance(1.0)
    scene.lose("b", expected=True)
    scene.advance(9.0)
    assert scene.state("x") == "no-worker"
    scene.advance(1.0)
    assert scene.state("x") == "erred"


def test_what_any_worker_may_run_fails_once_none_was_there_for_so_long() -> None:
    scene = Scene(no_workers_seconds=10.0)
    scene.advance(60.0)  # nobody waits
    scene.submit(x=[])
    scene.advance(5.0)
    scene.submit(y=[])
    assert [scene.state(key) for key in "xy"] == ["queued", "queued"]
    scene.advance(5.0)
    lines = scene.take()
    assert lines[0].startswith("c: x erred: NoWorkerError: No worker was connected for 10 s")
    assert lines[1].startswith("c: y erred: NoWorkerError")


def test_what_is_queued_while_all_are_busy_does_not_fail() -> None:
    scene = Scene(no_workers_seconds=10.0)
    scene.workers("a")
    scene.submit(p=[], q=[], r=[])
    assert scene.state("r") == "queued"
    for _ in range(30):
        scene.heartbeat("a")
        scene.advance(1.0)
    assert scene.state("r") == "queued"


def test_the_last_worker_that_goes_starts_the_clock_and_the_next_one_stops_it() -> None:
    scene = Scene(no_workers_seconds=10.0)
    scene.workers("a", "b")
    scene.submit(p=[], q=[], r=[], s=[], t=[])
    scene.lose("a", expected=True)
    scene.advance(20.0)
    assert scene.state("t") == "queued"
    scene.lose("b", expected=True)
    scene.advance(9.0)
    scene.join("d")
    scene.advance(20.0)
    assert scene.state("t") == "queued"
    scene.lose("d", expected=True)
    scene.advance(10.0)
    assert [scene.state(key) for key in "pqrst"] == ["erred"] * 5


def test_a_task_that_is_let_go_of_in_time_does_not_fail() -> None:
    scene = Scene(no_workers_seconds=10.0)
    scene.submit(x=[], options=ON_B)
    scene.submit(y=[])
    scene.advance(9.0)
    scene.release("x", "y")
    scene.take()
    scene.advance(20.0)
    assert scene.take() == []


def test_who_comes_once_nobody_waits_any_more_has_all_the_time() -> None:
    """x goes at 1, so that y, which comes at 9, is not late at 10."""
    scene = Scene(no_workers_seconds=10.0)
    scene.submit(x=[])
    scene.advance(1.0)
    scene.release("x")
    scene.advance(8.0)
    scene.submit(y=[])
    scene.advance(9.0)
    assert scene.state("y") == "queued"
    scene.advance(1.0)
    assert scene.state("y") == "erred"


def test_a_worker_that_was_to_go_and_stays_stops_the_clock() -> None:
    """b, which was to take what only a holds, is lost while tasks are queued."""
    scene = Scene(no_workers_seconds=10.0)
    scene.workers("a")
    scene.submit(x=[])
    scene.finish("x")
    scene.join("b")
    scene.call(RetireWorkers, workers=["a"], removes=True, patience_seconds=30.0)
    scene.submit(p=[], q=[], r=[], s=[])
    scene.lose("b", expected=True)
    assert "c: answer {'a': 'no other worker can take what only it holds'}" in scene.take()
    for _ in range(20):
        scene.heartbeat("a")
        scene.advance(1.0)
    assert [scene.state(key) for key in "pqrs"] == ["processing", "processing", "queued", "queued"]


def test_tasks_that_come_one_by_one_fail_one_by_one_and_each_at_its_time() -> None:
    scene = Scene(no_workers_seconds=10.0)
    for key in ("x0", "x1", "x2"):
        scene.submit(**{key: []}, options=ON_B)
        scene.advance(1.0)
    scene.join("a")  # all are looked at anew, and go on waiting
    scene.release("x1")
    scene.take()
    ended = []
    for _ in range(9):
        scene.heartbeat("a")
        scene.advance(1.0)
        ended.append([line.partition(":")[2].split()[0] for line in scene.take()])
    assert ended == [[]] * 6 + [["x0"], [], ["x2"]]


def test_what_waits_again_and_again_leaves_little_behind() -> None:
    """b comes and goes, and each time x waits anew."""
    scene = Scene(no_workers_seconds=100_000.0)
    scene.submit(x=[], options=ON_B)
    for _ in range(1000):
        scene.join("b")
        scene.advance(1.0)
        scene.lose("b", expected=True)
    assert scene.state("x") == "no-worker"
    assert len(scene.machine.state.stranded) < 300


def test_ten_thousand_tasks_fail_at_once_and_in_a_moment() -> None:
    scene = Scene(no_workers_seconds=10.0)
    scene.submit(**{f"x{number}": [] for number in range(10_000)})
    scene.advance(10.0)
    assert len([line for line in scene.take() if "NoWorkerError" in line]) == 10_000


def test_known_durations_are_expected_until_one_was_seen() -> None:
    """Those of g are expected to take a minute, those of f the usual half second."""
    scene = Scene(known_seconds={"g": 60.0})
    scene.workers("a")
    scene.submit(f1=[], g1=[])
    worker = scene.worker("a")
    assert [worker.processing[scene.task(key)] for key in ("f1", "g1")] == [500_000, 60_000_000]
    scene.finish("g1", seconds=20.0)
    scene.submit(g2=[])
    assert worker.processing[scene.task("g2")] == 40_000_000  # half of what was known


def test_what_was_placed_stays_there_if_work_is_not_to_be_moved() -> None:
    """x is on a, so that what needs it is placed there; b idles, and would take one otherwise."""
    for moves_work, runs_on_b in ((True, True), (False, False)):
        scene = Scene(moves_work=moves_work)
        scene.workers("a")
        scene.submit(x=[])
        scene.finish("x", nbytes=10_000)
        scene.submit(**{f"y{number}": ["x"] for number in range(6)})
        scene.join("b")
        scene.advance(60.0)
        assert any(line.startswith("b: run") for line in scene.take()) is runs_on_b
