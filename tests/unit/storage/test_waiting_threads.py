"""Threads that may be held up: nobody waits for them for ever, and nobody is told twice."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from shoal.storage.waiting_threads import WaitingThreads


def test_work_is_done_so_much_at_once_and_what_it_raises_is_told() -> None:
    async def scene() -> None:
        threads = WaitingThreads("test", 1)
        assert await threads.do(lambda: 7, 10) == 7
        with pytest.raises(ZeroDivisionError):
            await threads.do(lambda: 1 // 0, 10)
        here = threading.current_thread()
        assert await threads.do(threading.current_thread, 10) is not here
        for thread in threads.close():
            await asyncio.to_thread(thread.join, 10)
            assert not thread.is_alive()

    asyncio.run(scene())


def test_what_comes_too_late_is_an_error_and_then_given_to_whoever_tidies_up() -> None:
    async def scene() -> None:
        threads, gate = WaitingThreads("test", 1), threading.Event()
        told: list[Any] = []
        late: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def do() -> str:
            assert gate.wait(10)
            return "a file"

        threads.begin(do, lambda value, error: told.append((value, error)), 0.01, late.set_result)
        with pytest.raises(TimeoutError, match="nothing has come back"):
            await threads.do(lambda: 7, 0.05)  # it is behind the other one
        [(value, error)] = told
        assert value is None
        assert isinstance(error, TimeoutError)
        gate.set()
        assert await asyncio.wait_for(late, 10) == "a file"
        assert len(told) == 1
        threads.close()

    asyncio.run(scene())


def test_what_was_not_begun_is_not_done_after_the_end() -> None:
    async def scene() -> None:
        threads, gate, done = WaitingThreads("test", 1), threading.Event(), list[str]()
        threads.begin(lambda: gate.wait(10), lambda value, error: None)
        threads.begin(lambda: done.append("second"), lambda value, error: None)
        ends = threads.close()
        gate.set()
        for thread in ends:
            await asyncio.to_thread(thread.join, 10)
        assert done == []

    asyncio.run(scene())


def test_whom_the_system_has_no_thread_for_is_told_once_and_the_next_has_one() -> None:
    async def scene() -> None:
        threads, told = WaitingThreads("test", 1), list[Any]()
        usual = threading.stack_size(1 << 47)  # of which there can be none
        try:
            with pytest.raises(RuntimeError):
                threads.begin(lambda: 7, lambda value, error: told.append((value, error)), 0.0)
        finally:
            threading.stack_size(usual)
        assert await threads.do(lambda: 8, 10) == 8
        assert told == []
        threads.close()

    asyncio.run(scene())


def test_what_ends_iterations_is_an_error_like_others() -> None:
    """A future would not take it, and whoever waits would wait for ever."""

    async def scene() -> None:
        threads = WaitingThreads("test", 1)
        with pytest.raises(RuntimeError, match="StopIteration"):
            await asyncio.wait_for(threads.do(lambda: next(iter(())), 10), 10)
        threads.close()

    asyncio.run(scene())


def test_the_thread_that_has_done_something_lets_go_of_what_it_was_done_with() -> None:
    freed_by: list[str] = []

    class Telling:
        def __del__(self) -> None:
            freed_by.append(threading.current_thread().name)

        def __call__(self) -> int:
            return 7

    async def scene() -> None:
        threads = WaitingThreads("test", 2)
        told: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        threads.begin(Telling(), lambda value, error: told.set_result(value))
        assert await told == 7
        threads.close()

    asyncio.run(scene())
    [name] = freed_by
    assert name.startswith("test-")
