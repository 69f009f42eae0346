"""What a function says of a scheduler, told over a comm at an interval."""

from __future__ import annotations

import asyncio
from typing import Any

from dask.utils import parse_timedelta

from shoal.comms.errors import CommClosedError
from shoal.compat.raising import error_message
from shoal.observe.status import Status
from shoal.protocol.payload import load


async def feed(
    scheduler: Any, comm: Any, function: Any, setup: Any, teardown: Any, interval: Any
) -> Status:
    """See `Scheduler.feed`."""
    seconds = parse_timedelta(interval, default="s")
    say, begin, end = map(_opened, (function, setup, teardown))
    state = (begin(scheduler),) if begin is not None else ()
    ended = asyncio.ensure_future(comm.read())  # nothing is expected but that
    try:
        while not ended.done():
            await comm.write(say(scheduler, *state))
            await asyncio.wait([ended], timeout=seconds)
    except CommClosedError:
        pass  # whoever asked has gone
    except Exception as error:  # told before we stop to read, which ends the comm
        await comm.write(error_message(error, status="uncaught-error"))
    finally:
        try:
            if end is not None:
                end(scheduler, *state)
        finally:
            ended.cancel()
            await asyncio.gather(ended, return_exceptions=True)
    return Status.dont_reply


def _opened(function: Any) -> Any:
    return load(function) if isinstance(function, bytes) else function
