"""Actors: placed where fewest are, made once, kept where they are, and gone with their worker."""

from shoal.ids import ClientTaskId, Key, TaskId
from shoal.protocol.actors import BreakPromise, ExplainActor, PromiseValue
from shoal.protocol.holding import ReplicateTasks, RetryTasks
from shoal.protocol.membership import Closing, RetireWorkers
from shoal.protocol.messages import Failure, ReplicasAdded, TaskOptions
from shoal.protocol.slots import RunRescheduled
from shoal.protocol.transfers import PlaceScatter
from tests.scenes.scheduler.scene import Scene

ACTOR = TaskOptions(actor=True)


def two_workers_with_an_actor(scene: Scene) -> None:
    """x is an actor on a; b is there too."""
    scene.workers("a", "b")
    scene.submit(x=[], options=ACTOR)
    scene.finish("x", value=b"proxy")
    assert scene.take() == ["a: run x #1", "c: x in memory inline"]


def lost(why: str = "it died", on: str = "a", key: str = "x") -> str:
    """How a client is told, of which only the first line is shown."""
    return (
        f"c: {key} erred: ActorLost: Worker holding Actor was lost. Unable to contact Actor's "
        f"worker tcp://{on}:1: {why}."
    )


def told(*names: str, why: str = "it died") -> list[str]:
    """How these learn that nobody need wait for actors on a."""
    return [f"{name}: actors on a are lost: {why}" for name in names]


def test_each_actor_goes_to_the_worker_with_the_fewest(scene: Scene) -> None:
    scene.workers("a", "b", "d")
    scene.submit(p=[], q=[], r=[], s=[], options=ACTOR)
    scene.take()
    assert [len(scene.worker(name).actors) for name in "abd"] == [2, 1, 1]
    scene.submit(t=[], options=ACTOR)
    assert [len(scene.worker(name).actors) for name in "abd"] == [2, 2, 1]


def test_among_workers_with_as_many_an_actor_goes_to_its_input(scene: Scene) -> None:
    scene.workers("a", "b")
    scene.submit(i=[], options=TaskOptions(workers=["b"]))
    scene.finish("i", nbytes=1_000_000)
    scene.take()
    scene.submit(x=["i"], options=ACTOR)
    assert scene.take() == ["b: run x #1"]
    scene.submit(y=["i"], options=ACTOR)
    assert scene.take() == ["a: run y #1 (i from b)"]


def test_an_actor_that_waits_for_room_is_not_stolen(scene: Scene) -> None:
    """a is busy and is to make an actor, as b has one already; b idles, and must not take it."""
    scene.workers("a", "b")
    scene.submit(x=[], options=TaskOptions(actor=True, workers=["b"]))
    scene.finish("x", value=b"proxy")
    scene.submit(busy0=[], busy1=[], busy2=[], options=TaskOptions(workers=["a"]))
    scene.submit(y=[], options=ACTOR)
    scene.take()
    assert scene.task("y").worker is scene.worker("a")
    scene.advance(3.0)
    assert not [line for line in scene.take() if " y " in line]


def test_an_actor_that_is_lost_fails_and_so_does_what_waits_for_it(scene: Scene) -> None:
    two_workers_with_an_actor(scene)
    scene.submit(i=[], options=TaskOptions(workers=["b"]))
    scene.submit(y=["x", "i"])
    assert scene.take() == ["b: run i #1"]
    scene.lose("a", "it died")
    assert scene.take() == [*told("b", "c"), lost(), lost(key="y") + " (of x)"]
    scene.finish("i")
    assert scene.take() == ["c: i in memory at b"]  # and x is made nowhere


def test_a_run_that_uses_a_lost_actor_fails_with_it(scene: Scene) -> None:
    two_workers_with_an_actor(scene)
    scene.submit(y=["x"], options=TaskOptions(workers=["b"]))
    assert scene.take() == ["b: run y #1 (x inline)"]
    scene.lose("a", "it died")
    said = [*told("b"), "b: recall y #1", *told("c"), lost(), lost(key="y") + " (of x)"]
    assert scene.take() == said
    scene.finish("y")
    assert scene.take() == ["b: free y"]


def test_an_actor_whose_making_was_cut_short_is_made_elsewhere(scene: Scene) -> None:
    """Nobody has called it yet, so that nothing is lost but time."""
    scene.workers("a", "b")
    scene.submit(x=[], options=ACTOR)
    scene.take()
    scene.lose("a", "it died")
    assert [line for line in scene.take() if line not in told("b", "c")] == ["b: run x #2"]
    assert not scene.machine.state.workers["tcp://b:1"].backlog
    scene.finish("x", value=b"proxy")
    assert scene.take() == ["c: x in memory inline"]


def test_a_released_actor_is_freed_and_never_made_again_for_lineage(scene: Scene) -> None:
    """y was made with x, which nobody keeps; as y is lost, another x would be another one."""
    two_workers_with_an_actor(scene)
    scene.submit(y=["x"], options=TaskOptions(workers=["b"]))
    scene.finish("y")
    scene.take()
    scene.release("x")
    assert scene.take() == ["a: free x"]
    assert not scene.worker("a").actors
    scene.lose("b")
    said = scene.take()
    assert said[0] == "c: y lost"
    assert said[1].startswith("c: y erred: ActorReleased: The actor 'x' was released")
    assert len(said) == 2


def test_whoever_submits_a_released_actor_gets_another(scene: Scene) -> None:
    two_workers_with_an_actor(scene)
    scene.submit(y=["x"])
    scene.finish("y", value=b"1")
    scene.release("x")
    scene.take()
    scene.submit(x=[], options=ACTOR)
    assert scene.take() == ["a: run x #2"]


def test_a_client_may_have_a_lost_actor_tried_again(scene: Scene) -> None:
    two_workers_with_an_actor(scene)
    scene.lose("a", "it died")
    scene.take()
    scene.from_client("c", RetryTasks([scene.actor("c").number("x")]))
    assert scene.take() == ["c: x is tried again", "b: run x #2"]


def test_an_actor_is_not_copied(scene: Scene) -> None:
    two_workers_with_an_actor(scene)
    scene.call(ReplicateTasks, keys=[Key("x")], ncopies=2)
    assert scene.take() == ["c: answer False"]
    number = TaskId(scene.task("x").id)
    scene.from_worker("b", ReplicasAdded([number], [10]))
    assert scene.take() == ["b: free x"]
    assert scene.task("x").who_has == [scene.worker("a")]


def test_a_worker_that_comes_back_with_an_actor_of_before_is_to_drop_it(scene: Scene) -> None:
    two_workers_with_an_actor(scene)
    number = scene.task("x").id
    scene.lose("a", "its connection broke")
    why = "its connection broke"
    assert scene.take() == [*told("b", "c", why=why), lost(why)]
    scene.join("a", holds={"x": number})
    assert scene.take() == ["a: free x"]
    assert scene.state("x") == "erred"


def test_the_actor_of_before_does_not_stand_in_for_the_one_that_is_being_made(scene: Scene) -> None:
    two_workers_with_an_actor(scene)
    number = scene.task("x").id
    scene.lose("a", "its connection broke")
    scene.from_client("c", RetryTasks([scene.actor("c").number("x")]))
    scene.take()
    scene.join("a", holds={"x": number})
    assert scene.take() == ["a: free x"]
    assert scene.task("x").worker is scene.worker("b")


def test_a_worker_with_an_actor_is_not_retired_and_says_why(scene: Scene) -> None:
    two_workers_with_an_actor(scene)
    scene.call(RetireWorkers, workers=["a"], removes=True, patience_seconds=30.0)
    why = "it has actors, which live on one worker and can't be moved"
    assert scene.take() == [f"c: answer {{'a': \"{why}\"}}"]
    scene.submit(y=[], options=TaskOptions(workers=["a"]))
    assert scene.take() == ["a: run y #1"]  # it goes on as before


def test_a_cluster_that_shrinks_keeps_workers_with_actors(scene: Scene) -> None:
    two_workers_with_an_actor(scene)
    scene.call(RetireWorkers, workers=None, closing=Closing(n=1), removes=True)
    assert scene.take() == ["b: shut down: it was retired", "c: answer {'b': ''}"]


def test_who_asks_what_became_of_an_actor_is_told_as_soon_as_it_is_known(scene: Scene) -> None:
    two_workers_with_an_actor(scene)
    scene.call(ExplainActor, key=Key("x"))
    assert scene.take() == []
    scene.lose("a", "it died")
    refused = lost().replace("x erred:", "refused")
    assert sorted(scene.take()) == sorted([*told("b", "c"), lost(), refused])
    scene.call(ExplainActor, key=Key("x"))
    assert scene.take() == [refused]
    scene.call(ExplainActor, key=Key("none"))
    assert scene.take()[0].startswith("c: refused NoSuchActor: There is no actor 'none'")


def test_everybody_learns_that_a_worker_with_actors_is_given_up_and_of_no_other(
    scene: Scene,
) -> None:
    """A process that was stopped keeps its connections, and anybody may wait for its answer."""
    scene.workers("a", "b", "e")
    scene.submit(x=[], options=TaskOptions(actor=True, workers=["a"]))
    scene.finish("x", value=b"proxy")
    scene.take()
    scene.lose("e", "it died")
    assert scene.take() == []
    scene.lose("a", "it was silent")
    assert scene.take() == [*told("b", "c", why="it was silent"), lost("it was silent")]


def test_each_question_after_an_actor_waits_for_as_long(scene: Scene) -> None:
    two_workers_with_an_actor(scene)
    scene.submit(y=[], options=ACTOR)
    scene.finish("y", value=b"proxy")
    scene.take()
    for key in ("x", "y", "x"):
        scene.call(ExplainActor, key=Key(key))
        scene.advance(2.0)
    assert scene.take() == ["c: answer None"]  # of the first, after 5 s
    scene.advance(2.0)
    assert scene.take() == ["c: answer None"]
    scene.advance(2.0)
    assert scene.take() == ["c: answer None"]
    assert not scene.machine.state.explanations


def test_an_actor_whose_making_asks_for_another_worker_is_made_there(scene: Scene) -> None:
    """Both have as many, and the first would be taken again and again."""
    scene.workers("a", "b")
    scene.submit(x=[], options=ACTOR)
    assert scene.take() == ["a: run x #1"]
    task = scene.task("x")
    scene.from_worker("a", RunRescheduled(task.id, task.run))
    assert scene.take() == ["b: run x #2"]
    scene.from_worker("b", RunRescheduled(task.id, task.run))
    assert scene.take() == ["a: run x #3"]  # all have had it, so that only the latest is avoided


def test_an_actor_that_only_one_worker_may_have_is_made_there_whatever_it_asks_for(
    scene: Scene,
) -> None:
    scene.workers("a", "b")
    scene.submit(x=[], options=TaskOptions(actor=True, workers=["b"]))
    task = scene.task("x")
    scene.from_worker("b", RunRescheduled(task.id, task.run))
    assert scene.take() == ["b: run x #1", "b: run x #2"]


def test_who_asks_after_an_actor_that_is_there_is_told_so_in_the_end(scene: Scene) -> None:
    two_workers_with_an_actor(scene)
    scene.call(ExplainActor, key=Key("x"))
    scene.advance(4.9)
    assert scene.take() == []
    scene.advance(0.2)
    assert scene.take() == ["c: answer None"]
    scene.call(ExplainActor, client="d", key=Key("x"))
    scene.lose_client("d")
    assert not scene.machine.state.explanations


def promise(scene: Scene, key: str) -> ClientTaskId:
    """The value of a call that has not ended."""
    number = scene.actor("c").new_numbers([key])
    scene.from_client("c", PromiseValue(number, Key(key)))
    return number


def test_tasks_wait_for_a_promised_value(scene: Scene) -> None:
    scene.workers("a")
    number = promise(scene, "v")
    scene.submit(y=["v"])
    assert scene.take() == []
    scene.call(
        PlaceScatter, first=number, keys=[Key("v")], nbytes=[8], again=True
    )  # now there is a value
    assert scene.take() == ["c: answer {'v': ['a']}"]
    scene.holds("a", "v")
    assert scene.take() == ["c: v in memory at a", "a: run y #1"]


def test_what_waits_for_a_broken_promise_fails_with_its_reason(scene: Scene) -> None:
    scene.workers("a")
    number = promise(scene, "v")
    scene.submit(y=["v"])
    failure = Failure(b"", "ValueError: the call raised")
    scene.from_client("c", BreakPromise(number, failure))
    assert scene.take() == [
        "c: v erred: ValueError: the call raised",
        "c: y erred: ValueError: the call raised",
    ]


def test_a_broken_promise_that_was_let_go_of_changes_nothing(scene: Scene) -> None:
    scene.workers("a")
    number = promise(scene, "v")
    scene.release("v")
    scene.from_client("c", BreakPromise(number, Failure(b"", "ValueError: late")))
    assert scene.take() == []
    assert not scene.machine.state.tasks
