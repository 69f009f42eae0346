"""The loops of blocking clients do what libraries hand them."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from shoal.client.loops import new_loop

TIMEOUT_SECONDS = 10


@pytest.fixture
def loop() -> Iterator[Any]:
    """A loop that a thread runs."""
    loop = new_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def test_a_callback_is_called_on_the_loop(loop: Any) -> None:
    called = threading.Event()
    found: list[object] = []

    def callback(number: int, *, name: str) -> None:
        found.extend((asyncio.get_running_loop(), number, name))
        called.set()

    loop.add_callback(callback, 3, name="x")
    assert called.wait(TIMEOUT_SECONDS)
    assert found == [loop, 3, "x"]


def test_what_a_callback_returns_is_awaited(loop: Any) -> None:
    ended = threading.Event()

    async def callback() -> None:
        await asyncio.sleep(0)
        ended.set()

    loop.add_callback(callback)
    assert ended.wait(TIMEOUT_SECONDS)


def test_what_a_callback_raises_is_told_and_the_loop_goes_on(loop: Any) -> None:
    told: list[BaseException] = []
    ended = threading.Event()
    loop.call_soon_threadsafe(
        loop.set_exception_handler, lambda _, context: told.append(context["exception"])
    )

    def callback() -> None:
        raise ValueError("no")

    loop.add_callback(callback)
    loop.add_callback(ended.set)
    assert ended.wait(TIMEOUT_SECONDS)
    assert [str(error) for error in told] == ["no"]
