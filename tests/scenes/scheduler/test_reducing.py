"""Copies that nobody needs go by and by; those that somebody needs or has asked for stay."""

from shoal.ids import Key
from shoal.protocol.holding import ReplicateTasks
from shoal.protocol.membership import RetireWorkers
from shoal.protocol.messages import TaskOptions, WorkerHeartbeat
from shoal.scheduler.machine import reducing
from shoal.scheduler.model.entities import Task, Worker
from shoal.scheduler.model.reduction import Suggested
from shoal.scheduler.policies.reduction import DROPS_MAX
from tests.scenes.scheduler.scene import Scene


def copied(scene: Scene, *names: str, key: str = "x", nbytes: int = 10) -> None:
    """A result is on all of these workers, on the first of them for longest."""
    for name in names:
        if name not in scene.worker_by_name:
            scene.join(name)
    scene.submit(**{key: []})
    first = scene.run(key)[0].name
    scene.finish(key, nbytes=nbytes)
    for name in names:
        if name != first:
            scene.holds(name, key, nbytes=nbytes)
    scene.take()


def holders(scene: Scene, key: str = "x") -> list[str]:
    return sorted(worker.name for worker in scene.task(key).who_has or ())


def enact(scene: Scene, *, copies: str = "", drops: str = "", key: str = "x") -> None:
    """Code beside the scheduler suggests; each letter is a worker."""
    task = scene.task(key)
    suggested = Suggested(
        {task: {scene.worker(name): None for name in copies}},
        {task: {scene.worker(name): None for name in drops}},
    )
    scene.machine.enact(suggested, scene.now)
    scene._hear()


def test_copies_that_nobody_needs_go_after_a_while(scene: Scene) -> None:
    copied(scene, "a", "b", "d")
    scene.advance(1.9)
    assert scene.take() == []
    scene.advance(0.2)
    assert sorted(scene.take()) == ["a: free x", "b: free x"]
    assert holders(scene) == ["d"]


def test_nobody_is_woken_where_no_result_has_several_copies(scene: Scene) -> None:
    copied(scene, "a")
    assert scene.machine.state.reduction.due_at is None
    scene.holds("a", "x")  # said twice
    assert scene.machine.state.reduction.due_at is None
    copied(scene, "a", "b", key="y")
    scene.release("y")
    scene.advance(2.1)
    assert scene.machine.state.reduction.due_at is None


def test_the_fullest_drop_theirs(scene: Scene) -> None:
    scene.workers("a", "b")
    copied(scene, "a", "b")
    scene.submit(y=[])
    scene.finish("y", on="a" if scene.run("y")[0].name == "a" else "b", nbytes=1000)
    full = scene.run("y")[0].name
    scene.take()
    scene.advance(2.1)
    assert scene.take() == [f"{full}: free x"]


def test_memory_that_no_result_takes_counts_once_it_has_been_there_for_long(scene: Scene) -> None:
    copied(scene, "a", "b", "d")
    scene.from_worker("b", WorkerHeartbeat(memory_bytes=10**9, unmanaged_old_bytes=10**8))
    scene.from_worker("a", WorkerHeartbeat(memory_bytes=10**10, unmanaged_old_bytes=10**7))
    scene.advance(2.1)
    assert sorted(scene.take()) == ["a: free x", "b: free x"]


def test_a_setting_says_what_of_memory_is_compared() -> None:
    scene = Scene(replica_measure="process")
    copied(scene, "a", "b")
    scene.from_worker("a", WorkerHeartbeat(memory_bytes=10**9, unmanaged_old_bytes=10**7))
    scene.from_worker("b", WorkerHeartbeat(memory_bytes=10**8, unmanaged_old_bytes=10**8))
    scene.advance(2.1)
    assert scene.take() == ["a: free x"]


def test_copies_stay_where_dependents_run_and_go_once_they_have_ended(scene: Scene) -> None:
    scene.workers("a", "b")
    copied(scene, "a", "b", nbytes=10**6)
    scene.submit(y=["x"], z=["x"])
    assert sorted(line[:3] for line in scene.take()) == ["a: ", "b: "]
    scene.advance(10.0)
    assert scene.take() == []
    scene.finish("y")
    scene.take()
    ran, runs = scene.run("y")[0].name, scene.run("z")[0].name
    scene.advance(2.1)
    assert scene.take() == [f"{ran}: free x"]
    assert holders(scene) == [runs]


def test_one_copy_is_kept_for_each_dependent_that_may_still_go_anywhere(scene: Scene) -> None:
    copied(scene, "a", "b", "d")
    scene.scatter("never")
    scene.take()
    scene.submit(y=["x", "never"], z=["x", "never"])
    scene.advance(2.1)
    assert len(holders(scene)) == 2
    scene.release("y")
    scene.advance(2.1)
    assert len(holders(scene)) == 1


def test_no_copy_goes_while_somebody_may_be_fetching_it(scene: Scene) -> None:
    """Who was told two holders may be asking the one that is to drop its copy."""
    scene.workers("a", "b", "d")
    copied(scene, "a", "b", nbytes=10)
    scene.submit(options=TaskOptions(workers=[scene.worker("d").address]), y=["x"])
    assert [line[:8] for line in scene.take()] == ["d: run y"]
    scene.advance(4.0)
    assert scene.take() == []
    scene.holds("d", "x")
    scene.advance(2.1)
    assert len(holders(scene)) == 1
    assert holders(scene) == ["d"]


def test_what_a_client_replicated_stays_replicated(scene: Scene) -> None:
    copied(scene, "a", "b", "d")
    scene.call(ReplicateTasks, keys=[Key("x")], ncopies=2)
    scene.advance(20.0)
    assert len(holders(scene)) == 2
    scene.join("e")
    scene.holds("e", "x")  # a run has fetched it
    scene.advance(2.1)
    assert len(holders(scene)) == 2


def test_what_was_scattered_to_all_stays_with_all_and_nobody_looks_again(scene: Scene) -> None:
    scene.workers("a", "b", "d")
    scene.scatter("s", ncopies=0)
    for name in ("a", "b", "d"):
        scene.holds(name, "s")
    scene.advance(20.0)
    assert holders(scene, "s") == ["a", "b", "d"]
    assert not scene.machine.state.reduction.doubled
    assert scene.machine.state.reduction.due_at is None


def test_copies_beside_the_workers_that_a_goal_names_may_go(scene: Scene) -> None:
    copied(scene, "a", "b", "d", "e")
    scene.call(ReplicateTasks, keys=[Key("x")], ncopies=0, workers=["a", "b"])
    scene.advance(20.0)
    assert holders(scene) == ["a", "b"]


def test_copies_with_a_worker_that_leaves_are_no_copies(scene: Scene) -> None:
    copied(scene, "a", "b")
    scene.leave("b")
    scene.advance(20.0)
    assert holders(scene) == ["a", "b"]


def test_a_worker_that_may_not_go_after_all_is_looked_at_again(scene: Scene) -> None:
    """It can't, as it alone has what nobody can take."""
    copied(scene, "a", "b")
    only = "a" if scene.worker("a").has_what else "b"
    scene.call(RetireWorkers, workers=["a", "b"], removes=True)
    assert only in holders(scene)
    scene.advance(30.0)
    assert len([worker for worker in scene.task("x").who_has or () if not worker.is_leaving]) == 1


def test_rounds_can_be_ended_and_begun() -> None:
    scene = Scene(reduces_replicas=False)
    copied(scene, "a", "b")
    scene.advance(20.0)
    assert holders(scene) == ["a", "b"]
    scene.machine.reduce_replicas(5.0, scene.now)
    scene.advance(4.9)
    assert len(holders(scene)) == 2
    scene.advance(0.2)
    assert len(holders(scene)) == 1
    scene.machine.reduce_replicas(None, scene.now)
    for name in "ab":
        scene.holds(name, "x")
    scene.advance(20.0)
    assert holders(scene) == ["a", "b"]
    scene.machine.reduce_replicas_now(scene.now)
    assert len(holders(scene)) == 1
    assert scene.machine.state.reduction.due_at is None


def test_much_is_looked_at_in_several_steps(scene: Scene) -> None:
    keys = [f"x{number}" for number in range(reducing.LOOKS_MAX)]
    scene.join("a", nthreads=len(keys))
    scene.submit(**{key: [] for key in keys})
    scene.advance(0.0)  # they are too many to be sent in one step
    scene.finish(*keys)
    scene.join("b")
    scene.holds("b", *keys)
    scene.take()
    first = scene.machine.nsteps
    scene.machine.reduce_replicas_now(scene.now)
    scene._hear()
    dropped = sum(line.count("x") for line in scene.take())
    assert 0 < dropped < len(keys)
    scene.advance(0.0)
    assert scene.machine.nsteps > first + 1
    assert all(len(scene.task(key).who_has or ()) == 1 for key in keys)


def test_suggestions_are_done_as_far_as_they_make_sense(scene: Scene) -> None:
    copied(scene, "a", "b")
    scene.join("d")
    enact(scene, copies="abd")
    assert scene.take() in (["d: copy x from a,b"], ["d: copy x from b,a"])
    enact(scene, drops="abd")
    assert len(scene.take()) == 1
    assert len(holders(scene)) == 1
    scene.holds("d", "x")
    scene.release("x")
    assert not scene.worker("d").has_what


def test_suggestions_about_what_has_gone_change_nothing(scene: Scene) -> None:
    copied(scene, "a", "b")
    gone: tuple[Task, Worker] = scene.task("x"), scene.worker("b")
    scene.release("x")
    scene.lose("b")
    scene.join("d")
    scene.take()
    scene.machine.enact(
        Suggested({gone[0]: {gone[1]: None}}, {gone[0]: {gone[1]: None}}), scene.now
    )
    scene._hear()
    assert scene.take() == []


def test_a_goal_is_lowered_by_whoever_suggests_to_drop_what_it_asks_for(scene: Scene) -> None:
    copied(scene, "a", "b", "d")
    scene.call(ReplicateTasks, keys=[Key("x")], ncopies=0)
    scene.take()
    enact(scene, drops="a")
    assert scene.take() == ["a: free x"]
    scene.join("e")
    scene.advance(10.0)
    assert scene.take() == []
    scene.lose("b")
    assert [line[3:9] for line in scene.take()] == ["copy x"]  # two there shall be, from now on


def test_a_copy_that_no_goal_counts_leaves_the_goal_as_it_is(scene: Scene) -> None:
    copied(scene, "a", "b", "d")
    scene.call(ReplicateTasks, keys=[Key("x")], ncopies=0, workers=["a", "b"])
    scene.take()
    enact(scene, drops="d")
    assert scene.take() == ["d: free x"]
    assert scene.machine.state.copies.goals[scene.task("x")].ncopies == 0


def test_a_dependent_keeps_the_copy_beside_it_whatever_is_suggested(scene: Scene) -> None:
    scene.workers("a", "b")
    copied(scene, "a", "b", nbytes=10**6)
    scene.submit(y=["x"])
    scene.take()
    runs = scene.run("y")[0].name
    enact(scene, drops=runs)
    assert scene.take() == []


def test_more_copies_than_are_dropped_at_once_go_in_the_same_round(scene: Scene) -> None:
    names = [f"w{number}" for number in range(DROPS_MAX + 20)]
    copied(scene, *names)
    scene.advance(2.1)
    assert len(holders(scene)) == 1
    assert not scene.machine.state.reduction.doubled
