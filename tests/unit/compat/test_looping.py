"""Loops as old programs ask for them: whose they are, who waits, and what runs beside them."""

import asyncio
import contextvars
import gc
import threading
from typing import Any

import pytest
from dask.context import thread_state

from shoal.compat import looping


class Holder(looping.SyncMethodMixin):
    """Has a loop."""

    def __init__(self, loop: object) -> None:
        self.loop = loop

    async def twice(self, x: int) -> int:
        await asyncio.sleep(0)
        return 2 * x


def test_a_runner_has_a_loop_while_it_is_started() -> None:
    runner = looping.LoopRunner()
    assert not runner.is_started()
    assert runner.loop is None
    runner.start()
    runner.start()
    holder = Holder(runner.loop)
    assert holder.sync(holder.twice, 2) == 4
    assert not holder.asynchronous
    loop, other = runner.loop, looping.LoopRunner()
    other.start()
    runner.stop()
    assert not runner.is_started()
    assert loop.is_running()
    other.stop()
    assert loop.is_closed()


def test_a_runner_starts_for_one_call_and_stops() -> None:
    runner = looping.LoopRunner()

    async def where() -> str:
        return threading.current_thread().name

    assert runner.run_sync(where) == "shoal-client-loop"
    assert not runner.is_started()


def test_on_its_loop_an_object_is_asynchronous() -> None:
    async def use() -> None:
        runner = looping.LoopRunner(asynchronous=True)
        holder = Holder(runner.loop)
        assert holder.asynchronous
        assert await holder.sync(holder.twice, 3) == 6
        with pytest.raises(TimeoutError):
            await holder.sync(asyncio.sleep, 10, callback_timeout="10ms")

    asyncio.run(use())
    with pytest.raises(RuntimeError):
        looping.LoopRunner(asynchronous=True)


def test_a_call_beside_the_loop_sees_the_callers_context() -> None:
    word = contextvars.ContextVar("word", default="none")

    async def use() -> tuple[str, bool]:
        word.set("some")
        there = await looping.offload(threading.get_ident)
        return await looping.offload(word.get), there != threading.get_ident()

    assert asyncio.run(use()) == ("some", True)


def test_all_and_any_wait_and_raise() -> None:
    async def give(x: int, event: asyncio.Event | None = None) -> int:
        if event is not None:
            await event.wait()
        return x

    async def fail() -> int:
        raise ValueError("no")

    async def use() -> None:
        assert await looping.All([give(1), give(2)]) == [1, 2]
        assert await looping.Any_([give(1), give(2, asyncio.Event())]) == [1, None]
        with pytest.raises(ValueError, match="no"):
            await looping.All([give(1, asyncio.Event()), fail()])

    asyncio.run(use())


def test_an_event_can_be_made_where_no_loop_is() -> None:
    event = looping.LateLoopEvent()
    assert not event.is_set()

    async def use() -> None:
        waiting = asyncio.create_task(event.wait())
        await asyncio.sleep(0)
        event.set()
        assert await waiting
        event.clear()
        assert not event.is_set()

    asyncio.run(use())


def test_what_does_nothing_can_be_entered_and_awaited() -> None:
    async def use() -> None:
        async with looping.empty_context:
            await looping.NoOpAwaitable()
        with looping.empty_context:
            pass

    asyncio.run(use())


def test_the_state_of_a_thread_is_set_for_a_block() -> None:
    assert not hasattr(thread_state, "shoal_test")
    with looping.set_thread_state(shoal_test=1):
        with looping.set_thread_state(shoal_test=2):
            assert thread_state.shoal_test == 2
        assert thread_state.shoal_test == 1
    assert not hasattr(thread_state, "shoal_test")


@pytest.mark.parametrize(("quiet", "nlogged"), [((), 1), (ValueError, 0)])
def test_those_that_fail_beside_the_first_are_logged_unless_they_are_quiet(
    caplog: pytest.LogCaptureFixture, quiet: Any, nlogged: int
) -> None:
    async def fail(x: int) -> int:
        raise ValueError(x)

    async def use() -> None:
        for together in (looping.All, looping.Any_):
            with pytest.raises(ValueError, match="1"):
                await together([fail(1), fail(2)], quiet_exceptions=quiet)
        gc.collect()

    asyncio.run(use())
    gc.collect()
    assert len(caplog.records) == nlogged
