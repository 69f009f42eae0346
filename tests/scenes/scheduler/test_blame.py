"""Workers die: who is to blame, and what goes on elsewhere."""

from shoal.errors import KilledWorker
from shoal.protocol.exceptions import from_failure
from shoal.protocol.messages import TaskOptions, WorkerHeartbeat
from shoal.scheduler.machine.on_membership import DEATHS_MAX
from tests.scenes.scheduler.scene import Scene


def test_a_task_that_kills_its_workers_is_not_run_for_ever() -> None:
    """With one failure allowed, the second death under x ends it, with a text that says why."""
    scene = Scene(allowed_failures=1)
    scene.workers("a", "b", "d")
    scene.submit(x=[], y=["x"])
    scene.lose("a", "signal 9")
    assert scene.take() == ["a: run x #1", "b: run x #2"]

    scene.lose("b", "signal 9")
    assert scene.take() == [
        "c: x erred: KilledWorker: Task 'x' was running on 2 workers as they died; "
        "the last was tcp://b:1 (signal 9).",
        "c: y erred: KilledWorker: Task 'x' was running on 2 workers as they died; "
        "the last was tcp://b:1 (signal 9). (of x)",
    ]


def test_only_what_may_have_been_executing_is_blamed(scene: Scene) -> None:
    """One thread: x1 runs, x2 was sent and can't have begun, x3 is kept in the backlog."""
    scene.workers("a")
    scene.submit(x1=[], x2=[], x3=[], options=TaskOptions(workers=["a", "b"]))
    assert scene.take() == ["a: run x1 #1", "a: run x2 #1"]

    scene.lose("a")
    assert [scene.task(key).blame for key in ("x1", "x2", "x3")] == [1, 0, 0]

    scene.join("b")
    assert scene.take() == ["b: run x1 #2"]  # the suspect alone


def test_every_thread_has_a_suspect(scene: Scene) -> None:
    """Two threads: x1 and x2 may both have been the cause."""
    scene.workers("a", nthreads=2)
    scene.submit(x1=[], x2=[], x3=[], x4=[])
    scene.lose("a")
    assert [scene.task(f"x{i}").blame for i in (1, 2, 3, 4)] == [1, 1, 0, 0]


def test_nobody_is_blamed_for_a_worker_that_was_told_to_go(scene: Scene) -> None:
    """Its end was asked for."""
    scene.workers("a", "b")
    scene.submit(x=[])
    scene.lose("a", expected=True)
    assert scene.take() == ["a: run x #1", "b: run x #2"]
    assert scene.task("x").blame == 0


def test_a_worker_that_leaves_gets_nothing_more_and_nobody_is_blamed(scene: Scene) -> None:
    """It runs what it has; what is new goes elsewhere, and so does all of it once it has gone."""
    scene.workers("a", "b")
    scene.submit(x=[])
    scene.leave("a")
    scene.submit(y1=[], y2=[], y3=[])
    assert scene.take() == ["a: run x #1", "b: run y1 #1", "b: run y2 #1"]

    scene.lose("a")
    assert scene.task("x").blame == 0
    scene.finish("y1")
    assert scene.take() == ["c: y1 in memory at b", "b: run x #2"]


def test_results_of_a_leaving_worker_are_not_a_reason_to_run_there(scene: Scene) -> None:
    """x is on a, which leaves: y fetches it to b."""
    scene.workers("a", "b")
    scene.submit(x=[])
    scene.finish("x")
    scene.leave("a")
    scene.submit(y=["x"])
    assert scene.take() == ["a: run x #1", "c: x in memory at a", "b: run y #1 (x from a)"]


def test_the_loss_of_a_worker_that_was_replaced_is_old_news(scene: Scene) -> None:
    """a connects anew before its first connection is known to have ended."""
    scene.workers("a")
    before = scene.worker("a")
    scene.join("a")
    scene.submit(x=[])
    scene.take()

    scene.machine.worker_lost(before, scene.now)
    scene.machine.receive_from_worker(before, [], scene.now)
    assert scene.machine.take_outgoing() == []
    assert scene.state("x") == "processing"


def test_a_suspect_runs_alone_so_its_neighbours_are_not_condemned_with_it(scene: Scene) -> None:
    """x had finished, but its worker died of k before it could say so: x is blamed, and cleared."""
    scene.workers("a")
    scene.submit(x=[], k=[])
    assert scene.take() == ["a: run x #1", "a: run k #1"]
    scene.lose("a")
    scene.join("b")
    assert scene.take() == ["b: run x #2"]
    scene.finish("x", value=b"1")
    assert scene.take() == ["c: x in memory inline", "b: run k #2"]
    for worker, after in zip("bcde", "cdef", strict=True):
        scene.lose(worker)
        scene.join(after)
    assert scene.state("k") == "erred"
    assert (scene.task("x").blame, scene.state("x")) == (1, "memory")


def test_the_error_says_what_workers_died_of_as_far_as_their_successors_have_told() -> None:
    """Two deaths under x; the first one's successor has told its cause, the second's comes late."""
    scene = Scene(allowed_failures=1)
    scene.join("a", host="h", pid=1)
    scene.submit(x=[])
    scene.lose("a", "it is gone")
    scene.join("b", host="h", pid=2, predecessor=1, predecessor_death="exit code 7")
    assert scene.take() == ["a: run x #1", "b: run x #2"]

    scene.lose("b", "it is gone")
    failure = scene.task("x").failure
    assert failure is not None
    error = from_failure(failure)
    assert isinstance(error, KilledWorker)
    assert error.causes == ["exit code 7"]
    told = (
        "tcp://b:1 (it is gone).\n1 of them died of: exit code 7; what 1 died of was not known yet"
    )
    assert told in str(error)


def test_what_is_known_of_deaths_goes_with_the_task_and_is_bounded(scene: Scene) -> None:
    scene.join("a", host="h", pid=1)
    scene.submit(x=[])
    scene.lose("a")
    assert list(scene.machine.state.died_under.values()) == [[("h", 1)]]
    scene.release("x")
    assert scene.machine.state.died_under == {}
    for pid in range(2, DEATHS_MAX + 10):
        scene.join("b", host="h", pid=pid, predecessor=pid - 1, predecessor_death="SIGKILL")
        scene.lose("b")
    assert len(scene.machine.state.deaths) == DEATHS_MAX


def test_a_suspect_that_waits_for_other_tasks_gets_them_run(scene: Scene) -> None:
    """x was running as a died; on b it submits y1 and y2 and waits, and they run one by one."""
    scene.workers("a")
    scene.submit(x=[])
    scene.lose("a")
    scene.join("b")
    scene.submit("d", y1=[], y2=[], y3=[])
    assert scene.take() == ["a: run x #1", "b: run x #2"]

    scene.from_worker("b", WorkerHeartbeat(nwaiting=1))
    assert scene.take() == ["b: run y1 #1"]
    scene.finish("y1")
    assert scene.take() == ["d: y1 in memory at b", "b: run y2 #1"]
    scene.from_worker("b", WorkerHeartbeat())
    scene.finish("y2")
    assert scene.take() == ["d: y2 in memory at b"]  # x goes on, alone
    scene.finish("x")
    assert scene.take() == ["c: x in memory at b", "b: run y3 #1"]


def test_a_suspect_may_be_what_the_runs_beside_it_wait_for(scene: Scene) -> None:
    """w waits on the only worker; x, under which another one died, is what it waits for."""
    scene.workers("a")
    scene.submit(x=[])
    scene.lose("a")
    scene.submit(w=[], options=TaskOptions(priority=1))
    scene.workers("b")
    assert scene.take() == ["a: run x #1", "b: run w #1"]

    scene.from_worker("b", WorkerHeartbeat(nwaiting=1))
    assert scene.take() == ["b: run x #2"]


def test_runs_that_wait_for_others_have_begun_and_so_has_what_took_their_threads(
    scene: Scene,
) -> None:
    """One thread: w waits, its substitute has x, and y1 and y2 can't have begun."""
    scene.workers("a")
    scene.submit(w=[], x=[], y1=[], y2=[])
    scene.from_worker("a", WorkerHeartbeat(nwaiting=1))
    assert scene.take() == ["a: run w #1", "a: run x #1", "a: run y1 #1"]
    scene.lose("a")
    assert [scene.task(key).blame for key in ("w", "x", "y1", "y2")] == [1, 1, 0, 0]
