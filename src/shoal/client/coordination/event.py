"""Events."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any, Self

from shoal.client.coordination.named import (
    Claims,
    Done,
    Named,
    call_for,
    calling_task,
    key_of,
    seconds_of,
)
from shoal.comms import CallTimeoutError
from shoal.observe.inside import RunningTask
from shoal.protocol.coordination import AwaitEvent, EndWait, IsEventSet, SetEvent


class Event(Named):
    """A flag that all clients and tasks of one cluster know by its name, and can wait for.

    It is not set at first, and stays set when whoever has set it goes.  See `Named` for clients,
    tasks and pickling.

    Args:
        name: those of one name are one event; a new name if None.
        client: whom to ask; None: the one that is meant where it is used.
    """

    def __await__(self) -> Generator[Any, Any, Self]:
        """So that it may be made as what has to be awaited."""
        return Done(self).__await__()

    def wait(self, timeout: Any = None) -> Any:
        """Wait until it is set; whether that came to be.

        Args:
            timeout: seconds to wait, or a text such as "10s"; None: no limit.

        Raises:
            OSError: the connection ended.
        """
        seconds = seconds_of(timeout)
        if seconds is not None and seconds <= 0:
            return self.is_set()
        return self._run(self._wait, seconds, calling_task())

    def set(self) -> Any:
        """Set it: whoever waits goes on, and nobody waits any more until it is cleared."""
        return self._ask(SetEvent, is_set=True)

    def clear(self) -> Any:
        """Have it not set any more."""
        return self._ask(SetEvent, is_set=False)

    def is_set(self) -> Any:
        """Whether it is set."""
        return self._ask(IsEventSet)

    async def _wait(self, session: Any, seconds: float | None, task: RunningTask | None) -> bool:
        claim = session.state_of(Claims).new()
        try:
            was_set: bool = await call_for(
                task,
                session,
                lambda request: AwaitEvent(request, self._on_wire, claim, key_of(task)),
                seconds,
            )
        except CallTimeoutError:
            session.say(EndWait(self._on_wire, claim))
            return False
        except asyncio.CancelledError:
            if session.is_open:
                session.say(EndWait(self._on_wire, claim))
            raise
        return was_set
