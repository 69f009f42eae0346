"""Holders of shards that nobody reaches, be they frozen or behind a wall, and others that come."""

import pytest

from tests.scenes.scheduler.scene import Scene
from tests.scenes.scheduler.shuffling import (
    all_cut,
    cut,
    define,
    epoch,
    join,
    locate,
    submit_shuffle,
)


@pytest.fixture
def three(scene: Scene) -> Scene:
    """a, b and d have cut an input partition each, and make an output partition each."""
    scene.workers("a", "b", "d")
    submit_shuffle(scene, ninputs=3, noutputs=3)
    for key in ("t0", "t1", "t2"):
        cut(scene, key, nbytes=(1, 1, 1))
    assert [scene.state(key) for key in ("u0", "u1", "u2")] == ["processing"] * 3
    scene.take()
    return scene


def place(scene: Scene, key: str) -> str:
    """The worker where a task is."""
    worker = scene.task(key).worker
    assert worker is not None
    return worker.name


def test_shards_of_a_holder_that_two_cannot_reach_are_made_again_elsewhere(three: Scene) -> None:
    """d is frozen.  For one that can't reach it there may be a wall between the two; two are
    believed at once, and what is made again isn't sent to d, as it would be lost likewise."""
    holder = three.run("t2")[0].name
    others = [name for name in ("a", "b", "d") if name != holder]
    outputs = {place(three, key): key for key in ("u0", "u1", "u2")}
    three.unavailable(outputs[others[0]], "t2", unreachable=[holder])
    assert three.state("t2") == "memory"
    three.unavailable(outputs[others[1]], "t2", unreachable=[holder])
    assert three.state("t2") == "processing"
    assert place(three, "t2") in others
    assert f"{holder}: free t2" in three.take()
    before = epoch(three)
    cut(three, "t2", nbytes=(1, 1, 1))
    assert epoch(three) > before
    for name in others:
        key = outputs[name]
        while three.state(key) != "memory":
            join(three, key, int(key[1:]))


def test_an_output_that_finds_a_holder_out_of_reach_is_tried_by_another_worker(
    three: Scene,
) -> None:
    """Asking again from the same place would take just as long, and end in the same way."""
    holder = three.run("t2")[0].name
    asker = next(name for name in ("a", "b", "d") if name != holder)
    key = next(key for key in ("u0", "u1", "u2") if place(three, key) == asker)
    three.unavailable(key, "t2", unreachable=[holder])
    assert place(three, key) != asker


def test_the_only_other_worker_is_believed_at_once(scene: Scene) -> None:
    """There is no second one that could say so too."""
    all_cut(scene)
    scene.take()
    scene.unavailable("u0", "t1", unreachable=["b"], on="a")
    assert scene.state("t1") == "processing"
    assert place(scene, "t1") == "a"


def test_what_a_failed_output_was_told_is_believed_for_the_others() -> None:
    """Neither gets the shards on d in one attempt; the third output does not ask d for them."""
    scene = Scene(fetch_attempts_max=1)
    scene.workers("a", "b", "d")
    submit_shuffle(scene, ninputs=3, noutputs=3)
    for key in ("t0", "t1", "t2"):
        cut(scene, key, nbytes=(1, 1, 1))
    holder = scene.run("t2")[0].name
    outputs = {place(scene, key): key for key in ("u0", "u1", "u2")}
    for asker in [name for name in ("a", "b", "d") if name != holder]:
        scene.unavailable(outputs[asker], "t2", unreachable=[holder])
        assert scene.state(outputs[asker]) == "erred"
    assert scene.state("t2") == "processing"
    assert place(scene, "t2") != holder
    assert list(scene.machine.state.avoided) == [scene.task("t2")]


def test_of_two_that_cannot_reach_each_other_the_first_that_says_so_goes_on(scene: Scene) -> None:
    """Else each would make again what the other has, and both would lose it again."""
    all_cut(scene)
    scene.unavailable("u0", "t1", unreachable=["b"], on="a")
    scene.unavailable("u1", "t0", unreachable=["a"], on="b")
    assert scene.state("t0") == "memory"
    assert [worker.name for worker in scene.task("t0").who_has or ()] == ["a"]


def test_what_came_before_lost_shards_keeps_away_from_who_is_out_of_reach_too(
    scene: Scene,
) -> None:
    """t1 was made of r1, which is gone: sent to b, it would be out of reach as the shards are."""
    scene.workers("a", "b")
    define(scene, "s", 2, {"u0": 0, "u1": 1})
    scene.submit(
        wanted=["u0", "u1"], r0=[], r1=[], t0=["r0"], t1=["r1"], s=["t0", "t1"], u0=["s"], u1=["s"]
    )
    scene.finish("r0")
    scene.finish("r1")
    assert place(scene, "t1") == "b"
    cut(scene, "t0")
    cut(scene, "t1")
    scene.unavailable("u0", "t1", unreachable=["b"], on="a")
    assert place(scene, "r1") == "a"
    scene.finish("r1")
    assert place(scene, "t1") == "a"
    scene.lose("b")
    assert not scene.machine.state.avoided


def test_a_copy_that_comes_or_goes_is_told_to_those_who_ask_next(three: Scene) -> None:
    """What was told to the first is kept for others only as long as it is so."""
    first = locate(three, "a")
    assert locate(three, "b") == [line.replace("a: ", "b: ", 1) for line in first]
    holder = three.run("t2")[0].name
    other = next(name for name in ("a", "b", "d") if name != holder)
    three.holds(other, "t2", nbytes=3)
    (told,) = locate(three, other)
    whose = {part.split(" ", 1)[0]: part for part in told.split("of 3: ")[1].split("; ")}
    assert "t2" in whose[other]
    three.gone(other, "t2")
    assert locate(three, "a") == first
