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


def sources(scene: Scene) -> dict[str, str]:
    """Who is sent something for which a result has to come -> whom it shall ask first."""
    lines = [line for line in scene.take() if " from " in line]
    return {line.partition(":")[0]: line.split()[-1].strip(")").split(",")[0] for line in lines}


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


def test_copies_double_each_time_and_no_holder_sends_two_at_once(scene: Scene) -> None:
    """When a copy arrives, who sent it and who got it are named to one worker each."""
    scene.workers(*(f"w{i:02}" for i in range(20)))
    scene.submit(x=[])
    scene.finish("x", nbytes=GB)
    scene.submit(**{f"y{i:04}": ["x"] for i in range(4000)})
    coming = sources(scene)
    for ncopies in (1, 2, 4, 8):
        assert len(coming) == ncopies
        assert len(set(coming.values())) == ncopies
        for name in coming:
            scene.holds(name, "x", nbytes=GB)
        coming = sources(scene)


def test_who_has_others_to_send_is_not_asked_first(scene: Scene) -> None:
    """a holds x and z and sends x to c; so d gets z from b, which came later."""
    scene.workers("a", "b", "c", "d")
    scene.submit(x=[], z=[], options=TaskOptions(workers=["a"]))
    scene.finish("x", "z", nbytes=GB)
    scene.holds("b", "z", nbytes=GB)
    scene.submit(y=["x"], options=TaskOptions(workers=["c"]))
    scene.submit(v=["z"], u=["z"], options=TaskOptions(workers=["d"]))
    assert sources(scene) == {"c": "a", "d": "b"}
    assert [worker.name for worker in scene.machine.state.ways.sending] == ["a", "b"]


def test_what_two_tasks_wait_for_comes_until_neither_does(scene: Scene) -> None:
    scene.workers("a", "b")
    scene.submit(x=[], options=TaskOptions(workers=["a"]))
    scene.finish("x", nbytes=GB)
    scene.submit(y=["x"], z=["x"], options=TaskOptions(workers=["b"]))
    ways = scene.machine.state.ways
    scene.release("y")
    assert len(ways.moving) == 1
    scene.release("z")
    assert not ways.moving
    assert not ways.sending


def test_a_small_part_of_a_task_may_be_waited_for_in_line(scene: Scene) -> None:
    """x takes 10 ms to be moved, its users a second: six workers may have it sent by one."""
    scene.workers("a")
    scene.submit(x=[])
    scene.finish("x", nbytes=1_000_000)
    scene.submit(y=["x"])
    scene.finish("y", seconds=1.0)
    scene.submit(**{f"y{i:02}": ["x"] for i in range(40)})
    scene.take()
    scene.workers(*(f"b{i}" for i in range(6)))
    assert len(takers(scene)) == 6


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


def test_tasks_with_many_inputs_are_placed_in_smaller_portions() -> None:
    """As each input is looked at, ten tasks of four inputs are as much work as forty."""
    scene = Scene(placements_max=20)
    scene.workers("a")
    scene.submit(r=[], x0=[], x1=[], x2=[], x3=[])
    scene.submit(**{f"y{i}": ["x0", "x1", "x2", "x3"] for i in range(10)})
    for key in ("r", "x0", "x1", "x2", "x3"):
        scene.finish(key, nbytes=GB)
    processing = [scene.state(f"y{i}") for i in range(10)].count("processing")
    assert processing == 5
    scene.advance(0.001)
    assert [scene.state(f"y{i}") for i in range(10)] == ["processing"] * 10


def test_tasks_whose_inputs_many_hold_are_placed_in_smaller_portions() -> None:
    """Seventeen holders are weighed for three inputs: twelve times the work of one for one."""
    scene = Scene(placements_max=24)
    names = [f"w{i}" for i in range(8)]
    scene.workers(*names)
    scene.submit(x0=[], x1=[], r=[])
    scene.submit(**{f"y{i}": ["x0", "x1", "r"] for i in range(10)})
    for key in ("x0", "x1"):
        scene.finish(key, nbytes=GB)
        for name in names:
            scene.holds(name, key, nbytes=GB)
    scene.finish("r", nbytes=GB)
    assert [scene.state(f"y{i}") for i in range(10)].count("processing") == 2
    for _ in range(4):
        scene.advance(0.001)
    assert [scene.state(f"y{i}") for i in range(10)] == ["processing"] * 10


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
