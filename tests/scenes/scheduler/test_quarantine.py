"""Workers on which all fails that succeeds elsewhere are given nothing for a while."""

import ast

from shoal.protocol.messages import TaskOptions
from shoal.protocol.placement import ExplainTasks
from tests.scenes.scheduler.scene import Scene

ON_A = TaskOptions(workers=["a"], allow_other_workers=True)
NFAILURES = 10


def run_well(scene: Scene, name: str, nruns: int, offset: int = 0) -> None:
    """So many runs of the kind end well on a worker."""
    options = TaskOptions(workers=[name])
    for n in range(offset, offset + nruns):
        scene.submit(prefix="load", options=options, **{f"{name}-well-{n}": []})
        scene.finish(f"{name}-well-{n}")


def fail_on(scene: Scene, name: str, nruns: int, offset: int = 0) -> None:
    options = TaskOptions(workers=[name], allow_other_workers=True)
    for n in range(offset, offset + nruns):
        scene.submit(prefix="load", options=options, **{f"{name}-bad-{n}": []})
        scene.fail(f"{name}-bad-{n}", "OSError: no such mount")


def quarantined(scene: Scene) -> None:
    """On a all has failed, and on b nothing."""
    fail_on(scene, "a", 1)
    run_well(scene, "b", NFAILURES)
    fail_on(scene, "a", NFAILURES - 1, offset=1)
    scene.take()


def test_a_worker_on_which_all_fails_that_succeeds_elsewhere_is_given_nothing(scene: Scene) -> None:
    scene.workers("a", "b")
    quarantined(scene)
    assert not scene.worker("a").takes_work
    scene.submit(x=[], y=[])
    assert {line[0] for line in scene.take()} == {"b"}
    [warning] = scene.warnings
    assert warning.startswith(
        "On worker a (tcp://a:1) the last 10 runs have failed, while 10 of the same kinds ended "
        "well elsewhere: it is given nothing for 10.0 s"
    )
    assert "The latest raised: OSError: no such mount" in warning


def test_what_fails_everywhere_is_nobodys_fault(scene: Scene) -> None:
    scene.workers("a", "b")
    fail_on(scene, "a", 30)
    fail_on(scene, "b", 30)
    assert scene.worker("a").takes_work
    assert scene.worker("b").takes_work
    assert not scene.warnings


def test_a_worker_on_which_anything_ends_well_goes_on(scene: Scene) -> None:
    scene.workers("a", "b")
    for turn in range(5):
        fail_on(scene, "a", NFAILURES - 1, offset=20 * turn)
        run_well(scene, "b", NFAILURES, offset=20 * turn)
        run_well(scene, "a", 1, offset=20 * turn)
    assert scene.worker("a").takes_work
    assert not scene.machine.state.failing


def test_it_is_tried_again_and_put_away_for_longer_each_time(scene: Scene) -> None:
    scene.workers("a", "b")
    quarantined(scene)
    for turn, seconds in enumerate((10, 20, 40)):
        scene.advance(seconds - 1)
        assert not scene.worker("a").takes_work, turn
        scene.advance(1)
        assert scene.worker("a").takes_work, turn
        fail_on(scene, "a", 1, offset=100 + turn)
    assert not scene.worker("a").takes_work


def test_once_something_ends_well_there_it_is_one_like_others(scene: Scene) -> None:
    scene.workers("a", "b")
    quarantined(scene)
    scene.advance(10)
    run_well(scene, "a", 1)
    fail_on(scene, "a", NFAILURES - 1, offset=100)
    assert scene.worker("a").takes_work


def test_a_run_from_before_that_ends_well_lets_it_out(scene: Scene) -> None:
    scene.join("a", nthreads=2)
    scene.workers("b")
    scene.submit(prefix="load", options=ON_A, long=[])
    quarantined(scene)
    assert not scene.worker("a").takes_work
    scene.finish("long")
    assert scene.worker("a").takes_work


def test_half_of_the_workers_go_on_in_any_case(scene: Scene) -> None:
    scene.workers("a", "b", "c")
    fail_on(scene, "a", 1)
    fail_on(scene, "b", 1)
    run_well(scene, "c", NFAILURES)
    fail_on(scene, "a", NFAILURES, offset=1)
    fail_on(scene, "b", NFAILURES, offset=1)
    assert [scene.worker(name).takes_work for name in "abc"] == [False, True, True]


def test_what_may_run_there_only_waits_and_is_told_why(scene: Scene) -> None:
    scene.workers("a", "b")
    quarantined(scene)
    scene.submit(x=[], options=TaskOptions(workers=["a"]))
    scene.take()
    scene.call(ExplainTasks, keys=["x"])
    [line] = [line for line in scene.take() if line.startswith("c: answer ")]
    lines = "".join(ast.literal_eval(line.removeprefix("c: answer ")))
    assert "in quarantine, as all fails there that succeeds elsewhere: worker a" in lines
    scene.advance(10)
    assert "a: run x #1" in scene.take()


def test_it_can_be_turned_off() -> None:
    scene = Scene(quarantine_failures=0)
    scene.workers("a", "b")
    quarantined(scene)
    assert scene.worker("a").takes_work


def test_who_goes_leaves_nothing_behind(scene: Scene) -> None:
    scene.workers("a", "b")
    quarantined(scene)
    scene.lose("a")
    assert not scene.machine.state.failing
