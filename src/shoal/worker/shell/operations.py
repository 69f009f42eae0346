"""What a worker is asked to do beside its tasks: one row in a table for each call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import msgspec

from shoal.comms.cancellation import is_our_cancellation
from shoal.comms.functions import call_function
from shoal.observe.errors import OperationBlocked
from shoal.protocol.answers import Refusal, answer
from shoal.protocol.exceptions import to_failure
from shoal.protocol.logs import LogLine, RecentLogs
from shoal.protocol.messages import Message
from shoal.protocol.running import Outcome, RunFunction
from shoal.worker.shell import looking, named, plugging
from shoal.worker.shell.context import Host, current_worker

RUN: Final = "run"
"""What calling a function is called by those who block it."""

Say = Callable[[Sequence[msgspec.Struct]], None]
"""Sends messages to whoever has asked; does nothing if they have gone."""

Operation = Callable[[Any, Any], Awaitable[object]]
"""(worker, call) → the value of the answer; whatever it raises becomes the call's refusal."""


class Operations:
    """Answers each call in a task of its own, so that none holds up the loop or another call.

    Calls are begun in the order in which they come; which part of the worker an operation needs,
    it says by the type of its first parameter.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._running: set[asyncio.Task[None]] = set()  # only to keep them alive

    @property
    def nrunning(self) -> int:
        """How many calls are being answered."""
        return len(self._running)

    def begin(self, say: Say, call: Any) -> None:
        """Start to answer `call`, one of `OPERATIONS`, to whom `say` leads."""
        operation = OPERATIONS[type(call)]
        task = asyncio.create_task(self._answer(say, call, operation), name=type(call).__name__)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def close(self) -> None:
        """Give up what is still being answered."""
        for task in list(self._running):
            task.cancel()

    async def _answer(self, say: Say, call: Any, operation: Operation) -> None:
        """Every call ends in one answer or refusal, whatever happens."""
        current_worker.set(self._host)
        address = self._host.address
        reply: Message
        try:
            reply = answer(call.request, await operation(self._host, call))
        except BaseException as error:
            if is_our_cancellation(error):
                raise
            reply = Refusal(call.request, to_failure(error, worker=address))
        try:
            say([reply])
        except Exception as error:  # too large for a frame
            say([Refusal(call.request, to_failure(error, worker=address))])


async def on_run_function(worker: Host, call: RunFunction) -> Outcome:
    """Call a client's function here.

    Raises:
        OperationBlocked: no functions are called here.
    """
    if RUN in worker.blocked_handlers:
        raise OperationBlocked(f"the worker {worker.address}", RUN)
    return await call_function(call.payload, {"dask_worker": worker}, wait=call.wait)


async def on_recent_logs(worker: Host, call: RecentLogs) -> list[LogLine]:
    """The latest lines of our log."""
    latest: list[LogLine] = worker.recent_logs.latest(call.n)
    return latest


OPERATIONS: Final[dict[type[Message], Operation]] = {
    RunFunction: on_run_function,
    RecentLogs: on_recent_logs,
    **looking.OPERATIONS,
    **named.OPERATIONS,
    **plugging.OPERATIONS,
}
"""Call, of the scheduler or of a peer → what answers it."""
