"""A scheduler with a journal is killed, and the next one goes on with what nobody else knows."""

from typing import Any

import msgspec
import pytest

from shoal.ids import ClientTaskId, Epoch, Key
from shoal.protocol.datasets import GetDatasets, UnpublishDatasets
from shoal.protocol.detached import DetachedTasks, DetachTasks
from shoal.protocol.holding import RetryTasks
from shoal.protocol.journal import from_body
from shoal.protocol.messages import CancelTasks, TaskOptions
from shoal.protocol.placement import ExplainTasks
from shoal.scheduler.model.journaled import Journaled
from tests.scenes.scheduler.scene import Scene
from tests.scenes.scheduler.shuffling import all_cut
from tests.scenes.scheduler.test_datasets import publish
from tests.scenes.scheduler.test_recovering import returns


@pytest.fixture
def scene() -> Scene:
    """The first life of a scheduler that keeps a journal, on a disk that syncs at once."""
    return journaling()


def journaling(**settings: Any) -> Scene:
    scene = Scene(**settings)
    scene.keep_journal()
    scene.syncs_at_once = True
    return scene


def detach(scene: Scene, *keys: str, client: str = "c") -> None:
    actor = scene.actor(client)
    scene.from_client(client, DetachTasks([actor.number(key) for key in keys]))


def get(scene: Scene, name: str, client: str = "d") -> None:
    """A client that comes later asks for a value; what it is lent is called so."""
    actor = scene.actor(client)
    for n in range(1, 9):
        actor.keys[ClientTaskId(-n)] = f"loan {n}"
    scene.call(GetDatasets, client, names=[Key(name)])


def written(scene: Scene) -> Journaled:
    """What the disk has."""
    return Journaled(entry for body in scene.disk for entry in from_body(body))


# --- what outlives the scheduler ---


def test_work_that_was_fired_is_finished_by_the_next_scheduler(scene: Scene) -> None:
    """y needs x; client and scheduler are killed before there is any worker."""
    scene.submit(x=[], y=["x"], options=TaskOptions(retries=2))
    detach(scene, "y")
    later = scene.after_a_crash()
    assert later.machine.take_outgoing() == []
    later.workers("a")
    later.finish("x")
    later.finish("y")
    assert later.take() == ["a: run x #1", "a: run y #1", "a: free x, y"]
    assert not later.machine.state.tasks
    assert not later.machine.state.codes


def test_a_published_result_that_a_worker_kept_is_there_and_nothing_is_run(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[], y=["x"])
    scene.finish("x")
    scene.finish("y")
    publish(scene, "n", "y")
    scene.release("x", "y")
    scene.lose_client()

    later = scene.after_a_crash()
    get(later, "n")
    assert later.take() == ["d: answer [Published(payload=b'v', wants=[-1])]"]
    later.come_back("a", "y")
    later.adopted("a", "y")
    assert later.take() == ["a: adopt y", "d: loan 1 in memory at a"]
    later.advance(60)
    assert later.take() == []


def test_a_small_published_result_needs_no_worker(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[])
    scene.finish("x", value=b"small")
    publish(scene, "n", "x")
    later = scene.after_a_crash()
    get(later, "n")
    assert later.take()[0] == "d: loan 1 in memory inline"


def test_a_published_result_that_went_with_its_worker_is_computed_again(scene: Scene) -> None:
    """Once the workers that were there are not waited for any more."""
    scene.workers("a")
    scene.submit(x=[])
    scene.finish("x")
    publish(scene, "n", "x")
    later = scene.after_a_crash()
    later.join("b")
    later.advance(4.9)
    assert later.take() == []
    later.advance(0.2)
    assert later.take() == ["b: run x #1"]


def test_an_error_stays_an_error(scene: Scene) -> None:
    """Of what is published; whoever tries it again has it run."""
    scene.workers("a")
    scene.submit(x=[], y=["x"])
    publish(scene, "n", "y")
    scene.fail("x")
    later = scene.after_a_crash()
    get(later, "n")
    assert later.take()[0] == "d: loan 1 erred: ValueError: no (of x)"
    later.want("y", client="d")
    later.from_client("d", RetryTasks([later.actor("d").number("y")]))
    later.take()
    later.join("b")
    later.advance(6)
    assert later.take() == ["b: run x #1"]


def test_what_is_done_is_not_done_again(scene: Scene) -> None:
    """Work that was fired and has ended; what was unpublished; what was cancelled."""
    scene.workers("a")
    scene.submit(x=[], y=[], z=[])
    detach(scene, "x", "z")
    publish(scene, "n", "y")
    scene.finish("x")
    scene.call(UnpublishDatasets, names=[Key("n")])
    scene.from_client("c", CancelTasks([scene.actor("c").number("z")]))
    later = scene.after_a_crash()
    assert not later.machine.state.tasks
    assert not later.machine.state.datasets


def test_a_dataset_that_was_replaced_has_its_latest_value(scene: Scene) -> None:
    scene.submit(x=[], y=[], z=[])
    publish(scene, "n", "x", "y")
    publish(scene, "n", "y", "z", override=True, value="w")
    later = scene.after_a_crash()
    get(later, "n")
    assert later.take() == ["d: answer [Published(payload=b'w', wants=[-1, -2])]"]
    assert list(later.machine.state.tasks) == ["y", "z"]


def test_a_key_that_was_used_for_something_else_before_means_the_latest(scene: Scene) -> None:
    scene.submit(x=[], code="old")
    detach(scene, "x")
    scene.cancel("x")
    scene.submit(x=[], code="new")
    detach(scene, "x")
    later = scene.after_a_crash()
    assert later.task("x").code is not None
    assert later.task("x").code.payload == b"new"


def test_a_task_that_kills_workers_has_no_fresh_start_with_each_scheduler(scene: Scene) -> None:
    scene.submit(x=[])
    detach(scene, "x")
    for name in ("a", "b", "d"):
        scene.workers(name)
        scene.lose(name)
    later = scene.after_a_crash()
    assert later.task("x").blame == 3
    later.workers("e")
    later.advance(6)
    later.lose("e")
    assert later.state("x") == "forgotten"


def test_a_life_after_the_next_has_it_as_well(scene: Scene) -> None:
    """The second scheduler is killed before anything has happened; the third finishes it."""
    scene.workers("a")
    scene.submit(x=[], y=["x"], z=[])
    scene.finish("x", value=b"small")
    scene.finish("z")
    publish(scene, "n", "x", "z")
    detach(scene, "y")
    second = scene.after_a_crash()
    second.sync()
    third = second.after_a_crash()
    get(third, "n")
    third.take()
    third.come_back("a", "z")
    third.adopted("a", "z")
    assert third.take() == ["a: adopt z", "a: run y #1 (x inline)", "d: loan 2 in memory at a"]


def test_a_run_that_outlives_the_scheduler_is_not_begun_twice(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[])
    detach(scene, "x")
    later = scene.after_a_crash()
    later.come_back("a", runs=["x"])
    later.advance(20)
    assert later.take() == []


# --- what is gone, and must not spread ---


def test_an_actor_that_was_lost_takes_nothing_with_it_that_it_had_not_taken(scene: Scene) -> None:
    """y was made with actor x, and is there; x is gone with a, which nobody could help."""
    scene.workers("a", "b")
    scene.submit(x=[], options=TaskOptions(actor=True, workers=["a"]))
    scene.submit(y=["x"], options=TaskOptions(workers=["b"]))
    scene.finish("x", value=b"proxy")
    scene.finish("y")
    publish(scene, "n", "y", "x")
    scene.lose("a")
    assert (scene.state("x"), scene.state("y")) == ("erred", "memory")

    later = scene.after_a_crash()
    later.come_back("b", "y")
    later.adopted("b", "y")
    assert (later.state("x"), later.state("y")) == ("erred", "memory")


def test_an_actor_is_never_made_again_without_a_word(scene: Scene) -> None:
    """Its worker comes back with it, or it is lost."""
    scene.workers("a")
    scene.submit(x=[], options=TaskOptions(actor=True))
    scene.finish("x", value=b"proxy")
    publish(scene, "n", "x")
    there = scene.after_a_crash()
    there.come_back("a", "x")
    there.adopted("a", "x", value=b"proxy", actors=["x"])
    assert there.state("x") == "memory"

    gone = scene.after_a_crash()
    gone.join("b")
    gone.advance(6)
    assert gone.take() == []
    assert gone.state("x") == "erred"


def test_an_actor_that_was_asked_for_again_is_made_again(scene: Scene) -> None:
    """It was let go of, as only its result y was needed; then somebody said to want another."""
    scene.workers("a")
    scene.submit(x=[], options=TaskOptions(actor=True))
    scene.submit(y=["x"])
    scene.finish("x", value=b"proxy")
    scene.finish("y")
    publish(scene, "n", "y")
    scene.release("x")
    released = scene.after_a_crash()
    scene.submit(x=[], wanted=[], options=TaskOptions(actor=True))
    asked_again = scene.after_a_crash()
    for later, runs in ((released, []), (asked_again, ["b: run x #1"])):
        later.join("b")
        later.advance(6)
        assert later.take() == runs


def test_a_scattered_value_comes_back_with_its_worker_or_is_lost(scene: Scene) -> None:
    """y was computed from x, which nobody can compute."""
    scene.workers("a")
    scene.scatter("x")
    scene.holds("a", "x")
    scene.submit(y=["x"])
    publish(scene, "n", "y")
    there = scene.after_a_crash()
    there.come_back("a", "x")
    there.adopted("a", "x")
    assert there.take() == ["a: adopt x", "a: run y #1"]

    gone = scene.after_a_crash()
    gone.join("b")
    gone.advance(6)
    assert gone.take() == []
    assert (gone.state("x"), gone.state("y")) == ("erred", "erred")


def test_a_scattered_value_that_was_lost_takes_no_result_with_it(scene: Scene) -> None:
    scene.workers("a", "b")
    scene.scatter("x", workers=["a"])
    scene.holds("a", "x")
    scene.submit(y=["x"], options=TaskOptions(workers=["b"]))
    scene.finish("y")
    publish(scene, "n", "y")
    scene.lose("a")
    later = scene.after_a_crash()
    later.come_back("b", "y")
    later.adopted("b", "y")
    assert (later.state("x"), later.state("y")) == ("erred", "memory")


def test_a_shuffle_is_a_shuffle_again_and_its_cuts_are_made_anew(scene: Scene) -> None:
    """Nobody knows any more what was cut; one output is there, and one is missing."""
    all_cut(scene)
    publish(scene, "n", "u0", "u1")
    scene.finish("u0")
    later = scene.after_a_crash()
    assert [shuffle.id for shuffle in later.machine.state.barriers.values()] == ["s"]
    later.come_back("a", "t0", "u0")
    later.come_back("b", "t1")
    later.advance(6)
    said = later.take()
    assert {"a: let go of t0", "b: let go of t1", "a: adopt u0"} <= set(said)
    assert {line.partition(" ")[2] for line in said if "run" in line} == {"run t0 #1", "run t1 #1"}


def test_with_nobody_waited_for_what_was_there_is_run_at_once() -> None:
    scene = journaling(recovery_seconds=0.0)
    scene.workers("a")
    scene.submit(x=[])
    scene.finish("x")
    publish(scene, "n", "x")
    later = scene.after_a_crash()
    later.join("b")
    assert later.take() == ["b: run x #1"]


def test_workers_are_waited_for_however_late_the_first_of_them_comes(scene: Scene) -> None:
    """A client looked in long before; nothing that needs a and b goes on before they are there."""
    scene.workers("a", "b")
    scene.submit(x=[], y=[])
    scene.finish("x")
    publish(scene, "n", "x", "y")
    later = scene.after_a_crash()
    get(later, "n")
    later.advance(600)
    later.take()
    later.come_back("b")
    assert later.take() == []
    later.come_back("a", "x")
    assert sorted(later.take()) == ["a: adopt x", "b: run y #1"]


def test_who_stays_away_is_waited_for_by_one_life_only(scene: Scene) -> None:
    scene.workers("a", "b")
    scene.submit(x=[])
    publish(scene, "n", "x")
    later = scene.after_a_crash()
    later.syncs_at_once = True
    later.come_back("b")
    assert later.take() == []
    later.advance(5)
    assert later.take() == ["b: run x #1"]
    assert list(written(later).workers) == ["tcp://b:1"]


def test_a_client_that_is_back_says_nothing_twice(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[], y=["x"])
    publish(scene, "n", "y")
    later = scene.after_a_crash()
    returns(later, "c", "a")
    later.submit(x=[], y=["x"])
    later.come_back("a", "x")
    later.adopted("a", "x")
    later.advance(6)
    assert later.take() == ["a: adopt x", "c: x in memory at a", "a: run y #1"]


# --- when it is told ---


def test_whoever_publishes_is_answered_once_it_is_on_disk() -> None:
    scene = Scene()
    scene.keep_journal()
    scene.submit(x=[])
    publish(scene, "n", "x")
    assert scene.take() == []
    scene.sync()
    assert scene.take() == ["c: answer None"]
    scene.call(UnpublishDatasets, names=[Key("n")])
    assert scene.take() == []
    scene.sync()
    assert scene.take() == ["c: answer ['n']"]


def test_work_that_was_fired_is_listed_once_it_is_on_disk() -> None:
    scene = Scene()
    scene.keep_journal()
    scene.submit(x=[])
    detach(scene, "x")
    scene.call(DetachedTasks)
    assert scene.take() == []
    lost = scene.after_a_crash()
    assert not lost.machine.state.tasks
    scene.sync()
    assert scene.take() == ["c: answer {'x': 'queued'}"]


def test_nothing_is_written_of_what_goes_with_its_client(scene: Scene) -> None:
    ndisk = len(scene.disk)
    scene.submit(x=[], y=["x"])
    scene.release("x", "y")
    assert len(scene.disk) == ndisk


def test_each_task_is_written_once_and_the_end_of_all_leaves_nothing(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[], y=["x"], z=["x"])
    detach(scene, "y")
    detach(scene, "z")
    assert sorted(task.key for task in written(scene).tasks.values()) == ["x", "y", "z"]
    scene.lose_client()
    for key in ("x", "y", "z"):
        scene.finish(key)
    said = written(scene)
    assert (said.tasks, said.detached) == ({}, {})
    journal = scene.machine.state.journal
    assert journal is not None
    assert [*journal.tasks, *journal.codes, *journal.task_by_key] == []


def test_a_journal_that_stops_is_told_and_nobody_waits_for_it() -> None:
    scene = Scene()
    scene.keep_journal()
    scene.submit(x=[])
    publish(scene, "n", "x")
    scene.stop_journal("the disk is full")
    scene.sync()
    assert scene.take() == ["c: the journal has stopped: the disk is full", "c: answer None"]
    publish(scene, "m", "x")
    assert scene.take() == ["c: the journal has stopped: the disk is full", "c: answer None"]
    scene.call(ExplainTasks, keys=[])
    assert "the disk is full" in scene.take()[0]
    detach(scene, "x")
    assert scene.machine.take_journaled() == ([], [])


def test_a_journal_is_for_a_life_that_begins(scene: Scene) -> None:
    scene.submit(x=[])
    with pytest.raises(AssertionError, match="begins"):
        scene.machine.begin_journal(Journaled(), Epoch(9), scene.now)


def test_what_is_kept_in_a_journal_is_told_by_its_bytes_alone(scene: Scene) -> None:
    """Every record can be read by itself, and each prefix of them is a state that there was."""
    scene.workers("a")
    scene.submit(x=[], y=["x"])
    publish(scene, "n", "y")
    scene.finish("x", value=b"small")
    scene.finish("y")
    scene.call(UnpublishDatasets, names=[Key("n")])
    for n in range(len(scene.disk) + 1):
        later = Scene()
        later.keep_journal(scene.disk[:n])
        assert set(later.machine.state.tasks) in ({*()}, {"x", "y"})
    with pytest.raises(msgspec.MsgspecError):
        from_body(scene.disk[0][:-1])
