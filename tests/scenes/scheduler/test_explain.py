"""What a task waits for, and why it ran where it did, in lines for people."""

import ast

from shoal.protocol.memory import PauseChanged
from shoal.protocol.messages import TaskOptions
from shoal.protocol.placement import ExplainTasks
from tests.scenes.scheduler.scene import Scene


def explained(scene: Scene, *keys: str) -> list[str]:
    """The lines that a client gets."""
    scene.take()
    scene.call(ExplainTasks, keys=list(keys))
    [line] = scene.take()
    lines: list[str] = ast.literal_eval(line.removeprefix("c: answer "))
    return [text.strip() for text in lines]


def test_a_waiting_task_names_its_nearest_input(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[], y=["x"], z=["y"])
    assert explained(scene, "z") == [
        "'z' is waiting:",
        "it waits for 1 of 1 inputs; the nearest is 'y' (waiting)",
        "before that one are 1 more in a row, 1.0 s in all",
    ]


def test_a_queued_task_says_how_many_go_before_it(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(**{f"x{i}": [] for i in range(6)})
    assert explained(scene, "x5") == [
        "'x5' is queued:",
        "the 1 threads of worker a have enough to do",
        "3 queued tasks go before it",
    ]


def test_without_workers_that_is_the_reason(scene: Scene) -> None:
    scene.submit(x=[])
    assert explained(scene, "x") == ["'x' is queued:", "no worker is there"]


def test_a_restriction_to_nobody_is_told_with_who_is_there(scene: Scene) -> None:
    scene.workers("a", "b")
    scene.submit(x=[], options=TaskOptions(workers=["typo"]))
    scene.advance(2.0)
    assert explained(scene, "x") == [
        "'x' is no-worker:",
        "it may run on typo only, and none of that name or address is there, for 2.0 s now; "
        "there are workers a, b",
    ]


def test_resources_that_nobody_has_are_told_with_the_most_that_there_is(scene: Scene) -> None:
    scene.join("a", resources={"MEM": 1.0})
    scene.submit(x=[], options=TaskOptions(resources={"MEM": 2.0}))
    assert explained(scene, "x")[1].startswith("it needs MEM=2 of one worker, and none has so much")
    assert explained(scene, "x")[1].endswith("the most that one has: MEM=1")


def test_resources_that_others_have_are_counted(scene: Scene) -> None:
    scene.join("a", nthreads=4, resources={"MEM": 3.0})
    scene.submit(x=[], y=[], options=TaskOptions(resources={"MEM": 2.0}))
    assert explained(scene, "y") == [
        "'y' is queued:",
        "it needs MEM=2: 1 of 1 workers have so much, 0 of them have it left now",
    ]


def test_paused_workers_are_a_reason_with_their_numbers(scene: Scene) -> None:
    scene.workers("a")
    scene.from_worker("a", PauseChanged(True, "1.7 GiB of 2 GiB"))
    scene.submit(x=[])
    assert explained(scene, "x")[1] == (
        "1 of 1 workers are paused and begin nothing: worker a (1.7 GiB of 2 GiB)"
    )


def test_a_placed_task_says_what_goes_before_it_and_why_it_is_there(scene: Scene) -> None:
    scene.workers("a", "b")
    scene.submit(x=[], options=TaskOptions(workers=["a"]))
    scene.finish("x", nbytes=10_000_000_000)
    scene.submit(**{f"y{i}": ["x"] for i in range(4)})
    assert explained(scene, "y3") == [
        "'y3' is placed (processing):",
        "it is placed on worker a and not sent: 3 tasks go before it there, 1.5 s of work; "
        "another worker may take it",
        "placed just now on worker a: it held inputs, and there it was expected to begin first",
    ]


def test_a_sent_task_says_what_it_fetches(scene: Scene) -> None:
    scene.workers("a", "b")
    scene.submit(x=[], options=TaskOptions(workers=["a"]))
    scene.finish("x", nbytes=1 << 20)
    scene.submit(y=["x"], options=TaskOptions(workers=["b"]))
    assert explained(scene, "y")[1:3] == [
        "worker b runs it, or fetches what it needs; such take 500 ms",
        "1 inputs come from elsewhere, 1.00 MiB from worker a",
    ]


def test_a_result_says_where_it_is_and_why_it_was_made_there(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[])
    scene.finish("x", nbytes=2048)
    scene.advance(3.0)
    assert explained(scene, "x") == [
        "'x' is memory:",
        "its result, 2.00 kiB, is on worker a",
        "placed 3.0 s ago on worker a: of the workers with room, and with what it needs, it had "
        "the least to do",
    ]


def test_what_was_taken_by_another_says_so(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[])
    scene.finish("x")
    scene.submit(**{f"y{i}": ["x"] for i in range(6)})
    scene.join("b")
    assert explained(scene, "y5")[-1] == (
        "taken just now by worker b, which had nothing to do, from worker a, which would have come "
        "to it later"
    )


def test_a_failed_task_names_the_input_that_failed(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[], y=["x"])
    scene.fail("x", "ValueError: no")
    assert explained(scene, "y") == ["'y' is erred:", "its input 'x' failed: ValueError: no"]


def test_what_is_not_known_is_said_to_be(scene: Scene) -> None:
    assert explained(scene, "x") == ["'x' is not known: it was never submitted, or is forgotten"]


def test_of_very_many_workers_fewer_tasks_are_explained_at_once(scene: Scene) -> None:
    """Each may look at all workers; 600 of them leave time for 83 tasks."""
    scene.workers(*(f"w{i}" for i in range(600)))
    keys = [f"x{i}" for i in range(100)]
    lines = explained(scene, *keys)
    assert lines[82].startswith("'x82' is not known")
    assert lines[83:] == ["and 17 more"]
