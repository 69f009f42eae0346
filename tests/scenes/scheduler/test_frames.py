"""Several messages in one frame are one step; and a frame that contradicts itself is refused."""

from typing import Any

import msgspec
import pytest

from shoal.ids import ClientTaskId, CodeId, Key
from shoal.protocol.framing import ProtocolError
from shoal.protocol.messages import (
    Failure,
    ReleaseTasks,
    ReplicasAdded,
    ReplicasGone,
    SubmitTasks,
    TaskFailed,
    TaskFinished,
    TaskOptions,
    WantKey,
)
from shoal.protocol.transfers import PlaceScatter
from tests.scenes.scheduler.scene import Scene

FAILURE = Failure(b"", "ValueError: no", "", Key("z"))

SOUND = SubmitTasks(
    first=ClientTaskId(1),
    keys=[Key("x"), Key("y")],
    codes=[CodeId(1)],
    arguments=[b"", b""],
    dependencies=[[], [ClientTaskId(1)]],
    prefixes=["x", "y"],
    prefix_indices=[0, 1],
)


def test_a_result_that_is_of_no_use_any_more_is_freed(scene: Scene) -> None:
    """y needs x and z.  One frame says that z has failed, so y has, and then that x is there."""
    scene.workers("a")
    scene.submit(x=[], z=[], y=["x", "z"], wanted=["y"])
    assert scene.take() == ["a: run x #1", "a: run z #1"]

    _, z, z_run = scene.run("z")
    _, x, x_run = scene.run("x")
    scene.from_worker("a", TaskFailed(z, z_run, FAILURE), TaskFinished(x, x_run, 10, 1.0))
    assert scene.take() == ["c: y erred: ValueError: no (of z)", "a: free x"]


def test_a_lost_result_that_is_of_no_use_any_more_is_not_computed_again(scene: Scene) -> None:
    """The same, but x was there before, and is lost in that frame."""
    scene.workers("a")
    scene.submit(x=[], z=[], y=["x", "z"], wanted=["y"])
    scene.finish("x")
    scene.take()

    _, z, z_run = scene.run("z")
    scene.from_worker("a", TaskFailed(z, z_run, FAILURE), ReplicasGone([scene.number("x")]))
    assert scene.take() == ["c: y erred: ValueError: no (of z)"]
    assert scene.state("x") == "released"


def test_a_key_that_is_released_and_submitted_in_one_frame_is_a_new_task(scene: Scene) -> None:
    """The order within a frame counts: the new task must not find the old one."""
    scene.workers("a")
    scene.submit(x=[])
    scene.fail("x")
    scene.take()

    number = scene.actor("c").number("x")
    again = msgspec.structs.replace(
        SOUND, first=scene.actor("c").new_numbers(["x", "y"]), dependencies=[]
    )
    scene.from_client("c", ReleaseTasks([number]), again)
    assert scene.take() == ["a: run x #1", "a: run y #1"]


def test_a_key_that_is_released_and_asked_for_in_one_frame_is_unknown(scene: Scene) -> None:
    """As if the frames had come one after the other."""
    scene.submit(x=[])
    number = scene.actor("c").number("x")
    again = scene.actor("c").new_numbers(["x"])
    scene.from_client("c", ReleaseTasks([number]), WantKey(again, Key("x")))
    assert scene.take() == ["c: x cancelled: unknown"]


def test_a_value_that_is_released_and_scattered_in_one_frame_is_a_new_one(scene: Scene) -> None:
    """The old value is freed, and the new one gets a number of its own."""
    scene.workers("a")
    scene.scatter("x")
    scene.holds("a", "x")
    scene.take()

    old = scene.number("x")
    number = scene.actor("c").number("x")
    again = scene.actor("c").new_numbers(["x"])
    scene.names.calls[9] = PlaceScatter
    scene.from_client("c", ReleaseTasks([number]), PlaceScatter(9, again, [Key("x")], [8]))
    assert scene.take() == ["c: answer {'x': ['a']}", "a: free x"]
    assert scene.number("x") != old


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"arguments": [b""]}, "columns of different lengths"),
        ({"codes": []}, "columns of different lengths"),
        ({"dependencies": [[]]}, "columns of different lengths"),
        ({"prefix_indices": [0]}, "columns of different lengths"),
        ({"prefixes": []}, "columns of different lengths"),
        ({"option_indices": [0]}, "columns of different lengths"),
        ({"option_indices": [0, 1]}, "options that it does not have"),
        ({"codes": [CodeId(7)]}, "a code that was not defined"),
        ({"prefix_indices": [0, 2]}, "a prefix that it does not have"),
        ({"wanted": [2]}, "a task that it does not have"),
        ({"held": [-1]}, "a task that it does not have"),
        ({"dependencies": [[], [ClientTaskId(2)]]}, "before one that it depends on"),
        ({"dependencies": [[ClientTaskId(2)], []]}, "before one that it depends on"),
        ({"dependencies": [[], [ClientTaskId(1)] * 2]}, "a dependency twice"),
        ({"wanted": [0, 0]}, "wants a task twice"),
        ({"held": [1, 1]}, "holds a task twice"),
        ({"graph": ClientTaskId(2)}, "no slice of the graph"),
        ({"graph": ClientTaskId(1), "ntasks_ahead": -1}, "no slice of the graph"),
        ({"graph": ClientTaskId(1), "ntasks_ahead": 1 << 62}, "no slice of the graph"),
    ],
)
def test_tasks_that_contradict_themselves_are_refused(
    scene: Scene, fields: dict[str, Any], complaint: str
) -> None:
    """Before anything is changed; the client is broken, or not a client."""
    scene.define("f")
    with pytest.raises(ProtocolError, match=complaint):
        scene.from_client("c", msgspec.structs.replace(SOUND, **fields))
    assert scene.machine.state.tasks == {}

    scene.actor("c").new_numbers(["x", "y"])
    scene.from_client("c", SOUND)
    assert (scene.state("x"), scene.state("y")) == ("queued", "waiting")


def test_a_number_that_has_a_task_is_not_given_to_another(scene: Scene) -> None:
    """The older task's want would have no number left by which it could be released."""
    scene.submit(x=[])
    number = scene.actor("c").number("x")
    again = msgspec.structs.replace(
        SOUND, first=number, codes=[scene.actor("c").codes["f"]], dependencies=[]
    )
    for said in (again, msgspec.structs.replace(again, held=[0], wanted=[])):
        with pytest.raises(ProtocolError, match="a number that has a task already"):
            scene.from_client("c", said)
    with pytest.raises(ProtocolError, match="a number that has a task already"):
        scene.from_client("c", WantKey(number, Key("x")))
    scene.release("x")
    assert scene.machine.state.tasks == {}


def test_each_task_of_a_message_may_have_options_of_its_own(scene: Scene) -> None:
    """y is more urgent than what was submitted before it; x and z are as their message says."""
    scene.submit(w=[])
    scene.define("f")
    first = scene.actor("c").new_numbers(["x", "y", "z"])
    said = SubmitTasks(
        first=first,
        keys=[Key("x"), Key("y"), Key("z")],
        codes=[scene.actor("c").codes["f"]],
        arguments=[b""] * 3,
        dependencies=[],
        prefixes=["x"],
        prefix_indices=[],
        options=TaskOptions(priority=-1),
        other_options=[TaskOptions(retries=1), TaskOptions(priority=1, retries=2)],
        option_indices=[0, 2, 1],
    )
    scene.from_client("c", said)
    assert [scene.task(key).retries for key in ("x", "y", "z")] == [0, 2, 1]
    scene.workers("a", nthreads=4)
    assert scene.take() == ["a: run y #1", "a: run w #1", "a: run z #1", "a: run x #1"]


def test_replicas_without_sizes_are_refused(scene: Scene) -> None:
    """The worker is broken."""
    scene.workers("a")
    scene.scatter("x")
    with pytest.raises(ProtocolError, match="columns of different lengths"):
        scene.from_worker("a", ReplicasAdded([scene.number("x")], []))
