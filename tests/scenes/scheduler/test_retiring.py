"""A worker that shall go: given nothing new, relieved of what only it holds, then removed."""

from shoal.ids import Key
from shoal.protocol.holding import ReplicateTasks
from shoal.protocol.membership import Closing, RetireWorkers, TimeIsOver
from shoal.protocol.messages import ReplicasGone, TaskOptions, WorkerHeartbeat
from shoal.scheduler.machine.copying import LOOKS_MAX, WORKERS_PER_LOOK
from tests.scenes.scheduler.scene import Scene


def retire(scene: Scene, *workers: str, removes: bool = True, patience: float = 30.0) -> None:
    scene.call(RetireWorkers, workers=list(workers), removes=removes, patience_seconds=patience)


def held_by_a(scene: Scene) -> None:
    """x is on a, and nowhere else; b is there too."""
    scene.workers("a")
    scene.submit(x=[])
    scene.finish("x")
    scene.join("b")
    scene.take()


def test_a_worker_goes_as_soon_as_the_copies_are_confirmed(scene: Scene) -> None:
    held_by_a(scene)
    retire(scene, "a")
    assert scene.take() == ["b: copy x from a"]

    scene.submit(y=["x"])
    assert scene.take() == ["b: run y #1 (x from a)"]  # nothing new for a

    scene.holds("b", "x")
    assert scene.take() == ["a: shut down: it was retired", "c: answer {'a': ''}"]
    assert scene.machine.state.workers.keys() == {"tcp://b:1"}
    assert scene.state("x") == "memory"


def test_a_worker_with_nothing_of_its_own_goes_at_once(scene: Scene) -> None:
    scene.workers("a", "b")
    scene.submit(x=[])
    scene.finish("x", value=b"1")  # small: the scheduler has it
    scene.take()
    retire(scene, "a")
    assert scene.take() == ["a: shut down: it was retired", "c: answer {'a': ''}"]


def test_what_was_not_sent_goes_elsewhere_and_what_has_not_begun_comes_back(scene: Scene) -> None:
    scene.workers("a")
    options = TaskOptions(workers=["a", "b"])
    scene.submit(p=[], q=[], r=[], options=options)
    scene.join("b")
    assert scene.take()[:2] == ["a: run p #1", "a: run q #1"]
    retire(scene, "a")
    said = scene.take()
    assert "a: recall p #1, q #1" in said
    assert scene.task("r").worker is scene.worker("b")

    scene.returned("q")
    assert scene.task("q").worker is scene.worker("b")
    scene.finish("p", value=b"1")  # it had begun, and ends in time
    assert "a: shut down: it was retired" in scene.take()


def test_a_run_that_takes_long_is_run_elsewhere_without_blame(scene: Scene) -> None:
    scene.workers("a", "b")
    scene.submit(x=[], options=TaskOptions(workers=["a"], allow_other_workers=True))
    scene.take()
    retire(scene, "a")
    scene.advance(0.9)
    assert scene.take() == ["a: recall x #1"]
    scene.advance(0.2)
    assert scene.take() == [
        "a: shut down: it was retired",
        "c: answer {'a': ''}",
        "b: run x #2",
    ]
    assert scene.task("x").blame == 0


def test_if_nobody_can_take_it_the_worker_goes_on_working(scene: Scene) -> None:
    held_by_a(scene)
    retire(scene, "a", "b")
    assert scene.take() == [
        "b: shut down: it was retired",
        "c: answer {'a': 'no other worker can take what only it holds', 'b': ''}",
    ]
    scene.submit(y=["x"])
    assert scene.take() == ["a: run y #1"]


def test_who_can_not_get_a_copy_is_not_asked_again(scene: Scene) -> None:
    held_by_a(scene)
    scene.join("d")
    retire(scene, "a")
    assert scene.take() == ["b: copy x from a"]
    scene.gone("b", "x")
    assert scene.take() == ["d: copy x from a"]
    scene.from_worker("d", ReplicasGone([scene.number("x")]))
    assert scene.take() == ["c: answer {'a': 'no other worker can take what only it holds'}"]
    assert not scene.worker("a").is_leaving


def test_a_silent_worker_is_passed_over(scene: Scene) -> None:
    held_by_a(scene)
    scene.join("d")
    retire(scene, "a")
    scene.take()
    scene.advance(9.0)
    scene.heartbeat("a")
    scene.advance(1.5)
    assert scene.take() == ["d: copy x from a"]


def test_one_that_is_not_relieved_in_time_goes_on_working(scene: Scene) -> None:
    held_by_a(scene)
    retire(scene, "a", patience=4.0)
    scene.advance(5.0)
    assert scene.take()[-1] == ("c: answer {'a': 'what only it holds was not taken in time'}")
    assert not scene.worker("a").is_leaving


def test_a_result_that_is_let_go_of_holds_nobody_up(scene: Scene) -> None:
    held_by_a(scene)
    retire(scene, "a")
    scene.take()
    scene.release("x")
    assert "a: shut down: it was retired" in scene.take()


def test_a_value_that_a_client_is_sending_is_waited_for(scene: Scene) -> None:
    scene.workers("a")
    scene.scatter("s")
    scene.join("b")
    scene.take()
    retire(scene, "a")
    assert scene.take() == []
    scene.holds("a", "s")
    assert scene.take() == ["c: s in memory at a", "b: copy s from a"]
    scene.holds("b", "s")
    assert scene.take()[0] == "a: shut down: it was retired"
    assert scene.state("s") == "memory"


def test_a_worker_that_dies_as_it_retires_is_told_of(scene: Scene) -> None:
    held_by_a(scene)
    retire(scene, "a")
    scene.take()
    scene.lose("a")
    said = scene.take()
    assert "c: answer {'a': 'it was lost before'}" in said
    assert "b: run x #2" in said


def test_one_that_is_not_to_be_removed_stays_and_gets_nothing(scene: Scene) -> None:
    held_by_a(scene)
    retire(scene, "a", removes=False)
    scene.holds("b", "x")
    assert scene.take() == [
        "a: it is given nothing more",
        "b: copy x from a",
        "c: answer {'a': ''}",
        "a: free x",
    ]
    scene.submit(y=[], z=[], u=[], v=[])
    assert all(line.startswith("b:") for line in scene.take())


def test_one_that_nobody_relieves_is_told_that_it_works_again(scene: Scene) -> None:
    held_by_a(scene)
    retire(scene, "a", removes=False, patience=2.0)
    scene.take()
    scene.advance(2.1)
    [again, answer] = scene.take()
    assert again == "a: it is given work again"
    assert answer.startswith("c: answer {'a': 'what only it holds was not taken in time'")


def test_nobody_waits_for_a_client_that_has_gone(scene: Scene) -> None:
    held_by_a(scene)
    scene.want("x", client="f")
    retire(scene, "a")
    scene.lose_client("c")
    scene.take()
    scene.holds("b", "x")
    assert scene.take() == ["a: shut down: it was retired"]


def test_idle_workers_go_if_none_is_named(scene: Scene) -> None:
    scene.workers("a", "b", "d")
    scene.submit(x=[], options=TaskOptions(workers=["b"]))
    scene.take()
    scene.call(RetireWorkers, closing=Closing(n=1))
    assert scene.take()[-1] == "c: answer {'a': ''}"
    scene.call(RetireWorkers, closing=Closing(minimum=2))
    assert scene.take() == ["c: answer {}"]
    scene.call(RetireWorkers, closing=Closing(target=1))
    assert scene.take()[-1] == "c: answer {'d': ''}"


def test_runs_that_have_not_ended_are_no_lack_of_progress(scene: Scene) -> None:
    """Nothing is left to be taken."""
    scene.workers("a", "b")
    scene.submit(x=[], options=TaskOptions(workers=["a"], allow_other_workers=True))
    scene.take()
    retire(scene, "a", patience=0.5)
    scene.advance(0.9)
    assert scene.take() == ["a: recall x #1"]
    scene.advance(0.2)
    assert scene.take()[:2] == ["a: shut down: it was retired", "c: answer {'a': ''}"]


def test_a_result_that_appears_late_gets_all_the_time_to_be_taken(scene: Scene) -> None:
    scene.workers("a", "b")
    scene.submit(x=[], options=TaskOptions(workers=["a"]))
    retire(scene, "a", patience=0.9)
    scene.advance(0.8)
    scene.finish("x")
    scene.take()
    scene.advance(0.8)
    assert scene.take() == []
    scene.holds("b", "x")
    assert scene.take()[0] == "a: shut down: it was retired"


def test_whoever_is_asked_in_the_place_of_another_gets_as_much_time(scene: Scene) -> None:
    held_by_a(scene)
    scene.join("d")
    retire(scene, "a", patience=10.0)
    for _ in range(2):
        scene.advance(6.0)
        scene.heartbeat("a")
    assert scene.take() == ["b: copy x from a", "d: copy x from a"]
    scene.advance(3.0)
    scene.holds("d", "x")
    assert scene.take()[0] == "a: shut down: it was retired"


def test_a_worker_that_has_said_goodbye_does_not_go_on_working(scene: Scene) -> None:
    held_by_a(scene)
    retire(scene, "a", patience=4.0)
    scene.leave("a")
    scene.take()
    scene.advance(5.0)
    assert scene.take()[-1] == "c: answer {'a': 'what only it holds was not taken in time'}"
    assert scene.worker("a").is_leaving
    scene.submit(y=[], z=[], u=[], v=[])
    assert all(line.startswith("b:") for line in scene.take())


def test_who_could_not_take_a_result_is_asked_again_the_next_time(scene: Scene) -> None:
    """There is a goal for another result, so what is known of copies is kept."""
    scene.workers("a")
    scene.submit(x=[], g=[])
    scene.finish("x")
    scene.finish("g")
    scene.join("b")
    scene.call(ReplicateTasks, keys=[Key("g")])
    scene.holds("b", "g")
    scene.take()
    retire(scene, "a")
    scene.gone("b", "x")
    why = "no other worker can take what only it holds"
    assert scene.take() == ["b: copy x from a", f"c: answer {{'a': {why!r}}}"]
    retire(scene, "a")
    scene.holds("b", "x")
    assert scene.take()[:2] == ["b: copy x from a", "a: shut down: it was retired"]


def test_of_those_that_may_go_others_go_in_the_place_of_those_that_are_kept(scene: Scene) -> None:
    scene.workers("a", "b")
    scene.call(RetireWorkers, closing=Closing(n=1, kept=["tcp://a:1"]))
    assert scene.take()[-1] == "c: answer {'b': ''}"


def test_a_worker_whose_time_is_over_goes_once_others_have_what_only_it_holds(scene: Scene) -> None:
    held_by_a(scene)
    scene.from_worker("a", TimeIsOver("lifetime", 30.0))
    assert scene.take() == ["b: copy x from a"]
    scene.holds("b", "x")
    assert scene.take() == ["a: shut down: lifetime"]
    assert scene.state("x") == "memory"


def test_a_worker_whose_time_is_over_goes_even_if_nobody_can_take_what_it_holds(
    scene: Scene,
) -> None:
    """x has to be computed again, by whoever comes."""
    scene.workers("a")
    scene.submit(x=[])
    scene.finish("x")
    scene.take()
    scene.from_worker("a", TimeIsOver("lifetime", 30.0))
    assert scene.take() == ["c: x lost", "a: shut down: lifetime"]
    scene.join("b")
    assert scene.take() == ["b: run x #2"]


def test_a_worker_whose_time_is_over_goes_though_others_make_no_progress(scene: Scene) -> None:
    held_by_a(scene)
    scene.from_worker("a", TimeIsOver("lifetime", 8.0))
    for _ in range(7):
        scene.heartbeat("a")
        scene.heartbeat("b")
        scene.advance(1.0)
    assert scene.take() == ["b: copy x from a"]
    scene.advance(1.0)
    assert "a: shut down: lifetime" in scene.take()
    assert scene.state("x") == "processing"


def test_a_worker_that_is_retired_by_a_client_may_say_that_its_time_is_over(scene: Scene) -> None:
    held_by_a(scene)
    retire(scene, "a")
    scene.from_worker("a", TimeIsOver("lifetime", 30.0))
    assert scene.take() == ["b: copy x from a"]
    scene.holds("b", "x")
    assert scene.take() == ["a: shut down: it was retired", "c: answer {'a': ''}"]


def test_what_a_run_reads_stays_with_a_worker_that_is_only_relieved(scene: Scene) -> None:
    """It has begun, and is not waited for; the worker stays connected."""
    scene.join("a")
    scene.submit(x=[])
    scene.finish("x", nbytes=1000)
    scene.join("b")
    scene.holds("b", "x", nbytes=1000)
    scene.submit(options=TaskOptions(workers=[scene.worker("b").address]), y=["x"])
    scene.call(RetireWorkers, workers=["b"], removes=False)
    scene.take()
    scene.advance(1.1)
    assert not scene.machine.state.copies.retiring
    assert "b: free x" not in scene.take()
    assert [worker.name for worker in scene.task("x").who_has or ()] == ["a", "b"]
    scene.finish("y")
    assert scene.state("y") == "memory"


def test_who_is_there_and_fetches_nothing_is_waited_for_no_longer_than_another_can_take_it(
    scene: Scene,
) -> None:
    held_by_a(scene)
    retire(scene, "a")
    scene.join("d")
    assert scene.take() == ["b: copy x from a"]
    for _ in range(21):
        scene.advance(1.0)
        scene.from_worker("b", WorkerHeartbeat(memory_bytes=1))
    assert scene.take() == ["d: copy x from a"]
    scene.holds("b", "x")  # after all
    assert scene.take()[0] == "a: shut down: it was retired"


def test_who_gets_one_copy_after_the_other_is_waited_for(scene: Scene) -> None:
    keys = [f"x{number}" for number in range(6)]
    scene.join("a")
    scene.submit(**{key: [] for key in keys})
    for key in keys:
        scene.finish(key)
    scene.join("b")
    retire(scene, "a")
    scene.join("d")
    scene.take()
    for key in keys[:-1]:
        for _ in range(15):
            scene.advance(1.0)
            scene.from_worker("b", WorkerHeartbeat(memory_bytes=1))
        scene.holds("b", key)
    assert scene.take() == []
    scene.holds("b", keys[-1])
    assert scene.take()[0] == "a: shut down: it was retired"
    assert not scene.machine.state.copies.arrived_at


def test_very_many_results_are_looked_at_in_several_steps_and_none_is_lost(scene: Scene) -> None:
    """Who has them does not go before the last of them was seen to."""
    keys = [f"x{n}" for n in range(LOOKS_MAX + 100)]
    scene.workers("a")
    scene.submit(**{key: [] for key in keys})
    for key in keys:
        scene.finish(key)
    scene.join("b")
    scene.take()
    retire(scene, "a")
    copies = scene.machine.state.copies
    assert len(copies.on_way) == LOOKS_MAX
    scene.holds("b", *keys[:LOOKS_MAX])
    assert not copies.on_way
    assert scene.worker("a").address in scene.machine.state.workers
    scene.advance(0.0)
    assert list(copies.on_way) == [scene.task(key) for key in keys[LOOKS_MAX:]]
    scene.take()
    scene.holds("b", *keys[LOOKS_MAX:])
    assert scene.take() == ["a: shut down: it was retired", "c: answer {'a': ''}"]
    assert len(scene.worker("b").has_what) == len(keys)


def test_where_many_retire_at_once_a_step_looks_at_fewer_results(scene: Scene) -> None:
    """Each look asks what every one of them has left."""
    ngoing = 2 * WORKERS_PER_LOOK
    names = [f"w{n}" for n in range(ngoing)]
    for name in names:
        scene.workers(name)
        keys = [f"{name}x{n}" for n in range(10)]
        scene.submit(**{key: [] for key in keys}, options=TaskOptions(workers=[name]))
        for key in keys:
            scene.finish(key)
    scene.join("stays")
    scene.take()
    retire(scene, *names)
    copies = scene.machine.state.copies
    assert len(copies.on_way) == LOOKS_MAX // 3 + 1
    assert len(copies.on_way) + len(copies.unlooked) == 10 * ngoing
    scene.advance(0.0)
    assert not copies.unlooked
    scene.holds("stays", *(f"{name}x{n}" for name in names for n in range(10)))
    assert list(scene.machine.state.workers) == ["tcp://stays:1"]


def test_one_that_goes_on_working_after_all_gets_the_copies_that_were_asked_for(
    scene: Scene,
) -> None:
    """Two copies of x shall be, and while b retires there is nobody to take the second."""
    held_by_a(scene)
    scene.submit(y=[], options=TaskOptions(workers=["b"]))
    scene.finish("y")
    retire(scene, "b", patience=4.0)
    scene.call(ReplicateTasks, keys=[Key("x")], ncopies=2)
    assert "b: copy x from a" not in scene.take()
    scene.advance(5.0)
    assert not scene.worker("b").is_leaving
    assert "b: copy x from a" in scene.take()
