"""Values left with the scheduler by nested keys, and collections of ended tasks."""

from typing import Any

import pytest

from shoal.ids import Key
from shoal.protocol.framing import ProtocolError
from shoal.protocol.leaves import leaves_of, path_of, value_of
from shoal.protocol.metadata import CollectedTasks, CollectTasks, GetMetadata, SetMetadata
from shoal.protocol.plain import load_plain
from shoal.scheduler.machine.on_metadata import leaves_at
from tests.scenes.scheduler.scene import Scene


def put(scene: Scene, keys: Any, value: Any) -> None:
    """c leaves a value."""
    scene.call(SetMetadata, path=path_of(keys), leaves=leaves_of(value))


def look(scene: Scene, keys: Any) -> Any:
    """What is there."""
    leaves = leaves_at(scene.machine.state, path_of(keys))
    return "nothing" if leaves is None else value_of(leaves, load_plain)


def test_values_are_found_by_their_paths_and_together(scene: Scene) -> None:
    put(scene, "x", {"a": 1, ("t", 2): {"deep": [3]}})
    put(scene, ["x", "b", "c"], "text")
    assert look(scene, ["x", "a"]) == 1
    assert look(scene, ["x", ("t", 2), "deep"]) == [3]
    assert look(scene, "x") == {"a": 1, ("t", 2): {"deep": [3]}, "b": {"c": "text"}}
    assert look(scene, []) == {"x": look(scene, "x")}
    assert scene.take() == ["c: answer None"] * 2


def test_a_value_takes_the_place_of_all_that_was_below_it_or_on_its_way(scene: Scene) -> None:
    put(scene, ["x", "a"], {"b": 1, "c": 2})
    put(scene, ["x", "a"], {"d": 3})
    assert look(scene, "x") == {"a": {"d": 3}}
    put(scene, ["x", "a", "d", "e"], 4)
    assert look(scene, "x") == {"a": {"d": {"e": 4}}}
    put(scene, "x", None)
    assert look(scene, "x") is None


@pytest.mark.parametrize("value", [{}, {"a": {}}, {"a": {"b": {}}, "c": 1}])
def test_empty_mappings_are_kept(scene: Scene, value: Any) -> None:
    put(scene, "x", value)
    assert look(scene, "x") == value
    put(scene, ["x", "new"], 1)
    assert look(scene, "x") == {**value, "new": 1}


def test_a_mapping_with_other_keys_is_a_value(scene: Scene) -> None:
    """It can't be looked into by a path."""
    put(scene, "x", {None: 1, "a": 2})
    assert look(scene, "x") == {None: 1, "a": 2}
    assert look(scene, ["x", "a"]) == "nothing"


def test_a_path_that_leads_nowhere_is_answered_none(scene: Scene) -> None:
    """Beyond a value, or off the way."""
    put(scene, "x", 1)
    scene.take()
    for keys in ("y", ["x", "a"], ["y", "a"]):
        scene.call(GetMetadata, path=path_of(keys))
    assert scene.take() == ["c: answer None"] * 3


def test_code_beside_the_scheduler_leaves_values_too(scene: Scene) -> None:
    scene.machine.set_metadata(path_of(["x", "y"]), leaves_of(5), scene.now)
    assert look(scene, "x") == {"y": 5}


@pytest.mark.parametrize(
    ("path", "leaves"),
    [([], leaves_of(1)), (["x"], []), (["x"], [(["a"], b"1"), (["a", "b"], b"2")])],
    ids=["no path", "no value", "a leaf below a leaf"],
)
def test_what_makes_no_sense_is_refused(scene: Scene, path: Any, leaves: Any) -> None:
    with pytest.raises(ProtocolError):
        scene.call(SetMetadata, path=path, leaves=leaves)
    assert scene.machine.state.metadata == {}


def test_a_collection_has_tasks_that_began_and_ended_since(scene: Scene) -> None:
    """w ended before, v began before, z has not ended; who submits them does not matter."""
    scene.workers("a")
    scene.submit(w=[], v=[])
    scene.finish("w")
    scene.call(CollectTasks, name="n")
    scene.submit("d", x=[], y=[], z=[])
    scene.finish("v")
    scene.finish("x")
    scene.fail("y")
    scene.release("x", client="d")
    scene.take()
    scene.call(CollectedTasks, name="n")
    assert scene.take() == ["c: answer {'x': 'memory', 'y': 'erred'}"]


def test_who_collects_no_more_costs_no_more(scene: Scene) -> None:
    """Two collect; as the last of them goes, the story is recorded as ever."""
    plain = scene.machine._core.record
    scene.call(CollectTasks, "c", name="n")
    scene.call(CollectTasks, "d", name="n")
    assert scene.machine._core.record != plain
    scene.call(CollectedTasks, "c", name="n")
    assert scene.machine._core.record != plain
    scene.lose_client("d")
    assert scene.machine._core.record == plain
    assert scene.machine.state.collections == {}


def test_a_collection_that_nobody_began_is_empty(scene: Scene) -> None:
    scene.call(CollectedTasks, name=Key("n"))
    assert scene.take() == ["c: answer {}"]
