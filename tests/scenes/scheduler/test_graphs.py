"""Graphs that arrive in slices, and the code that their tasks share."""

from shoal.ids import ClientTaskId
from shoal.protocol.messages import ReleaseTasks, SubmitTasks
from tests.scenes.scheduler.scene import Scene


def test_the_first_tasks_run_before_the_last_slice_arrives(scene: Scene) -> None:
    """x is needed by y, which is still on its way; until then x is held."""
    scene.workers("a")
    scene.submit(x=[], wanted=[], held=["x"], ahead=1)
    assert scene.take() == ["a: run x #1"]
    scene.finish("x")
    assert scene.take() == []  # c does not want it, but it is kept
    assert scene.state("x") == "memory"

    scene.submit(y=["x"], let_go=["x"], ahead=0)
    assert scene.take() == ["a: run y #1"]

    scene.finish("y")
    assert scene.take() == ["c: y in memory at a", "a: free x"]


def test_a_held_task_survives_until_the_last_slice_that_refers_to_it(scene: Scene) -> None:
    """x is used by the second slice and the fourth, but not by the third."""
    scene.workers("a")
    scene.submit(x=[], wanted=[], held=["x"], ahead=3)
    scene.finish("x")
    scene.submit(y=["x"], ahead=2)
    scene.finish("y")
    scene.release("y")
    assert scene.take() == [
        "a: run x #1",
        "a: run y #1",
        "c: y in memory at a",
        "a: free y",
    ]

    scene.submit(z=[], ahead=1)
    scene.finish("z")
    assert scene.take() == ["a: run z #1", "c: z in memory at a"]

    scene.submit(w=["x"], let_go=["x"], ahead=0)
    assert scene.take() == ["a: run w #1"]


def test_a_task_needed_by_its_dependents_only_is_gone_with_them(scene: Scene) -> None:
    """Neither wanted nor held: x goes as soon as y has used it."""
    scene.workers("a")
    scene.submit(x=[], y=["x"], wanted=["y"])
    scene.finish("x")
    scene.finish("y")
    scene.release("y")
    assert scene.take()[-2:] == ["a: free x", "a: free y"]
    assert scene.state("x") == "forgotten"


def test_a_task_that_is_of_no_use_is_not_kept(scene: Scene) -> None:
    """Nobody wants it, holds it, or depends on it."""
    scene.workers("a")
    scene.submit(x=[], wanted=[])
    assert scene.take() == []
    assert scene.state("x") == "forgotten"


def test_a_client_that_dies_amid_a_graph_leaves_nothing(scene: Scene) -> None:
    """x is held, y waits for it, and more was to come."""
    scene.workers("a")
    scene.submit(x=[], y=["x"], wanted=["y"], held=["x"], ahead=5)
    scene.take()

    scene.lose_client()
    assert scene.take() == ["a: recall x #1"]
    assert not scene.machine.state.tasks
    assert not scene.machine.state.codes


def test_letting_go_of_what_is_not_held_is_no_trouble(scene: Scene) -> None:
    """A number that was never held, or is no longer."""
    scene.workers("a")
    scene.submit(x=[], wanted=[], held=["x"], ahead=2)
    scene.submit(y=["x"], let_go=["x"], ahead=1)
    scene.submit(z=["y"], let_go=["x"], ahead=0)
    assert scene.take() == ["a: run x #1"]


def test_tasks_of_several_functions_come_in_one_message(scene: Scene) -> None:
    """One code for each, and a prefix of each."""
    scene.workers("a")
    scene.shows_codes = True
    scene.define("f")
    scene.define("g")
    codes = scene.actor("c").codes
    first = scene.actor("c").new_numbers(["x", "y"])
    message = SubmitTasks(
        first, ["x", "y"], [codes["f"], codes["g"]], [b"1", 7], [], ["p", "q"], [0, 1]
    )
    scene.from_client("c", message)
    assert scene.take() == ["a: code f", "a: run x #1", "a: code g", "a: run y #1"]
    assert scene.task("y").prefix.name == "q"
    assert scene.task("y").argument == 7


def test_a_code_is_told_to_each_worker_once_and_forgotten_with_its_last_user(scene: Scene) -> None:
    """f is used by three tasks on a and b; the client itself lets go of it first."""
    scene.workers("a", "b")
    scene.shows_codes = True
    scene.submit(x=[], y=[], z=[])
    assert scene.take() == ["a: code f", "a: run x #1", "a: run z #1", "b: code f", "b: run y #1"]

    scene.forget_code("f")
    for key in ("x", "y"):
        scene.finish(key)
        scene.release(key)
    assert [line for line in scene.take() if "code" in line] == []

    scene.finish("z")
    scene.release("z")
    assert scene.take()[-3:] == ["a: forget code 1", "a: free z", "b: forget code 1"]
    assert not scene.machine.state.codes


def test_a_code_without_tasks_goes_with_the_client_that_defined_it(scene: Scene) -> None:
    """Said once more, the client's number means nothing."""
    scene.define("f")
    scene.forget_code("f")
    assert not scene.machine.state.codes
    scene.define("g")
    scene.lose_client()
    assert not scene.machine.state.codes


def test_a_worker_that_comes_back_is_told_its_codes_again(scene: Scene) -> None:
    """It may be another process at the same address."""
    scene.workers("a")
    scene.shows_codes = True
    scene.submit(x=[])
    scene.lose("a")
    scene.join("a")
    assert scene.take() == ["a: code f", "a: run x #1", "a: code f", "a: run x #2"]


def test_a_number_that_the_client_never_used_is_released_in_peace(scene: Scene) -> None:
    """It changes nothing."""
    scene.submit(x=[])
    scene.from_client("c", ReleaseTasks([ClientTaskId(77)]))
    assert scene.state("x") == "queued"
