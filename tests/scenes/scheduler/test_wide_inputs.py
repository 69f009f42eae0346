"""What very many tasks need is copied by ever more workers, and nothing else waits meanwhile."""

import pytest

from shoal.protocol.messages import TaskOptions
from shoal.protocol.placement import TransfersGauged
from tests.scenes.scheduler.scene import Scene

GB = 1_000_000_000


def takers(scene: Scene) -> list[str]:
    """Who is sent something for which x has to come."""
    lines = [line for line in scene.take() if "(x from" in line]
    return sorted({line.partition(":")[0] for line in lines})


def test_a_result_that_all_need_spreads_from_holder_to_holder(scene: Scene) -> None:
    """One worker has it, then two, then four: nobody sends it to more than one at once."""
    names = [f"w{i:02}" for i in range(12)]
    scene.workers(*names)
    scene.submit(x=[])
    scene.finish("x", nbytes=GB)
    scene.submit(**{f"y{i:04}": ["x"] for i in range(4000)})
    first = takers(scene)
    assert len(first) == 1

    for name in first:
        scene.holds(name, "x", nbytes=GB)
    scene.advance(0.1)
    second = takers(scene)
    assert len(set(second) - set(first)) == 2


def test_the_work_on_a_wide_input_spreads_over_all_workers(scene: Scene) -> None:
    """Those who have got it take from its holder's backlog, so that nobody is crowded."""
    names = [f"w{i}" for i in range(4)]
    scene.workers(*names)
    scene.submit(x=[])
    scene.finish("x", nbytes=GB)
    scene.submit(**{f"y{i:03}": ["x"] for i in range(100)})
    for _ in range(8):
        for name in takers(scene):
            scene.holds(name, "x", nbytes=GB)
        scene.advance(1.0)
    assert all(worker.nsent for worker in scene.machine.state.workers.values())


def test_a_hundred_thousand_dependents_are_placed_in_many_steps() -> None:
    """Each step has some milliseconds of work, and what is urgent passes between them."""
    scene = Scene(placements_max=10)
    scene.workers("a")
    scene.submit(x=[])
    scene.submit(**{f"y{i:02}": ["x"] for i in range(35)})
    scene.finish("x", nbytes=GB)
    processing = sum(scene.state(f"y{i:02}") == "processing" for i in range(35))
    assert processing == 10

    scene.submit(u=[], options=TaskOptions(priority=1))
    assert scene.state("u") in ("queued", "processing")
    scene.advance(0.001)
    assert {scene.state(f"y{i:02}") for i in range(35)} == {"processing"}


def test_what_was_put_off_and_is_not_wanted_any_more_is_not_placed() -> None:
    scene = Scene(placements_max=1)
    scene.workers("a")
    scene.submit(x=[])
    scene.submit(y0=["x"], y1=["x"], y2=["x"])
    scene.finish("x", nbytes=GB)
    scene.release("y1", "y2")
    scene.advance(0.001)
    assert [scene.state(key) for key in ("y0", "y1", "y2")] == [
        "processing",
        "forgotten",
        "forgotten",
    ]
    assert not scene.machine.state.unplaced


def test_what_is_on_its_way_is_forgotten_with_the_worker_it_goes_to(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[])
    scene.finish("x", nbytes=GB)
    scene.join("b")
    scene.submit(y=["x"], options=TaskOptions(workers=["b"]))
    assert len(scene.machine.state.ways.moving) == 1
    scene.lose("b")
    assert not scene.machine.state.ways.moving


def test_what_has_arrived_is_on_its_way_no_more(scene: Scene) -> None:
    scene.workers("a", "b")
    scene.submit(x=[], options=TaskOptions(workers=["a"]))
    scene.finish("x", nbytes=GB)
    scene.submit(y=["x"], options=TaskOptions(workers=["b"]))
    scene.holds("b", "x", nbytes=GB)
    assert not scene.machine.state.ways.moving


def test_ways_are_as_fast_as_they_were_measured(scene: Scene) -> None:
    """x is 100 MB; a second away by what is assumed at first, and 50 ms by what was measured."""
    scene.join("a", host="one")
    scene.join("b", host="one")
    scene.submit(x=[], w=[], options=TaskOptions(workers=["a"]))
    scene.finish("x", nbytes=100_000_000)
    scene.take()
    ways = scene.machine.state.ways
    scene.from_worker("b", TransfersGauged(["tcp://a:1", "tcp://gone:1"], [10 * GB, 1], [5.0, 1.0]))
    assert ways.near == pytest.approx(2000, rel=0.02)
    assert ways.far == 100

    scene.submit(y=["x"])
    assert scene.take() == ["b: run y #1 (x from a)"]
