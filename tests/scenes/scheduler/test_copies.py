"""How many copies of a result there are, and where."""

from shoal.ids import Key
from shoal.protocol.holding import RebalanceTasks, ReplicateTasks
from shoal.protocol.membership import RetireWorkers
from shoal.protocol.memory import PauseChanged
from shoal.protocol.messages import WorkerHeartbeat
from shoal.scheduler.machine.copying import LOOKS_MAX
from tests.scenes.scheduler.scene import Scene


def replicate(scene: Scene, *keys: str, **fields: object) -> None:
    scene.call(ReplicateTasks, keys=[Key(key) for key in keys], **fields)


def there(scene: Scene, *names: str) -> None:
    """x is on the first of these workers."""
    scene.workers(names[0])
    scene.submit(x=[])
    scene.finish("x")
    scene.workers(*names[1:])
    scene.take()


def test_copies_are_made_from_copies_so_many_at_once(scene: Scene) -> None:
    there(scene, "a", "b", "d", "e", "g")
    replicate(scene, "x", branching=1)
    assert scene.take() == ["b: copy x from a"]
    scene.holds("b", "x")
    assert scene.take() == ["d: copy x from b,a", "e: copy x from a,b"]
    scene.holds("d", "x")
    assert scene.take() == ["g: copy x from a,b,d"]
    scene.holds("e", "x")
    scene.holds("g", "x")
    assert scene.take() == ["c: answer True"]


def test_surplus_copies_are_dropped_but_never_the_last(scene: Scene) -> None:
    there(scene, "a", "b", "d")
    scene.holds("b", "x")
    scene.holds("d", "x")
    replicate(scene, "x", ncopies=1)
    said = scene.take()
    assert said[0] == "c: answer True"
    assert sorted(line[3:] for line in said[1:]) == ["free x", "free x"]
    assert len(scene.task("x").who_has or ()) == 1


def test_the_number_of_copies_is_kept_up_as_workers_come_and_go(scene: Scene) -> None:
    there(scene, "a", "b")
    replicate(scene, "x", ncopies=2)
    scene.holds("b", "x")
    assert scene.take() == ["b: copy x from a", "c: answer True"]
    scene.lose("b")
    scene.join("d")
    assert scene.take() == ["d: copy x from a"]
    scene.holds("d", "x")
    scene.join("e")
    assert scene.take() == []  # two are enough
    scene.lose("a")
    assert scene.take() == ["e: copy x from d"]


def test_a_worker_that_joins_gets_what_everybody_shall_have(scene: Scene) -> None:
    there(scene, "a")
    replicate(scene, "x")
    assert scene.take() == ["c: answer True"]
    scene.join("b")
    assert scene.take() == ["b: copy x from a"]


def test_a_scattered_value_that_goes_everywhere_goes_to_those_who_come_later(scene: Scene) -> None:
    scene.workers("a", "b")
    scene.scatter("s", ncopies=0)
    scene.holds("a", "s")
    assert scene.take() == ["c: answer {'s': ['a', 'b']}", "c: s in memory at a"]
    scene.join("d")
    assert scene.take() == ["d: copy s from a"]
    scene.advance(11.0)
    assert scene.take() == ["b: copy s from a"]  # its client did not bring it there


def test_a_silent_worker_holds_nobody_up(scene: Scene) -> None:
    there(scene, "a", "b", "d")
    replicate(scene, "x")
    scene.holds("d", "x")
    assert scene.take() == ["b: copy x from a", "d: copy x from a"]
    scene.advance(11.0)
    assert scene.take() == ["c: answer True"]
    scene.holds("b", "x")  # it wakes up
    assert len(scene.task("x").who_has or ()) == 3


def test_what_is_let_go_of_is_copied_no_more(scene: Scene) -> None:
    there(scene, "a", "b")
    replicate(scene, "x")
    scene.release("x")
    assert scene.take() == ["b: copy x from a", "c: answer True", "a: free x"]
    scene.holds("b", "x")
    assert scene.take() == ["b: free x"]
    assert not scene.machine.state.copies


def test_a_result_that_is_not_there_is_told_of(scene: Scene) -> None:
    scene.workers("a")
    replicate(scene, "x")
    assert scene.take() == ["c: answer False"]


def test_results_move_from_full_workers_to_empty_ones(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(p=[], q=[], r=[], s=[])
    for key in "pqrs":
        scene.finish(key, nbytes=100)
    scene.join("b")
    scene.take()
    scene.call(RebalanceTasks)
    assert scene.take() == ["b: copy p from a, q from a"]
    scene.holds("b", "p", "q", nbytes=100)
    assert scene.take() == ["c: answer 2", "a: free p, q"]
    assert scene.worker("a").nbytes == scene.worker("b").nbytes == 200
    scene.call(RebalanceTasks)
    assert scene.take() == ["c: answer 0"]


def test_what_can_not_be_moved_stays(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(p=[], q=[])
    scene.finish("p", nbytes=100)
    scene.finish("q", nbytes=100)
    scene.join("b")
    scene.take()
    scene.call(RebalanceTasks)
    assert scene.take() == ["b: copy p from a"]
    scene.gone("b", "p")
    assert scene.take() == ["c: answer 1"]
    assert scene.task("p").who_has == [scene.worker("a")]


def test_of_two_goals_in_one_breath_the_last_counts(scene: Scene) -> None:
    """Nothing is dropped that would only have to be copied again."""
    there(scene, "a", "b")
    scene.holds("b", "x")
    replicate(scene, "x")
    scene.take()
    number = scene.actor("c").client
    calls = [ReplicateTasks(50 + n, [Key("x")], n) for n in (1, 2)]
    for call in calls:
        scene.names.calls[call.request] = ReplicateTasks
    scene.machine.receive_from_client(number, calls, scene.now)
    scene._hear()
    assert scene.take() == ["c: answer True", "c: answer True"]


def test_many_results_are_spread_over_the_workers_that_get_copies(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(p=[], q=[], r=[], s=[])
    for key in "pqrs":
        scene.finish(key, nbytes=100)
    scene.workers("b", "d")
    scene.take()
    replicate(scene, *"pqrs", ncopies=2)
    said = [line[:9] for line in scene.take()]
    assert said == ["b: copy p", "b: copy r", "d: copy q", "d: copy s"]


def test_who_could_not_get_a_copy_is_asked_again_once_somebody_else_has_one(scene: Scene) -> None:
    there(scene, "a", "b", "d")
    replicate(scene, "x")
    scene.gone("b", "x")
    assert scene.take() == ["b: copy x from a", "d: copy x from a"]
    scene.holds("d", "x")
    assert scene.take() == ["b: copy x from a,d"]
    scene.gone("b", "x")
    assert scene.take() == ["c: answer True"]


def test_a_later_broadcast_says_how_many_copies_there_shall_be(scene: Scene) -> None:
    scene.workers("a", "b", "d")
    scene.scatter("s", ncopies=2)
    scene.scatter("s", client="f", ncopies=0)
    assert scene.machine.state.copies.goals[scene.task("s")].ncopies == 0


def pause(scene: Scene, name: str) -> None:
    scene.from_worker(name, PauseChanged(True, "it has 9 of 10 bytes"))


def test_a_copy_goes_to_somebody_else_when_its_recipient_is_paused(scene: Scene) -> None:
    there(scene, "a", "b", "d")
    replicate(scene, "x", ncopies=2)
    assert scene.take() == ["b: copy x from a"]
    pause(scene, "b")
    assert scene.take() == ["d: copy x from a"]
    scene.holds("d", "x")
    assert scene.take() == ["c: answer True"]


def test_who_is_paused_gets_what_all_shall_have_once_it_goes_on(scene: Scene) -> None:
    there(scene, "a", "b", "d")
    pause(scene, "d")
    replicate(scene, "x")
    assert scene.take() == ["b: copy x from a"]
    scene.holds("b", "x")
    assert scene.take() == ["c: answer True"]
    scene.from_worker("d", PauseChanged(False, ""))
    assert scene.take() in (["d: copy x from a,b"], ["d: copy x from b,a"])


def test_a_worker_stays_where_all_others_are_paused_while_it_hands_over(scene: Scene) -> None:
    there(scene, "a", "b")
    scene.call(RetireWorkers, workers=["a"], removes=True)
    assert scene.take() == ["b: copy x from a"]
    pause(scene, "b")
    assert scene.take() == ["c: answer {'a': 'no other worker can take what only it holds'}"]
    assert not scene.worker("a").is_leaving


def test_results_move_away_from_memory_that_no_result_takes() -> None:
    """As `optimistic` has it: what has been there for long counts, what has come lately doesn't."""
    for measure, moves in (("optimistic", True), ("managed", False)):
        scene = Scene(rebalance_measure=measure)
        scene.workers("a", "b")
        scene.submit(p=[], q=[])
        scene.finish("p", nbytes=100)
        scene.finish("q", nbytes=100)
        full = scene.run("p")[0].name
        scene.from_worker(full, WorkerHeartbeat(memory_bytes=900, unmanaged_old_bytes=300))
        scene.take()
        scene.call(RebalanceTasks)
        assert any("copy" in line for line in scene.take()) is moves


def test_nothing_moves_to_a_paused_worker(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(p=[], q=[])
    for key in "pq":
        scene.finish(key, nbytes=100)
    scene.join("b")
    pause(scene, "b")
    scene.take()
    scene.call(RebalanceTasks)
    assert scene.take() == ["c: answer 0"]


def test_copies_of_very_many_results_are_begun_in_several_steps(scene: Scene) -> None:
    """The call is answered when the last of them is there; what is let go of meanwhile is not."""
    keys = [f"x{n}" for n in range(LOOKS_MAX + 100)]
    scene.workers("a")
    scene.submit(**{key: [] for key in keys})
    for key in keys:
        scene.finish(key)
    scene.join("b")
    scene.take()
    replicate(scene, *keys)
    copies = scene.machine.state.copies
    assert len(copies.on_way) == LOOKS_MAX
    scene.release(keys[-1])
    scene.holds("b", *keys[:LOOKS_MAX])
    assert not any(line.startswith("c: answer") for line in scene.take())
    scene.advance(0.0)
    assert list(copies.on_way) == [scene.task(key) for key in keys[LOOKS_MAX:-1]]
    scene.holds("b", *keys[LOOKS_MAX:-1])
    assert scene.take()[-1] == "c: answer True"


def test_what_was_begun_at_many_times_is_given_up_in_few_steps(scene: Scene) -> None:
    """Each of them looks at all that is on its way."""
    scene.workers("a")
    keys = [f"x{n}" for n in range(40)]
    scene.submit(**{key: [] for key in keys})
    for key in keys:
        scene.finish(key)
    scene.join("b")
    for key in keys:
        replicate(scene, key)
        scene.advance(0.01)
    copies = scene.machine.state.copies
    assert len(copies.on_way) == len(keys)
    before = scene.machine.nsteps
    scene.advance(12.0)
    assert not copies.on_way
    assert scene.machine.nsteps - before < len(keys) / 2
