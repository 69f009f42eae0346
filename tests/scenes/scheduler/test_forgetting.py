"""A large graph is let go of: others are not kept waiting until all of it is forgotten."""

import pytest

from tests.scenes.scheduler.scene import Scene

LINKS = 10


@pytest.fixture
def scene() -> Scene:
    """A machine that forgets no more than three tasks at a time, and a chain that has been run."""
    scene = Scene(forgets_max=3)
    scene.workers("a")
    scene.submit(**{f"x{n}": [f"x{n - 1}"] if n else [] for n in range(LINKS)})
    scene.release(*[f"x{n}" for n in range(LINKS - 1)])
    for n in range(LINKS):
        scene.finish(f"x{n}")
    scene.take()
    return scene


def test_results_are_freed_at_once_and_tasks_forgotten_some_at_a_time(scene: Scene) -> None:
    """The last link is let go of, and so the whole chain."""
    assert len(scene.machine.state.tasks) == LINKS
    scene.release("x9")
    assert scene.take() == ["a: free x9"]
    assert len(scene.machine.state.tasks) == LINKS - 3
    assert scene.machine.wake_at == scene.now

    scene.machine.wake(scene.now)
    assert len(scene.machine.state.tasks) == LINKS - 6


def test_time_alone_ends_it(scene: Scene) -> None:
    """Nobody says anything any more."""
    scene.release("x9")
    scene.advance(0.0)
    assert not scene.machine.state.tasks
    assert not scene.machine.state.of_no_use


def test_a_new_task_does_not_find_an_old_one_that_is_about_to_be_forgotten(scene: Scene) -> None:
    """The same keys come again before the old ones have gone."""
    old = scene.task("x0")
    scene.release("x9")
    scene.submit(x0=[], x1=["x0"])
    assert scene.task("x0") is not old
    assert list(scene.machine.state.tasks) == ["x0", "x1"]
    assert scene.take() == ["a: free x9", "a: run x0 #1"]


def held_by_all(scene: Scene) -> list[str]:
    """Eight workers hold x, of which a step frees three copies; who they are."""
    names = [f"w{i}" for i in range(8)]
    scene.workers(*names)
    scene.submit(x=[])
    scene.finish("x", nbytes=1000)
    for name in names:
        scene.holds(name, "x", nbytes=1000)
    scene.take()
    return names


def test_a_result_that_very_many_hold_is_freed_some_copies_at_a_time() -> None:
    """To tell all of them at once would keep the scheduler from everything else."""
    scene = Scene(forgets_max=3)
    names = held_by_all(scene)
    scene.release("x")
    assert len(scene.take()) == 3
    assert scene.state("x") == "memory"
    scene.advance(0.001)
    assert len(scene.take()) == len(names) - 3
    assert scene.state("x") == "forgotten"
    assert not any(worker.has_what for worker in scene.machine.state.workers.values())


def test_a_result_that_is_wanted_again_while_it_is_being_freed_is_computed_anew() -> None:
    """What is left of its copies is freed first, as the new task may be another one."""
    scene = Scene(forgets_max=3)
    names = held_by_all(scene)
    old = scene.task("x")
    scene.release("x")
    scene.submit(x=[])
    assert scene.task("x") is not old
    said = scene.take()
    assert sum("free x" in line for line in said) == len(names)
    assert sum("run x" in line for line in said) == 1


def run_once(scene: Scene, *prefixes: str) -> None:
    """A task of each, one after the other, from its submission to its being forgotten."""
    for prefix in prefixes:
        scene.submit(prefix=prefix, x=[])
        scene.finish("x", seconds=0.25)
        scene.release("x")
        scene.advance(0.0)


def test_of_prefixes_that_rest_those_that_did_so_longest_are_forgotten() -> None:
    """Two may rest.  p is used again, so it is q that goes as r comes."""
    scene = Scene(resting_prefixes_max=2)
    scene.workers("a")
    run_once(scene, "p", "q", "p", "r")
    state = scene.machine.state
    assert list(state.prefixes) == ["p", "r"]
    assert [prefix.nfinished for prefix in state.prefixes.values()] == [2, 1]
    assert state.nfinished == 4


def test_a_program_that_names_each_task_differently_leaves_a_bounded_trace() -> None:
    """A hundred functions come and go."""
    scene = Scene(resting_prefixes_max=10)
    scene.workers("a")
    run_once(scene, *(f"f{n}" for n in range(100)))
    assert len(scene.machine.state.prefixes) == 10


def test_what_was_learnt_of_a_prefix_outlives_its_tasks(scene: Scene) -> None:
    """The same function comes again."""
    run_once(scene, "p")
    assert scene.machine.state.prefixes["p"].duration_us == 250_000


def test_a_prefix_with_tasks_is_never_forgotten() -> None:
    """Nothing may rest here: p stays for its held result, and goes with it."""
    scene = Scene(resting_prefixes_max=0)
    scene.workers("a")
    scene.submit(prefix="p", y=[])
    scene.finish("y")
    run_once(scene, "q")
    assert list(scene.machine.state.prefixes) == ["p"]
    scene.release("y")
    assert not scene.machine.state.prefixes
