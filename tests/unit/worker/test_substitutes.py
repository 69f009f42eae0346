"""A thread whose task waits for other tasks has a substitute, which goes when it is not needed."""

import threading

import pytest

from shoal.ids import CodeId, Key, RunId, TaskId
from shoal.protocol.messages import RunTask
from shoal.worker.model.entities import Run
from shoal.worker.shell.waits import WaitingRuns
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


def test_where_the_system_has_no_threads_left_the_worker_says_so_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def scene(bench: Bench) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            bench.threads.substitute(1)
            bench.threads.substitute(2)
        assert len(caplog.messages) == 1
        assert "can't start more than its 1 threads" in caplog.text
        assert (await bench.outcome(add, 1, 2))[1] == 3
        bench.threads.substitute(2)
        assert len(names_of_threads()) == 3
        bench.threads.substitute(0)

    with_bench(scene)


def test_a_run_that_waits_for_much_at_once_counts_once_and_not_beyond_its_end() -> None:
    one, other = [Run(RunTask(TaskId(n), RunId(n), Key("x"), CodeId(1), 0, 0.0, n)) for n in (1, 2)]
    waiting = WaitingRuns()
    changes = [waiting.count(one, 1, is_executing=True) for _ in range(3)]
    assert (changes, len(waiting)) == ([True, False, False], 1)
    assert waiting.count(other, 1, is_executing=True)
    assert not waiting.count(one, -1, is_executing=True)
    assert waiting.count(other, -1, is_executing=True)
    assert len(waiting) == 1

    assert waiting.end([one, other])
    assert len(waiting) == 0
    assert not waiting.count(one, -1, is_executing=False)  # of a thread that it left behind
    assert not waiting.count(one, 1, is_executing=False)
    assert not waiting.end([one])


def test_a_run_that_has_seceded_is_not_counted_among_those_that_wait() -> None:
    run = Run(RunTask(TaskId(1), RunId(1), Key("x"), CodeId(1), 0, 0.0, 1))
    waiting = WaitingRuns()
    waiting.secede(run)
    assert not waiting.count(run, 1, is_executing=True)
    waiting.secede(run)
    assert (len(waiting), waiting.are_any) == (0, True)
    waiting.rejoin(run)
    assert len(waiting) == 1
    waiting.secede(run)
    assert not waiting.count(run, -1, is_executing=True)
    waiting.rejoin(run)
    assert (len(waiting), waiting.are_any) == (0, False)
    waiting.count(run, 1, is_executing=True)
    waiting.secede(run)
    assert not waiting.end([run])
    assert (len(waiting), waiting.are_any) == (0, False)
