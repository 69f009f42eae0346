"""What takes long and is no coroutine, done by a thread, so that the loop stays responsive."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


async def aside(function: Callable[..., T], *args: Any) -> T:
    """As `asyncio.to_thread`, which waits for ever if `function` raises StopIteration.

    Raises:
        BaseException: what `function` raises; RuntimeError for a StopIteration.
    """
    value, error = await asyncio.to_thread(_tried, function, args)
    if error is not None:
        try:
            raise error
        finally:
            del error  # it holds this frame, which would hold it
    return value


def _tried(function: Callable[..., T], args: tuple[Any, ...]) -> tuple[T, BaseException | None]:
    nothing: Any = None
    try:
        return function(*args), None
    except BaseException as error:
        return nothing, error
