"""Rows of tasks that follow each other go to one worker, so that their results meet there."""

from math import inf

from shoal.protocol.messages import TaskOptions
from tests.scenes.scheduler.scene import Scene

MB = 1_000_000


def leaves(n: int) -> dict[str, list[str]]:
    """So many roots, and pairs of them that are added."""
    roots = {f"x{i:02}": [] for i in range(n)}
    return roots | {f"s{i:02}": [f"x{2 * i:02}", f"x{2 * i + 1:02}"] for i in range(n // 2)}


def placed_on(scene: Scene, name: str) -> list[str]:
    """Keys of what is placed on a worker, sent or not, in their order."""
    return sorted(task.key for task in scene.worker(name).processing)


def test_each_worker_takes_a_row_of_the_roots_that_a_graph_begins_with(scene: Scene) -> None:
    """Eight roots, two workers: each has a half, and is sent what it has slots for."""
    scene.workers("a", "b")
    scene.submit(**leaves(8))
    assert scene.take() == ["a: run x00 #1", "a: run x01 #1", "b: run x04 #1", "b: run x05 #1"]
    assert placed_on(scene, "a") == ["x00", "x01", "x02", "x03"]
    assert placed_on(scene, "b") == ["x04", "x05", "x06", "x07"]


def test_nothing_is_moved_where_neighbours_meet(scene: Scene) -> None:
    """Each pair was computed where it is added."""
    scene.workers("a", "b")
    scene.submit(**leaves(8))
    for key in ("x00", "x04", "x01", "x05", "x02", "x06", "x03", "x07"):
        scene.finish(key, nbytes=MB)
    for key in ("s00", "s02", "s01", "s03"):
        scene.finish(key, nbytes=MB)
    assert [line for line in scene.take() if "from" in line] == []


def test_no_row_is_longer_than_a_workers_share(scene: Scene) -> None:
    """Four roots for four workers: one each, whoever came first."""
    scene.workers("a", "b", "d", "e")
    scene.submit(**leaves(4))
    assert [len(placed_on(scene, name)) for name in "abde"] == [1, 1, 1, 1]


def test_rows_are_shorter_for_tasks_that_take_long() -> None:
    """Of a second each: one after the other, wherever there is room."""
    scene = Scene(known_seconds={"x": 1.0})
    scene.workers("a", "b")
    scene.submit(**leaves(8))
    assert placed_on(scene, "a") == ["x00", "x02"]
    assert scene.state("x04") == "queued"


def test_what_nobody_else_needs_is_taken_one_by_one(scene: Scene) -> None:
    """A map, whose results its client gathers: it stays in the queue, unplaced."""
    scene.workers("a", "b")
    scene.submit(**{f"x{i}": [] for i in range(8)})
    assert scene.take() == ["a: run x0 #1", "a: run x2 #1", "b: run x1 #1", "b: run x3 #1"]
    assert scene.state("x4") == "queued"


def test_small_results_make_no_rows(scene: Scene) -> None:
    """They travel with the news of them, and are wherever they are needed."""
    scene.workers("a", "b")
    scene.submit(x=[])
    scene.finish("x", value=b"1")
    scene.take()
    scene.submit(prefix="x", **leaves(8))
    assert len(scene.take()) == 4
    assert scene.state("x04") == "queued"


def test_what_is_more_urgent_comes_before_the_rest_of_a_row(scene: Scene) -> None:
    """u was submitted last, and overtakes what is placed and not sent."""
    scene.workers("a")
    scene.submit(**leaves(8))
    scene.submit(u=[], options=TaskOptions(priority=1))
    scene.take()
    scene.finish("x00")
    assert scene.take()[-1] == "a: run u #1"


def test_who_has_done_its_row_takes_from_the_end_of_anothers(scene: Scene) -> None:
    """b is through while a has hardly begun; what b takes belongs together, too."""
    scene.workers("a", "b")
    scene.submit(**leaves(12))
    assert placed_on(scene, "a") == [f"x{i:02}" for i in range(6)]
    scene.take()
    for i in range(6, 12):
        scene.finish(f"x{i:02}", nbytes=MB)
    scene.take()
    for i in range(3, 6):
        scene.finish(f"s{i:02}", nbytes=MB)
    stolen = [line for line in scene.take() if line.startswith("b: run x")]
    assert stolen == ["b: run x05 #1", "b: run x04 #1"]


def test_where_no_work_is_moved_nothing_is_placed_before_there_is_room() -> None:
    scene = Scene(moves_work=False)
    scene.workers("a", "b")
    scene.submit(**leaves(8))
    assert [scene.state(f"x{i:02}") for i in range(8)] == ["processing"] * 4 + ["queued"] * 4


def test_with_saturation_inf_all_is_placed_at_once_in_equal_rows() -> None:
    """Upstream's words for it: whatever is ready is processing, and neighbours are together."""
    scene = Scene(worker_saturation=inf)
    scene.workers("a", "b")
    scene.submit(**{f"x{i}": [] for i in range(8)})
    assert placed_on(scene, "a") == ["x0", "x1", "x2", "x3"]
    assert placed_on(scene, "b") == ["x4", "x5", "x6", "x7"]
    assert len(scene.take()) == 4


def test_with_saturation_inf_who_comes_late_takes_what_was_not_sent() -> None:
    scene = Scene(worker_saturation=inf)
    scene.workers("a")
    scene.submit(**{f"x{i}": [] for i in range(8)})
    scene.take()
    scene.join("b")
    assert scene.take() == ["b: run x7 #1", "b: run x6 #1"]
