"""Workers that died as their memory was full: what is held against the task that ran there."""

from shoal.protocol.exceptions import from_failure
from tests.scenes.scheduler.scene import Scene
from tests.scenes.scheduler.test_memory import GIB, gauge


def test_a_death_with_results_of_others_beside_is_not_held_against_a_task(scene: Scene) -> None:
    """It took 0.9 GiB and there was 1 GiB of another's; four more deaths are too many as ever."""
    scene.join("a", nthreads=1, memory_limit=2 * GIB)
    scene.submit(kept=[])
    scene.finish("kept", nbytes=1 * GIB)
    scene.submit(x=[])
    gauge(scene, "x", nbytes=0.9 * GIB)
    for _ in range(4):
        scene.lose("a")
        scene.release("kept")
        scene.join("a", nthreads=1, memory_limit=2 * GIB)
        assert scene.state("x") == "processing"
    over = scene.machine.state.footprints.overfilled[scene.task("x")]
    assert (over.nbeside, over.nalone) == (1, 0)
    scene.lose("a")
    failure = scene.task("x").failure
    assert failure is not None
    error = str(from_failure(failure))
    assert "5 died as they ran it" in error
    assert "The memory of 1 of them was full:\n" in error
