"""A thread whose task waits for other tasks has a substitute, which goes when it is not needed."""

import threading

from tests.unit.worker.test_threads import Bench, add, with_bench

before, behind = threading.Event(), threading.Event()


def stop_here() -> str:
    """A task that waits until another lets it go on."""
    before.set()
    return "went on" if behind.wait(10) else "was left alone"


def let_it_go_on() -> None:
    """A task that the first one waits for."""
    behind.set()


def names_of_threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("shoal-worker-bench-thread")]


def test_a_substitute_runs_what_the_waiting_task_waits_for_and_then_goes() -> None:
    """One thread, which is held up; what lets it go on is queued behind it."""
    before.clear()
    behind.clear()

    async def scene(bench: Bench) -> None:
        bench.threads.start([bench.job(stop_here, number=1), bench.job(let_it_go_on, number=2)])
        assert before.wait(5)
        assert not behind.is_set()
        bench.threads.substitute(1)
        values = {value for _, value in await bench.reported(2)}
        assert values == {None, "went on"}

        assert len(names_of_threads()) == 2
        bench.threads.substitute(0)
        assert (await bench.outcome(add, 1, 2))[1] == 3
        for thread in [t for t in threading.enumerate() if t.name in names_of_threads()]:
            thread.join(0.2)
        assert len(names_of_threads()) == 1

    with_bench(scene)


def test_there_are_never_more_threads_than_are_wanted_in_the_end() -> None:
    """Up and down, before those that are too many had the time to go."""

    async def scene(bench: Bench) -> None:
        for nwaiting in (3, 0, 2, 1, 5, 0, 4, 0, 1, 0):
            bench.threads.substitute(nwaiting)
        bench.threads.start([bench.job(add, n, 1, number=n + 1) for n in range(20)])
        assert sorted(value for _, value in await bench.reported(20)) == list(range(1, 21))
        for thread in [t for t in threading.enumerate() if t.name in names_of_threads()]:
            thread.join(0.2)
        assert len(names_of_threads()) == 2

    with_bench(scene, nthreads=2)
