"""Datasets: values under a name, whose results live as long as the name, and longer if wanted."""

import pytest

from shoal.ids import ClientTaskId, Key
from shoal.protocol.datasets import (
    GetDatasets,
    ListDatasets,
    PublishDatasets,
    UnpublishDatasets,
)
from shoal.protocol.framing import ProtocolError
from shoal.protocol.keys import to_canonical
from shoal.protocol.messages import ReleaseTasks
from tests.scenes.scheduler.scene import Scene


def publish(
    scene: Scene, name: str, *keys: str, client: str = "c", override: bool = False, value: str = "v"
) -> None:
    """A client publishes a value that refers to results of its own."""
    scene.call(
        PublishDatasets,
        client,
        names=[Key(name)],
        payloads=[value.encode()],
        tasks=[[scene.actor(client).number(key) for key in keys]],
        override=override,
    )


def get(scene: Scene, *names: str, client: str = "d") -> None:
    """A client asks for values."""
    scene.call(GetDatasets, client, names=[Key(name) for name in names])


def unpublish(scene: Scene, *names: str) -> None:
    """Names are let go of."""
    scene.call(UnpublishDatasets, names=[Key(name) for name in names])


def a_result(scene: Scene, *keys: str) -> None:
    """c has results of a."""
    scene.workers("a")
    scene.submit(**{key: [] for key in keys})
    for key in keys:
        scene.finish(key)
    scene.take()


def test_a_published_result_outlives_who_published_it(scene: Scene) -> None:
    """It is kept in the name of the dataset, and freed when that goes."""
    a_result(scene, "x")
    publish(scene, "n", "x")
    assert scene.take() == ["c: answer None"]
    assert list(scene.machine.state.keepers) == ["published-n"]

    scene.lose_client("c")
    assert scene.state("x") == "memory"
    scene.call(UnpublishDatasets, "e", names=[Key("n"), Key("other")])
    assert sorted(scene.take()) == ["a: free x", "e: answer ['n']"]
    assert scene.state("x") == "forgotten"
    assert not scene.machine.state.keepers


def test_names_that_read_alike_are_different_names(scene: Scene) -> None:
    """The text and the number: one goes, and what the other refers to stays."""
    a_result(scene, "x", "y")
    publish(scene, to_canonical("1"), "x")
    publish(scene, to_canonical(1), "y")
    scene.release("x", "y")
    unpublish(scene, to_canonical("1"))
    assert (scene.state("x"), scene.state("y")) == ("forgotten", "memory")


def test_whoever_gets_a_value_wants_what_it_refers_to_in_the_same_step(scene: Scene) -> None:
    """So that nothing is lost if it is unpublished before a future was made of it."""
    a_result(scene, "x")
    publish(scene, "n", "x")
    scene.release("x")
    scene.actor("d")
    scene.take()

    scene.actor("d").keys[ClientTaskId(-1)] = "x lent"
    get(scene, "n")
    assert scene.take() == [
        "d: x lent in memory at a",
        "d: answer [Published(payload=b'v', wants=[-1])]",
    ]
    unpublish(scene, "n")
    assert scene.state("x") == "memory"
    scene.want("x", client="d")
    scene.from_client("d", ReleaseTasks([ClientTaskId(-1)]))
    assert scene.state("x") == "memory"
    scene.release("x", client="d")
    assert scene.state("x") == "forgotten"


def test_what_was_lent_to_a_client_that_goes_is_let_go(scene: Scene) -> None:
    a_result(scene, "x")
    publish(scene, "n", "x")
    scene.release("x")
    scene.actor("d").keys[ClientTaskId(-1)] = "x lent"
    get(scene, "n")
    unpublish(scene, "n")
    assert scene.state("x") == "memory"
    scene.lose_client("d")
    assert scene.state("x") == "forgotten"


def test_a_name_is_taken_once(scene: Scene) -> None:
    """And of several names all are published, or none."""
    a_result(scene, "x", "y")
    publish(scene, "n", "x")
    publish(scene, "n", "y")
    scene.call(
        PublishDatasets,
        names=[Key("m"), Key("n")],
        payloads=[b"1", b"2"],
        tasks=[[], []],
    )
    scene.call(ListDatasets)
    assert scene.take() == [
        "c: answer None",
        "c: answer n",
        "c: answer n",
        "c: answer ['n']",
    ]


def test_a_value_that_is_replaced_lets_go_of_its_results(scene: Scene) -> None:
    """Of those that the new one does not refer to."""
    a_result(scene, "x", "y", "z")
    publish(scene, "n", "x", "y")
    publish(scene, "n", "y", "z", override=True, value="w")
    scene.release("x", "y", "z")
    assert [scene.state(key) for key in "xyz"] == ["forgotten", "memory", "memory"]
    scene.lose_client("c")
    assert [scene.state(key) for key in "xyz"] == ["forgotten", "memory", "memory"]


def test_what_is_not_published_is_not_given(scene: Scene) -> None:
    """A value needs no results at all."""
    publish(scene, "n")
    scene.take()
    get(scene, "m", "n")
    assert scene.take() == ["d: answer [None, Published(payload=b'v', wants=[])]"]
    unpublish(scene, "m")
    assert scene.take() == ["c: answer []"]


def test_a_published_task_that_is_not_done_is_run_for_its_name(scene: Scene) -> None:
    """Its client goes before there is a worker."""
    scene.submit(x=[])
    publish(scene, "n", "x")
    scene.lose_client("c")
    scene.take()
    scene.workers("a")
    assert scene.take() == ["a: run x #1"]
    scene.finish("x")
    assert scene.state("x") == "memory"


def test_a_published_result_that_is_lost_is_computed_again(scene: Scene) -> None:
    a_result(scene, "x")
    publish(scene, "n", "x")
    scene.lose_client("c")
    scene.workers("b")
    scene.take()
    scene.lose("a", expected=True)
    assert scene.take() == ["b: run x #2"]


def test_a_value_that_refers_to_what_is_wanted_no_more_is_published_without_it(
    scene: Scene,
) -> None:
    """Its future was cancelled meanwhile."""
    a_result(scene, "x")
    scene.cancel("x")
    publish(scene, "n", "x")
    assert not scene.machine.state.keepers
    assert list(scene.machine.state.datasets) == ["n"]


def test_columns_of_different_lengths_are_refused(scene: Scene) -> None:
    with pytest.raises(ProtocolError, match="different lengths"):
        scene.call(PublishDatasets, names=[Key("n")], payloads=[], tasks=[])


def test_a_large_dataset_is_let_go_of_some_results_at_a_time() -> None:
    """Its name is free at once, and others are heard in between."""
    scene = Scene(forgets_max=3)
    keys = [f"x{n}" for n in range(8)]
    a_result(scene, *keys)
    publish(scene, "n", *keys)
    publish(scene, "left-published-n", "x0")
    scene.release(*keys)
    scene.take()
    unpublish(scene, "n")
    freed = scene.take()
    assert "c: answer ['n']" in freed
    assert sum(scene.state(key) != "memory" for key in keys) <= 3
    assert scene.machine.is_forgetting
    assert scene.machine.wake_at == scene.now
    publish(scene, "n")
    scene.advance(0.0)
    assert not scene.machine.is_forgetting
    assert list(scene.machine.state.tasks) == ["x0"]
    assert list(scene.machine.state.keepers) == ["published-left-published-n"]


def test_a_new_task_does_not_find_an_old_one_of_a_dataset_that_goes() -> None:
    """In the same frame as the end of the dataset."""
    scene = Scene(forgets_max=3)
    keys = [f"x{n}" for n in range(8)]
    a_result(scene, *keys)
    publish(scene, "n", *keys)
    scene.release(*keys)
    old = scene.task("x7")
    unpublish(scene, "n")
    scene.submit(x7=[])
    assert scene.task("x7") is not old
    assert list(scene.machine.state.tasks) == ["x7"]
