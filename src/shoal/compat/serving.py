"""What modules about processes had: waiting for signals, functions as bytes, failing for good."""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
import signal
from collections.abc import Callable
from typing import Any, Final

from shoal.compat.pickling import dumps

_logger: Final = logging.getLogger("shoal.worker")


def dumps_function(func: Callable[..., Any]) -> bytes:
    """A function as bytes."""
    return dumps(func)


async def wait_for_signals() -> int:
    """Wait for SIGINT or SIGTERM, which have no other effect meanwhile; its number."""
    loop = asyncio.get_running_loop()
    caught: asyncio.Future[int] = loop.create_future()

    def catch(number: int) -> None:
        if not caught.done():
            caught.set_result(number)

    wanted = (signal.SIGINT, signal.SIGTERM)
    for number in wanted:
        loop.add_signal_handler(number, catch, int(number))
    try:
        return await caught
    finally:
        for number in wanted:
            loop.remove_signal_handler(number)


def fail_hard(method: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a method of a worker that must not fail: if it does, the worker closes."""

    def close(worker: Any, error: BaseException) -> None:
        reason = f"worker-{method.__name__}-fail-hard"
        _logger.error("%r closes: %s", worker, reason, exc_info=error)
        worker.log_event("worker-fail-hard", {"reason": reason, "exception": dumps(error)})
        worker.end_soon(reason)

    if inspect.iscoroutinefunction(method):

        @functools.wraps(method)
        async def awaited(self: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return await method(self, *args, **kwargs)
            except Exception as error:
                close(self, error)
                raise

        return awaited

    @functools.wraps(method)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except Exception as error:
            close(self, error)
            raise

    return called
