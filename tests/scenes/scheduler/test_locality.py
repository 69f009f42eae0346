"""Small inputs may travel, but a task that could start beside them at once does."""

from tests.scenes.scheduler.scene import Scene


def test_the_links_of_a_chain_of_small_results_follow_each_other_on_one_worker(
    scene: Scene,
) -> None:
    """b has as much room as a, but nothing is said to it: not even to free what it never had."""
    scene.workers("a", "b")
    scene.submit(x=[], y=["x"], z=["y"], wanted=["z"])
    assert scene.take() == ["a: run x #1"]
    scene.finish("x", value=b"1")
    assert scene.take() == ["a: run y #1"]
    scene.finish("y", value=b"2")
    assert scene.take() == ["a: free x", "a: run z #1"]


def test_a_task_with_small_inputs_does_not_wait_for_their_busy_holder(scene: Scene) -> None:
    """Two tasks need x, which a made: one starts there, the other on b."""
    scene.workers("a", "b")
    scene.submit(x=[], y=["x"], z=["x"], wanted=["y", "z"])
    scene.take()
    scene.finish("x", value=b"1")
    assert scene.take() == ["a: run y #1", "b: run z #1 (x inline)"]
