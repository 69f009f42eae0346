"""Workers that are silent though they should have spoken, and what becomes of what they had."""

import ast

import pytest

from shoal.protocol.membership import Closing, RetireWorkers
from shoal.protocol.messages import ReplicasGone, TaskOptions, WorkerHeartbeat
from shoal.protocol.placement import ExplainTasks
from shoal.scheduler.policies.retirement import workers_to_close
from tests.scenes.scheduler.scene import Scene

ON_A = TaskOptions(workers=["a"], allow_other_workers=True)


@pytest.fixture
def scene() -> Scene:
    return Scene(suspect_seconds=10.0, worker_ttl_seconds=60.0)


def fall_silent(scene: Scene, *others: str, seconds: float = 10.0) -> None:
    """All but `others` say nothing for so long."""
    left = seconds
    while left > 0:
        scene.advance(min(5.0, left))
        left -= 5.0
        for name in others:
            scene.heartbeat(name)


def test_what_a_silent_worker_ran_runs_elsewhere_and_nobody_is_blamed(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[])
    assert scene.take() == ["a: run x #1"]
    scene.workers("b")
    fall_silent(scene, "b", seconds=9.0)
    assert scene.take() == []
    fall_silent(scene, "b", seconds=1.0)
    assert scene.take() == ["a: recall x #1", "b: run x #2"]
    assert scene.task("x").blame == 0
    [warning] = scene.warnings
    assert "Worker a (tcp://a:1, process id 0) has been silent for 10.0 s" in warning


def test_nothing_more_is_placed_on_a_suspect(scene: Scene) -> None:
    scene.workers("a", "b")
    fall_silent(scene, "b")
    scene.submit(x=[], y=[], z=[])
    assert {line[0] for line in scene.take()} == {"b"}


def test_what_only_a_silent_worker_has_is_computed_again(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[])
    scene.finish("x")
    scene.workers("b")
    fall_silent(scene, "b")
    scene.take()
    scene.submit(y=["x"])
    assert scene.take() == []
    assert scene.state("x") == "processing"
    scene.finish("x", on="b")
    assert scene.take() == ["c: x in memory at b", "b: run y #1"]


def test_a_worker_that_thaws_has_its_results_again_and_nothing_is_computed_twice(
    scene: Scene,
) -> None:
    """x is about to be computed on b as a is heard: b need not."""
    scene.workers("a")
    scene.submit(x=[], w=[])
    scene.finish("x")
    scene.workers("b")
    fall_silent(scene, "b")
    scene.take()
    scene.heartbeat("a")
    assert "c: x in memory at a" in scene.take()
    assert scene.state("x") == "memory"
    scene.submit(y=["x"], options=ON_A)
    assert "a: run y #1" in scene.take()


def test_a_run_that_ends_on_a_worker_that_thaws_counts(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[])
    scene.workers("b")
    fall_silent(scene, "b")
    scene.take()
    scene.finish("x", on="a", nth=1)
    assert scene.take() == ["b: recall x #2", "c: x in memory at a"]


def test_of_two_runs_the_later_result_is_a_further_copy(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[])
    scene.workers("b")
    fall_silent(scene, "b")
    scene.finish("x", on="b", nth=2)
    scene.take()
    scene.finish("x", on="a", nth=1)
    assert scene.take() == []
    assert [worker.name for worker in scene.task("x").who_has or ()] == ["b", "a"]


def test_what_was_let_go_of_meanwhile_is_freed_by_who_thaws(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[])
    scene.finish("x")
    scene.workers("b")
    fall_silent(scene, "b")
    scene.release("x")
    scene.take()
    scene.heartbeat("a")
    assert scene.take() == ["a: free x"]


def test_a_worker_whose_nanny_vouches_for_it_is_no_suspect(scene: Scene) -> None:
    scene.workers("a", "b")
    scene.submit(x=[], options=ON_A)
    scene.take()
    for _ in range(4):
        fall_silent(scene, "b", seconds=5.0)
        scene.machine.worker_vouched(scene.worker("a"), scene.now)
    assert scene.take() == []
    fall_silent(scene, "b")
    assert scene.take() == ["a: recall x #1", "b: run x #2"]


def test_a_suspect_is_taken_back_once_its_nanny_vouches_for_it(scene: Scene) -> None:
    scene.workers("a", "b")
    fall_silent(scene, "b")
    assert not scene.worker("a").takes_work
    scene.machine.worker_vouched(scene.worker("a"), scene.now)
    assert scene.worker("a").takes_work


def test_a_suspect_is_given_up_after_its_time_to_live_as_ever(scene: Scene) -> None:
    scene.workers("a", "b")
    for _ in range(11):
        fall_silent(scene, "b", seconds=5.0)
    assert "a" in [worker.name for worker in scene.machine.state.workers.values()]
    assert scene.advance(6.5) == ["a"]


def test_a_task_that_silences_its_workers_is_blamed_when_those_are_given_up(scene: Scene) -> None:
    """It runs on b by then, and may do it again; the fourth time it has failed."""
    scene = Scene(suspect_seconds=10.0, worker_ttl_seconds=60.0, allowed_failures=1)
    scene.workers("a")
    scene.submit(x=[])
    scene.workers("b", "d")
    fall_silent(scene, "b", "d")
    scene.take()
    scene.lose("a")
    assert scene.task("x").blame == 1
    assert scene.state("x") == "processing"
    scene.lose("b" if scene.run("x")[0].name == "b" else "d")
    assert scene.state("x") == "erred"


def test_what_has_ended_since_is_not_blamed(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[])
    scene.workers("b")
    fall_silent(scene, "b")
    scene.finish("x", on="b")
    scene.lose("a")
    assert scene.state("x") == "memory"
    assert scene.task("x").blame == 0


def test_a_scattered_value_waits_for_the_suspect_that_alone_has_it(scene: Scene) -> None:
    scene.workers("a")
    scene.scatter("v")
    scene.holds("a", "v")
    scene.workers("b")
    scene.submit(y=["v"], options=TaskOptions(workers=["b"]))
    scene.take()
    fall_silent(scene, "b")
    scene.submit(z=["v"])
    assert scene.state("v") == "waiting"
    scene.take()
    scene.call(ExplainTasks, keys=["z"])
    [line] = scene.take()
    lines = "".join(ast.literal_eval(line.removeprefix("c: answer ")))
    assert "it was scattered, and only worker a has it, silent for 10.0 s" in lines
    scene.heartbeat("a")
    assert scene.state("v") == "memory"
    assert scene.state("z") == "processing"


def test_a_scattered_value_is_lost_with_the_suspect_that_is_given_up(scene: Scene) -> None:
    scene.workers("a")
    scene.scatter("v")
    scene.holds("a", "v")
    scene.workers("b")
    scene.submit(z=["v"], options=TaskOptions(workers=["nobody"]))
    fall_silent(scene, "b")
    scene.take()
    scene.lose("a")
    assert scene.state("v") == "erred"
    assert scene.state("z") == "erred"


def test_actors_stay_where_they_are(scene: Scene) -> None:
    scene.workers("a", "b")
    scene.submit(x=[], options=TaskOptions(actor=True, workers=["a"]))
    scene.finish("x", value=b"proxy")
    scene.take()
    fall_silent(scene, "b")
    assert scene.state("x") == "memory"
    assert scene.task("x") in scene.worker("a").actors
    scene.heartbeat("a")
    assert scene.take() == []


def test_whoever_could_not_be_heard_is_not_silent(scene: Scene) -> None:
    """The scheduler itself was stopped: it counts anew from then on."""
    scene.workers("a", "b")
    scene.submit(x=[])
    scene.take()
    scene.now += 30.0
    scene.machine.wake(scene.now)
    assert scene.worker("a").takes_work
    scene.advance(9.0)
    assert scene.worker("a").takes_work
    scene.advance(1.5)
    assert not scene.worker("a").takes_work


def test_what_may_run_there_only_waits_until_it_thaws(scene: Scene) -> None:
    scene.workers("a", "b")
    scene.submit(x=[], options=TaskOptions(workers=["a"], allow_other_workers=False))
    fall_silent(scene, "b")
    scene.take()
    assert scene.state("x") == "no-worker"
    scene.from_worker("a", WorkerHeartbeat())
    assert scene.take() == ["a: run x #2"]


def test_all_may_be_suspect_and_come_back(scene: Scene) -> None:
    scene.workers("a", "b")
    scene.submit(x=[], y=[])
    scene.finish("x")
    fall_silent(scene)
    assert not len(scene.machine.state.open)
    scene.heartbeat("b")
    scene.heartbeat("a")
    assert scene.state("x") == "memory"
    assert scene.state("y") == "processing"


def test_what_runs_there_again_counts_and_what_ran_before_does_not(scene: Scene) -> None:
    """The worker throws the older one's result away, as it has the newer run."""
    scene.workers("a")
    scene.submit(x=[])
    fall_silent(scene)
    scene.heartbeat("a")
    assert scene.take() == ["a: run x #1", "a: recall x #1", "a: run x #2"]
    scene.finish("x", on="a", nth=1)
    assert scene.state("x") == "processing"
    assert scene.take() == []
    scene.finish("x", on="a", nth=2)
    assert scene.take() == ["c: x in memory at a"]


def test_what_still_runs_there_keeps_its_memory_from_the_next_run_of_its_task(
    scene: Scene,
) -> None:
    gibibyte = 1 << 30
    scene.join("a", nthreads=2, memory_limit=2 * gibibyte)
    scene.submit(i=[])
    scene.finish("i")
    scene.submit(x=["i"], options=TaskOptions(memory=int(1.4 * gibibyte)))
    scene.take()
    fall_silent(scene)
    scene.heartbeat("a")
    assert not any("run x" in line for line in scene.take())
    assert scene.task("x").worker is scene.worker("a")
    scene.finish("x", on="a", nth=1)  # so that it counts
    assert scene.take() == ["c: x in memory at a"]


def test_a_suspect_that_retires_keeps_what_waits_for_it(scene: Scene) -> None:
    scene.workers("a")
    scene.scatter("v")
    scene.holds("a", "v")
    scene.workers("b")
    fall_silent(scene, "b")
    scene.submit(z=["v"])
    scene.take()
    scene.call(RetireWorkers, workers=["a"])
    assert scene.take() == []
    assert scene.state("v") == "waiting"
    scene.heartbeat("a")
    assert "b: copy v from a" in scene.take()
    scene.holds("b", "v")
    assert "a: shut down: it was retired" in scene.take()
    assert scene.state("v") == "memory"


def test_a_suspect_is_not_chosen_to_be_closed_though_it_has_nothing(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[])
    scene.finish("x")
    scene.workers("b", "c")
    fall_silent(scene, "b", "c")
    assert scene.worker("a").nbytes == 0
    chosen = workers_to_close(scene.machine.state.workers.values(), Closing(n=1))
    assert [worker.name for worker in chosen] in (["b"], ["c"])


def test_an_actor_that_was_being_made_is_blamed_once_for_one_death(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[], options=TaskOptions(actor=True))
    scene.workers("b")
    fall_silent(scene, "b")
    scene.lose("a")
    assert scene.task("x").blame == 1


def beat(scene: Scene, name: str, received_bytes: int, *, has_heard: bool = False) -> None:
    """A second later a worker says that it lives, and how much it has received.

    `has_heard`: also what it was asked last.
    """
    scene.advance(1.0)
    heard = scene.worker(name).hearing.nsaid_asked if has_heard else 0
    scene.from_worker(name, WorkerHeartbeat(1, received_bytes=received_bytes, heard=heard))
    for other in scene.worker_by_name:
        if other != name:
            scene.heartbeat(other)


def test_a_worker_that_hears_nothing_is_as_good_as_silent(scene: Scene) -> None:
    scene.workers("a")
    beat(scene, "a", 100)
    scene.submit(x=[])
    assert scene.take() == ["a: run x #1"]
    scene.workers("b")
    beat(scene, "a", 100)
    assert scene.take() == ["a: ask what it hears"]  # for it to receive something
    for _ in range(9):
        beat(scene, "a", 100)
        assert scene.take() == []
    beat(scene, "a", 100)
    assert scene.take() == ["a: recall x #1", "b: run x #2"]
    [warning] = scene.warnings
    assert "has heard nothing of what it was told for 10.0 s" in warning
    beat(scene, "a", 100)
    assert not scene.worker("a").takes_work
    beat(scene, "a", 180)
    assert scene.worker("a").takes_work


def go_deaf(scene: Scene) -> None:
    """a runs x and hears nothing more: x runs on b too."""
    scene.workers("a")
    beat(scene, "a", 100)
    scene.submit(x=[])
    scene.workers("b")
    for _ in range(12):
        beat(scene, "a", 100)
    assert scene.take()[-2:] == ["a: recall x #1", "b: run x #2"]


def test_what_ends_on_a_worker_that_hears_nothing_counts_once_it_hears(scene: Scene) -> None:
    go_deaf(scene)
    scene.finish("x", on="a", nth=1)
    assert scene.take() == []
    beat(scene, "a", 150)
    assert scene.take() == ["b: recall x #2", "c: x in memory at a"]
    assert not scene.worker("a").forfeited


def test_what_a_worker_that_hears_nothing_has_lost_is_not_believed_to_be_there(
    scene: Scene,
) -> None:
    """It says so as it hears nothing, and is given its results again as it hears."""
    scene.workers("a", "b")
    beat(scene, "a", 100)
    scene.submit(x=[], options=ON_A)
    scene.finish("x")
    scene.submit(y=[], options=ON_A)
    for _ in range(12):
        beat(scene, "a", 110)
    assert not scene.worker("a").takes_work
    scene.from_worker("a", ReplicasGone([scene.number("x")]))
    beat(scene, "a", 150)
    assert scene.worker("a").takes_work
    assert scene.task("x") not in scene.worker("a").has_what


def test_what_was_said_by_who_heard_nothing_counts_once_it_is_vouched_for(scene: Scene) -> None:
    go_deaf(scene)
    scene.finish("x", on="a", nth=1)
    scene.machine.worker_vouched(scene.worker("a"), scene.now)
    assert scene.task("x").state == "memory"


def test_it_is_noticed_though_something_had_just_arrived(scene: Scene) -> None:
    """What had come meanwhile may have been all, or only what was said before the run."""
    scene.workers("a")
    beat(scene, "a", 100)
    scene.submit(x=[])
    scene.workers("b")
    scene.take()
    beat(scene, "a", 110)
    beat(scene, "a", 110)
    assert scene.take() == ["a: ask what it hears"]
    for _ in range(10):
        beat(scene, "a", 110)
    assert scene.take() == ["a: recall x #1", "b: run x #2"]


def test_it_is_noticed_though_what_was_said_before_the_question_has_arrived(scene: Scene) -> None:
    """Of two runs and a question the first run arrives, and nothing more."""
    scene.workers("a")
    beat(scene, "a", 100)
    scene.submit(x=[])
    scene.submit(y=[])
    scene.workers("b")
    beat(scene, "a", 100)
    assert scene.take()[-1] == "a: ask what it hears"
    beat(scene, "a", 150)
    scene.finish("x", on="a")
    for _ in range(12):
        beat(scene, "a", 150)
    assert not scene.worker("a").takes_work


def test_a_worker_at_rest_is_asked_once_whether_it_has_heard_all(scene: Scene) -> None:
    scene.workers("a", "b")
    scene.submit(x=[], options=ON_A)
    scene.finish("x")
    scene.take()
    beat(scene, "a", 150)
    beat(scene, "a", 150)
    assert scene.take() == ["a: ask what it hears"]
    for _ in range(20):
        beat(scene, "a", 160, has_heard=True)
    assert scene.take() == []
    assert scene.worker("a").takes_work


def test_a_worker_that_hears_slowly_is_no_suspect(scene: Scene) -> None:
    scene.workers("a", "b")
    for n in range(40):
        scene.submit(**{f"x{n}": []}, options=ON_A)
        beat(scene, "a", 100 + n // 3)
    assert scene.worker("a").takes_work
    assert not scene.warnings


def test_a_worker_that_says_it_lives_before_it_reads_has_time_to_read(scene: Scene) -> None:
    """It was held up for long, and vouched for; what it is told came just before."""
    scene.workers("a", "b")
    beat(scene, "a", 100)
    scene.submit(x=[], options=ON_A)
    beat(scene, "a", 100)
    for _ in range(6):
        scene.advance(5.0)
        scene.heartbeat("b")
        scene.machine.worker_vouched(scene.worker("a"), scene.now)
    beat(scene, "a", 100)
    beat(scene, "a", 150)
    assert scene.worker("a").takes_work
    assert not scene.warnings
