"""Calling a function that a client sent, beside the tasks: `client.run` and its kin."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from typing import Any

from shoal.comms.cancellation import is_our_cancellation
from shoal.protocol import payload
from shoal.protocol.exceptions import to_failure
from shoal.protocol.payload import dump_function
from shoal.protocol.running import Outcome

_running: set[asyncio.Task[Any]] = set()  # coroutines that nobody waits for; kept alive until done


async def call_function(
    pickled: bytes, offered: Mapping[str, Any], *, wait: bool = True
) -> Outcome:
    """Call a pickled (function, args, kwargs); whatever it raises becomes the outcome.

    Args:
        offered: keyword arguments that are passed if the function has a parameter of that name.
        wait: False starts a coroutine function and does not wait for its end.

    It runs on the event loop, as functions given to `client.run` expect; one that blocks holds up
    the whole service.
    """
    try:
        function, args, kwargs = _load(pickled)
        accepted = _parameters(function)
        kwargs = {name: x for name, x in offered.items() if name in accepted} | kwargs
        result = function(*args, **kwargs)
        if inspect.isawaitable(result):
            if not wait:
                task = asyncio.ensure_future(result)
                _running.add(task)
                task.add_done_callback(_running.discard)
                return Outcome(dump_function(None))
            result = await result
        return Outcome(dump_function(result))
    except BaseException as error:
        if is_our_cancellation(error):
            raise
        return Outcome(failure=to_failure(error))


def _load(pickled: bytes) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    loaded: Any = payload.load(pickled)
    function, args, kwargs = loaded
    return function, args, kwargs


def _parameters(function: Any) -> Mapping[str, Any]:
    """The function's parameters by name; none for built-in ones that don't tell."""
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}
