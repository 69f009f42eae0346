"""Graphs leave in slices, and are told apart from what is wanted already."""

from shoal.ids import ClientTaskId, Key
from shoal.protocol.messages import SubmitTasks


def slice_of(first: int, keys: list[str], wanted: list[int]) -> SubmitTasks:
    return SubmitTasks(
        first=ClientTaskId(first),
        keys=[Key(key) for key in keys],
        codes=[9],
        arguments=list(range(len(keys))),
        dependencies=[],
        prefixes=["p"],
        prefix_indices=[],
        wanted=wanted,
    )


def test_a_bundle_is_defined_before_its_tasks_and_forgotten_after_them(scene):
    first = scene.machine.reserve(2)
    records = scene.machine.submit_slice([(9, b"bundle")], slice_of(first, ["a", "b"], [1]), ["b"])
    assert scene.take() == [
        "code 9 is bundle",
        "submit a#1(code 9) b#2(code 9)",
        "forget code 9",
    ]
    assert [record.number for record in records] == [2]
    scene.finish(2)
    assert scene.ended() == ["b: finished"]


def test_what_is_wanted_already_is_not_wanted_a_second_time(scene):
    first = scene.machine.reserve(2)
    [b] = scene.submit("b")
    scene.take()
    records = scene.machine.submit_slice(
        [(9, b"bundle")], slice_of(first, ["a", "b"], [0, 1]), ["a", "b"]
    )
    assert records[1] is b
    _, message, _ = scene.machine.take_outgoing()
    assert message.wanted == [0]
    scene.release(b)
    assert scene.take() == []  # the graph's future still wants it
    scene.release(b)
    assert scene.take() == ["release 3"]


def test_a_graph_waits_for_releases_made_before_it(scene):
    [x] = scene.submit("x")
    scene.take()
    scene.release(x)
    first = scene.machine.reserve(1)
    scene.machine.submit_slice([], slice_of(first, ["x"], [0]), ["x"])
    assert scene.take() == ["release 1", "submit x#2(code 9)"]


def test_numbers_reserved_for_a_graph_are_used_by_nobody_else(scene):
    first = scene.machine.reserve(10)
    [x] = scene.submit("x")
    assert x.number == first + 10
