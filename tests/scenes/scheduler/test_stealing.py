"""What is taken from whom: the urgent first, never what may not be moved, and nothing in vain."""

import pytest

from shoal.protocol.messages import TaskOptions
from tests.scenes.scheduler.scene import Scene


def pinned(*names: str, **options: float) -> TaskOptions:
    return TaskOptions(workers=list(names), **options)


def runs_of(scene: Scene, name: str) -> list[str]:
    """Keys of what a worker was sent, in that order."""
    return [line.split()[2] for line in scene.take() if line.startswith(f"{name}: run")]


def test_the_more_urgent_is_taken_before_what_comes_last(scene: Scene) -> None:
    """Twenty tasks of rising urgency next to x; who comes late gets the most urgent left."""
    scene.workers("a")
    scene.submit(x=[])
    scene.finish("x")
    for i in range(20):
        scene.submit(**{f"y{i:02}": ["x"]}, options=TaskOptions(priority=i))
    scene.take()
    scene.join("b")
    assert runs_of(scene, "b") == ["y19", "y18"]


def test_what_is_pinned_is_left_and_what_lies_behind_it_is_taken(scene: Scene) -> None:
    """The first in a's backlog may run on a only."""
    scene.workers("a")
    scene.submit(x=[])
    scene.finish("x")
    scene.submit(p0=["x"], p1=["x"], p2=["x"], options=pinned("a"))
    scene.submit(y=["x"])
    scene.take()
    scene.join("b")
    assert runs_of(scene, "b") == ["y"]


def test_a_victim_with_nothing_to_be_had_does_not_hide_another(scene: Scene) -> None:
    """a has the most to do, all of it pinned; d has something that b may take."""
    scene.workers("a", "d")
    scene.submit(x=[], options=pinned("a"))
    scene.submit(z=[], options=pinned("d"))
    scene.finish("x")
    scene.finish("z")
    scene.submit(**{f"p{i}": ["x"] for i in range(20)}, options=pinned("a"))
    scene.submit(**{f"y{i}": ["z"] for i in range(5)}, options=pinned("d", "b"))
    scene.take()
    scene.join("b")
    assert runs_of(scene, "b") == ["y4", "y3"]


@pytest.mark.parametrize("alias", ["late", "box"])
def test_who_comes_late_by_the_name_that_tasks_have_takes_its_part(
    scene: Scene, alias: str
) -> None:
    """Names and hosts are resolved when somebody has room, not when tasks are submitted."""
    scene.join("a", host="box")
    scene.submit(**{f"x{i}": [] for i in range(6)}, options=pinned("a", alias))
    scene.take()
    scene.join("other", host="elsewhere")
    assert scene.take() == []
    scene.join("late", host="box")
    assert runs_of(scene, "late") == ["x5", "x4"]


def test_a_task_pinned_to_a_name_runs_on_whoever_has_the_name_next(scene: Scene) -> None:
    """The worker called a is replaced, by one at another address."""
    scene.workers("a", "b")
    scene.submit(x=[], y=[], options=pinned("a"))
    scene.lose("a", expected=True)
    assert [scene.state(key) for key in "xy"] == ["no-worker"] * 2
    scene.take()
    scene.join("a", address="tcp://a2:1")
    assert runs_of(scene, "a") == ["x", "y"]


def test_what_was_recalled_goes_to_whom_it_was_recalled_for(scene: Scene) -> None:
    """a holds x, so that y would be placed there again, and again recalled."""
    scene.workers("a")
    scene.submit(x=[], w=[])
    scene.finish("x", seconds=1e-3)
    scene.submit(y=["x"])
    scene.join("b")
    scene.advance(0.1)
    assert scene.take()[-1] == "a: recall y #1"
    scene.returned("y")
    assert scene.take() == ["b: run y #2 (x from a)"]
    scene.advance(10.0)
    assert scene.take() == []


def test_nothing_is_recalled_for_one_that_would_begin_later(scene: Scene) -> None:
    """x is 10 GB; until it has come to b, a has done what it is at."""
    scene.workers("a")
    scene.submit(x=[], w=[])
    scene.finish("x", nbytes=10_000_000_000)
    scene.submit(y=["x"])
    scene.join("b")
    scene.advance(5.0)
    assert [line for line in scene.take() if "recall" in line] == []


def test_nobody_is_sent_what_it_would_have_to_fetch_while_it_has_work(scene: Scene) -> None:
    """b runs something; y waits for a, which holds x, though a has more to do."""
    scene.workers("a", "b")
    scene.submit(x=[], options=pinned("a"))
    scene.finish("x", nbytes=1_000_000)
    scene.submit(**{f"p{i}": [] for i in range(3)}, options=pinned("a"))
    scene.submit(**{f"q{i}": [] for i in range(2)}, options=pinned("b"))
    scene.take()
    scene.submit(y=["x"])
    worker = scene.task("y").worker
    assert worker is scene.worker("a")


def holder_with_cuts(scene: Scene) -> None:
    """a holds x, of 48 MB, for six cuts of a kind of which none has ended; six others are idle."""
    scene.workers(*"abcdefg")
    scene.submit(x=[], options=pinned("a"))
    scene.finish("x", nbytes=48_000_000)
    scene.submit(**{f"cut-{i}": ["x"] for i in range(6)})


def test_tasks_of_an_unknown_kind_stay_behind_the_first_where_their_input_is(scene: Scene) -> None:
    holder_with_cuts(scene)
    assert {scene.task(f"cut-{i}").worker for i in range(6)} == {scene.worker("a")}
    assert {line[:2] for line in scene.take() if "run" in line} == {"a:"}


def test_what_was_guessed_counts_no_more_once_it_is_known(scene: Scene) -> None:
    """By the guess there are seconds of work on a; there are milliseconds, and x takes longer."""
    holder_with_cuts(scene)
    scene.take()
    scene.advance(0.004)
    scene.finish("cut-0", seconds=0.004)
    scene.advance(0.2)
    assert {line[:2] for line in scene.take() if "run" in line} == {"a:"}


def test_what_takes_long_is_taken_by_those_who_are_idle_once_that_is_known(scene: Scene) -> None:
    holder_with_cuts(scene)
    scene.take()
    scene.advance(0.01)
    scene.finish("cut-0", seconds=1.0)
    scene.advance(0.2)
    assert {line[:2] for line in scene.take() if "run" in line} > {"a:"}


def test_what_takes_long_already_is_taken_before_any_of_its_kind_has_ended(scene: Scene) -> None:
    holder_with_cuts(scene)
    scene.take()
    scene.advance(1.0)
    assert {line[:2] for line in scene.take() if "run" in line} - {"a:"}
