"""Clients want, let go, cancel and die; each speaks for itself alone."""

from shoal.protocol.messages import TaskOptions
from tests.scenes.scheduler.scene import Scene


def test_a_late_release_does_not_touch_a_newer_want(scene: Scene) -> None:
    """The client submits x twice and lets go of the first future only, after that."""
    scene.workers("a")
    scene.submit(x=[])
    scene.submit(x=[])
    scene.release("x", nth=1)
    assert scene.take() == ["a: run x #1"]
    assert scene.state("x") == "processing"

    scene.finish("x")
    assert scene.take() == ["c: x in memory at a"]


def test_a_release_said_twice_counts_once(scene: Scene) -> None:
    """Two clients want x; one of them says twice that it doesn't."""
    scene.workers("a")
    scene.submit(x=[])
    scene.want("x", client="d")
    scene.release("x")
    scene.release("x")
    assert scene.take() == ["a: run x #1"]
    assert scene.state("x") == "processing"


def test_what_nobody_wants_any_more_is_recalled(scene: Scene) -> None:
    """x is with a, y is in the queue, and both are let go of."""
    scene.workers("a")
    scene.submit(w=[], x=[], y=[])
    scene.release("x", "y")
    assert scene.take() == ["a: run w #1", "a: run x #1", "a: recall x #1"]
    assert scene.state("x") == scene.state("y") == "forgotten"


def test_a_result_that_nobody_wants_any_more_is_freed(scene: Scene) -> None:
    """On every worker that has a copy."""
    scene.workers("a", "b")
    scene.submit(x=[])
    scene.finish("x")
    scene.holds("b", "x")
    scene.take()

    scene.release("x")
    assert scene.take() == ["a: free x", "b: free x"]


def test_an_input_is_kept_until_its_last_dependent_has_used_it(scene: Scene) -> None:
    """x is let go of by the client, but y and z still need it."""
    scene.workers("a")
    scene.submit(x=[], y=["x"], z=["x"])
    scene.release("x")
    scene.finish("x")
    scene.finish("y")
    assert scene.take() == [
        "a: run x #1",
        "a: run y #1",
        "a: run z #1",
        "c: y in memory at a",
    ]

    scene.finish("z")
    assert scene.take() == ["c: z in memory at a", "a: free x"]


def test_cancel_ends_a_task_and_what_depends_on_it(scene: Scene) -> None:
    """x runs, y waits for it, z waits for y."""
    scene.workers("a")
    scene.submit(x=[], y=["x"], z=["y"])
    scene.cancel("x", reason="not needed")
    assert sorted(scene.take()) == [
        "a: recall x #1",
        "a: run x #1",
        "c: x cancelled: not needed",
        "c: y cancelled: not needed",
        "c: z cancelled: not needed",
    ]
    assert scene.state("x") == scene.state("y") == scene.state("z") == "forgotten"


def test_cancel_keeps_what_another_client_wants(scene: Scene) -> None:
    """d wants y, which needs x: both go on.  z was wanted by c only."""
    scene.workers("a")
    scene.submit(x=[], y=["x"], z=["x"])
    scene.want("y", client="d")
    scene.take()

    scene.cancel("x")
    assert sorted(scene.take()) == ["c: x cancelled: ", "c: y cancelled: ", "c: z cancelled: "]
    assert scene.state("z") == "forgotten"

    scene.finish("x")
    scene.finish("y")
    assert scene.take() == ["a: run y #1", "d: y in memory at a", "a: free x"]


def test_forced_cancel_ends_it_for_everybody(scene: Scene) -> None:
    """c cancels what d wants as well."""
    scene.workers("a")
    scene.submit(x=[])
    scene.want("x", client="d")
    scene.take()

    scene.cancel("x", force=True, reason="stop")
    assert scene.take() == ["c: x cancelled: stop", "d: x cancelled: stop", "a: recall x #1"]


def test_cancel_of_a_finished_task_frees_it(scene: Scene) -> None:
    """A result can be cancelled as well as a run, a failure too."""
    scene.workers("a")
    scene.submit(x=[], y=[])
    scene.finish("x")
    scene.fail("y")
    scene.take()

    scene.cancel("x", "y")
    assert scene.take() == ["c: y cancelled: ", "c: x cancelled: ", "a: free x"]
    assert scene.state("x") == scene.state("y") == "forgotten"


def test_cancel_of_what_is_not_wanted_is_no_news(scene: Scene) -> None:
    """The future was released just before."""
    scene.workers("a")
    scene.submit(x=[])
    scene.release("x")
    scene.take()

    scene.cancel("x")
    assert scene.take() == []


def test_a_want_by_name_of_what_is_not_known_is_answered(scene: Scene) -> None:
    """There is no x, and there will be no answer but this."""
    scene.want("x")
    assert scene.take() == ["c: x cancelled: unknown"]


def test_a_want_by_name_starts_what_was_released(scene: Scene) -> None:
    """x was needed for y only, so it was freed; d wants it now."""
    scene.workers("a")
    scene.submit(x=[], y=["x"], wanted=["y"])
    scene.finish("x")
    scene.finish("y")
    scene.take()
    assert scene.state("x") == "released"

    scene.want("x", client="d")
    assert scene.take() == ["a: run x #2"]


def test_a_known_key_keeps_its_first_run_spec(scene: Scene) -> None:
    """d submits another x, with another function and an input: it gets c's."""
    scene.workers("a")
    scene.shows_codes = True
    scene.submit(x=[], code="f")
    scene.submit(w=[], x=["w"], client="d", code="g", wanted=["x"])
    assert scene.take() == ["a: code f", "a: run x #1"]
    assert scene.state("w") == "forgotten"

    scene.finish("x")
    assert scene.take() == ["c: x in memory at a", "d: x in memory at a"]


def test_nothing_is_left_of_a_client_that_died(scene: Scene) -> None:
    """It wanted a result, a run, a queued task and a failure; d wants one of them too."""
    scene.workers("a")
    scene.submit(p=[], q=[], r=[], s=[], t=[])
    scene.finish("p")
    scene.fail("q")
    scene.want("s", client="d")
    scene.take()

    scene.lose_client("c")
    assert scene.take() == ["a: recall r #1", "a: free p"]
    assert {key: scene.state(key) for key in "pqrst"} == {
        "p": "forgotten",
        "q": "forgotten",
        "r": "forgotten",
        "s": "processing",
        "t": "forgotten",
    }


def test_a_client_that_died_is_not_heard_any_more(scene: Scene) -> None:
    """What was still under way from it comes too late."""
    scene.workers("a")
    scene.submit(x=[])
    scene.lose_client()
    scene.take()

    scene.submit(y=[])
    scene.lose_client()
    assert scene.take() == []
    assert scene.state("y") == "forgotten"


def test_what_is_cancelled_again_and_again_before_it_runs_leaves_nothing(scene: Scene) -> None:
    """Without a worker, and on a busy one: neither the queue nor the backlog grows."""
    for n in range(2_000):
        scene.submit(**{f"x{n}": []})
        scene.release(f"x{n}")
    assert scene.machine.state.queue.nentries < 300
    scene.workers("a")
    pinned = TaskOptions(workers=["a"])
    for n in range(2_000):
        scene.submit(options=pinned, **{f"y{n}": []})
        if n > 2:
            scene.release(f"y{n}")
    assert len(scene.worker("a").backlog) < 600
