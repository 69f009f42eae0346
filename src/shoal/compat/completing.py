"""Coroutines about futures that end, which old programs know by private names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from shoal.client.completing import as_completed
from shoal.client.future import futures_of
from shoal.client.waiting import ALL_COMPLETED, DoneAndNotDone, wait_for


async def wait_for_futures(
    fs: Any, timeout: Any = None, return_when: str = ALL_COMPLETED
) -> DoneAndNotDone:
    """As `wait`, on the loop of the futures' client."""
    futures = futures_of(fs)
    if not futures:
        return DoneAndNotDone(set(), set())
    return await wait_for(futures, timeout, return_when)


async def put_as_completed(fs: Iterable[Any], queue: Any) -> None:
    """Put futures into `queue`, which must not be full, in the order in which they end."""
    completed = as_completed(fs)
    try:
        async for future in completed:
            queue.put_nowait(future)
    finally:
        completed.clear()


async def first_completed(futures: Iterable[Any]) -> Any:
    """The future that ends first.

    Raises:
        ValueError: there is none.
    """
    completed = as_completed(futures)
    try:
        async for future in completed:
            return future
    finally:
        completed.clear()
    raise ValueError("first_completed needs a future at least")
