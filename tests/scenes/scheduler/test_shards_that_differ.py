"""Transfers that give other rows when they are run again, and outputs that turn up meanwhile."""

from shoal.protocol.shuffles import ShardsJoined
from tests.scenes.scheduler.scene import Scene
from tests.scenes.scheduler.shuffling import cut, epoch, submit_shuffle


def begun(scene: Scene) -> None:
    """d, which cut nothing, was lost while it made u0, and so was a with the shards of t0."""
    scene.workers("a", "b", "d")
    submit_shuffle(scene, noutputs=3)
    cut(scene, "t0", nbytes=(1, 1, 1))
    cut(scene, "t1", nbytes=(1, 1, 1))
    assert [scene.run(key)[0].name for key in ("u0", "u1", "u2")] == ["d", "a", "b"]
    scene.unavailable("u2", "t0", lacking=["a"], on="b")
    scene.lose("d")
    scene.lose("a")
    assert scene.state("s") == "waiting"


def test_an_output_that_comes_back_with_its_worker_is_one_that_others_have_to_fit_to(
    scene: Scene,
) -> None:
    """d has made u0 of the first t0, and nobody heard of that before t0 gave other rows."""
    begun(scene)
    scene.join("d", holds={"u0": scene.number("u0")})
    assert scene.state("u0") == "memory"
    scene.take()
    cut(scene, "t0", digest=8, nbytes=(1, 1, 1))
    assert any(line.startswith("c: u1 erred: P2PConsistencyError: ") for line in scene.take())


def test_an_output_that_comes_back_after_rows_have_changed_is_made_again(scene: Scene) -> None:
    """d has made u0 of the first t0; the others are made of the second by now."""
    begun(scene)
    number = scene.number("u0")
    cut(scene, "t0", digest=8, nbytes=(1, 1, 1))
    assert scene.state("s") == "memory"
    worker, task, run = scene.run("u1")
    said = ShardsJoined(task, run, "s", 1, epoch(scene), 100, 2)
    scene.from_worker(worker.name, said)
    scene.finish("u1")
    scene.take()
    scene.join("d", holds={"u0": number})
    assert "d: free u0" in scene.take()
    assert scene.state("u0") != "memory"


def test_an_output_that_comes_back_counts_where_the_same_rows_were_made_again(
    scene: Scene,
) -> None:
    begun(scene)
    number = scene.number("u0")
    cut(scene, "t0", nbytes=(1, 1, 1))
    scene.join("d", holds={"u0": number})
    assert scene.state("u0") == "memory"
