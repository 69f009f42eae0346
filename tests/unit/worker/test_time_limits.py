"""A run that takes longer than it may, or that nobody wants, ends, or its thread is given up."""

import asyncio
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from shoal import RunInterrupted, TaskTimeout
from shoal.protocol.exceptions import from_failure
from shoal.protocol.slots import RunTaskIn
from shoal.worker.model.entities import FAILED, FINISHED, WITHDRAWN, Run, RunEnded
from shoal.worker.shell.execution import Job
from shoal.worker.shell.interruption import OVERDUE, Interruption
from tests.cluster.playing import heard
from tests.unit.worker.fake_scheduler import run
from tests.unit.worker.test_threads import Bench, add

begun, released = threading.Event(), threading.Event()
LONG = 20.0
"""Seconds that no test waits for."""


@pytest.fixture(autouse=True)
def anew() -> Iterator[None]:
    begun.clear()
    released.clear()
    yield
    released.set()


class Limited(Bench):
    """Runs have a limit."""

    def limited(self, function: object, *args: object, seconds: float, number: int = 1) -> Job:
        job = self.job(function, *args, number=number)
        fields = msgspec.structs.asdict(job.run.message)
        return Job(Run(RunTaskIn(**fields, timeout_seconds=seconds)), job.code, [], False)

    async def end_of(self, function: object, *args: object, seconds: float = 0.02) -> RunEnded:
        self.threads.start([self.limited(function, *args, seconds=seconds)])
        return (await self.reported())[0][0]


def with_limits(scene: Callable[[Limited], Awaitable[None]], grace_seconds: float = LONG) -> None:
    async def work() -> None:
        bench = Limited()
        bench.threads._limits._grace_seconds = grace_seconds
        try:
            await scene(bench)
            assert (await bench.outcome(add, 1, 2))[1] == 3  # there is a thread that runs tasks
        finally:
            released.set()
            assert await bench.threads.close(5.0) == 0

    run(work())


def turn() -> None:
    """Python code without end; a limit of steps so that a test that fails ends."""
    begun.set()
    deadline = time.monotonic() + LONG
    while time.monotonic() < deadline:
        pass


def try_for_ever() -> None:
    """What goes wrong is tried again."""
    deadline = time.monotonic() + LONG
    while time.monotonic() < deadline:
        try:
            time.monotonic()
        except Exception:
            continue


def best_so_far() -> int:
    best = 0
    try:
        turn()
    except RunInterrupted:
        best = 7
    return best


def raise_as_it_ends() -> None:
    try:
        turn()
    finally:
        raise ValueError("there is more to clean up")


def stay_in_native_code() -> str:
    begun.set()
    released.wait(LONG)  # which no exception reaches
    return "late"


async def turn_slowly() -> None:
    begun.set()
    await asyncio.sleep(LONG)


def failure_of(end: RunEnded) -> BaseException:
    assert end.how == FAILED
    assert end.failure is not None
    return from_failure(end.failure)


@pytest.mark.parametrize("function", [turn, try_for_ever, turn_slowly])
def test_a_run_that_takes_too_long_is_ended_and_says_so(function: object) -> None:
    async def scene(bench: Limited) -> None:
        error = failure_of(await bench.end_of(function))
        assert isinstance(error, TaskTimeout)
        assert isinstance(error, TimeoutError)
        assert error.is_over
        assert 0.02 <= error.seconds < LONG
        assert "Task 'key-1' took longer than it may: it ran for " in str(error)
        assert "its timeout is 20 ms. It was ended.\nAllow more (timeout= of" in str(error)

    with_limits(scene)


def test_the_traceback_says_where_the_run_was() -> None:
    async def scene(bench: Limited) -> None:
        end = await bench.end_of(turn)
        assert end.failure is not None
        assert "in turn" in end.failure.traceback_text
        assert "execution.py" not in end.failure.traceback_text

    with_limits(scene)


def test_what_a_run_returns_in_spite_of_it_is_its_result() -> None:
    async def scene(bench: Limited) -> None:
        bench.threads.start([bench.limited(best_so_far, seconds=0.02)])
        [(end, value)] = await bench.reported()
        assert (end.how, value) == (FINISHED, 7)

    with_limits(scene)


def test_what_a_run_raises_as_it_ends_is_the_cause_of_its_timeout() -> None:
    async def scene(bench: Limited) -> None:
        error = failure_of(await bench.end_of(raise_as_it_ends))
        assert isinstance(error, TaskTimeout)
        assert isinstance(error.__cause__, ValueError)

    with_limits(scene)


def test_a_run_that_ends_in_time_is_as_any_other() -> None:
    async def scene(bench: Limited) -> None:
        jobs = [bench.limited(add, 1, n, seconds=LONG, number=n + 1) for n in range(5)]
        bench.threads.start(jobs)
        assert [value for _, value in await bench.reported(5)] == [1, 2, 3, 4, 5]
        assert not bench.threads._limits._jobs
        assert not bench.threads._limits._timers

    with_limits(scene)


def test_a_thread_that_does_not_come_back_is_left_behind_with_a_substitute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """And what it gives in the end is nobody's."""

    async def scene(bench: Limited) -> None:
        with heard(), caplog.at_level(logging.WARNING, "shoal.worker"):
            for number in (1, 2):
                job = bench.limited(stay_in_native_code, seconds=0.02, number=number)
                bench.threads.start([job])
                error = failure_of((await bench.reported())[0][0])
                assert isinstance(error, TaskTimeout)
                assert not error.is_over
                assert "and goes on, at File " in str(error)
                assert bench.threads.nexecuting == 0
        left, _, many = [record.getMessage() for record in caplog.records]
        assert "Task 'key-1' was told to end, as its time was over" in left
        assert "1 of this worker are like that." in left
        assert "client.restart_workers(['bench'])" in many
        threads = bench.threads._limits._left_behind
        released.set()
        for thread in threads:
            await asyncio.to_thread(thread.join, 5)
            assert not thread.is_alive()
        assert bench.ended == []

    with_limits(scene, grace_seconds=0.02)


@pytest.mark.parametrize("function", [turn, turn_slowly])
def test_a_run_that_nobody_wants_is_ended_before_its_time(function: object) -> None:
    async def scene(bench: Limited) -> None:
        job = bench.limited(function, seconds=LONG)
        bench.threads.start([job])
        await asyncio.to_thread(begun.wait, 5)
        bench.threads.end([job.run])
        [(end, _)] = await bench.reported()
        assert end.how == WITHDRAWN

    with_limits(scene)


def test_a_run_without_a_limit_is_not_ended() -> None:
    async def scene(bench: Limited) -> None:
        job = bench.job(stay_in_native_code)
        bench.threads.start([job])
        await asyncio.to_thread(begun.wait, 5)
        bench.threads.end([job.run])
        released.set()
        [(end, value)] = await bench.reported()
        assert (end.how, value) == (FINISHED, "late")

    with_limits(scene)


def test_an_interruption_that_comes_as_a_run_ends_strikes_no_other() -> None:
    """Whenever it comes: all runs end as they would, or as interrupted, and none is lost."""

    async def scene(bench: Limited) -> None:
        interrupted = 0
        for number in range(300):
            job = bench.limited(add, number, 1, seconds=LONG, number=2 * number + 1)
            after = bench.job(add, number, 2, number=2 * number + 2)
            bench.threads.start([job, after])
            for _ in range(number % 7):
                time.sleep(0)  # which lets the thread go on
            bench.threads.end([job.run])
            ended = {end.run: (end.how, value) for end, value in await bench.reported(2)}
            assert ended[after.run] == (FINISHED, number + 2)
            assert ended[job.run] in ((FINISHED, number + 1), (WITHDRAWN, None))
            interrupted += ended[job.run][0] == WITHDRAWN
        assert bench.threads.nexecuting == 0

    with_limits(scene)


def test_nothing_is_raised_once_the_thread_has_said_so() -> None:
    def work(interruption: Interruption, interrupts: Callable[[], None]) -> str:
        interruption.begin()
        interruption.close()
        interrupts()
        return "went on"

    with ThreadPoolExecutor(1) as pool:
        interruption = Interruption(1.0)
        told = pool.submit(work, interruption, lambda: interruption.interrupt(OVERDUE))
        assert told.result(5) == "went on"
        assert interruption.why == OVERDUE


def test_a_run_that_is_to_end_before_a_thread_has_begun_it_does_not_begin() -> None:
    interruption = Interruption(1.0)
    interruption.interrupt(OVERDUE)
    with pytest.raises(RunInterrupted):
        interruption.begin()
    interruption.close()
    interruption.close()


@pytest.mark.parametrize("how", ["struck not yet", "left in native code"])
def test_a_profiler_can_be_set_in_a_process_where_a_run_was_interrupted(how: str) -> None:
    """In a process of its own: with Python 3.11 it would go on for ever, and whatever ends it."""
    program = [sys.executable, "-c", PROFILED, how]
    done = subprocess.run(program, capture_output=True, text=True, timeout=30, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("profiled\n", "", 0)


PROFILED = """
import os, sys, threading
from shoal.worker.shell.interruption import OVERDUE, Interruption

interruption = Interruption(1.0)
if sys.argv[1] == "struck not yet":
    interruption.interrupt(OVERDUE)
    try:
        interruption.begin()
    except BaseException:
        interruption.close()
else:
    begun, (reader, writer) = threading.Event(), os.pipe()

    def wait():
        interruption.begin()
        begun.set()
        os.read(reader, 1)

    threading.Thread(target=wait, daemon=True).start()
    begun.wait()
    interruption.interrupt(OVERDUE)
    assert interruption.give_up()
sys.setprofile(lambda *_: None)
len(range(3))
(lambda: None)()
sys.setprofile(None)
print("profiled", flush=True)
os._exit(0)
"""


def test_either_the_thread_or_the_loop_says_how_a_run_has_ended() -> None:
    by_thread, by_loop = Interruption(1.0), Interruption(1.0)
    assert by_thread.may_report()
    assert by_thread.may_report()
    assert not by_thread.give_up()
    assert by_loop.give_up()
    assert not by_loop.may_report()
