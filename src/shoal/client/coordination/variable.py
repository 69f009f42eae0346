"""Variables."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any, Self

from shoal.client.coordination.errors import NothingCame
from shoal.client.coordination.named import (
    WAIT_SECONDS_MIN,
    Claims,
    Done,
    Named,
    call_for,
    calling_task,
    connected,
    key_of,
    seconds_of,
)
from shoal.client.coordination.values import Packed, hear_of_futures, unpack
from shoal.comms import CallTimeoutError
from shoal.observe.inside import RunningTask
from shoal.protocol.coordination import (
    DeleteVariable,
    EndGet,
    GetVariable,
    SetVariable,
    SharedValue,
)


class Variable(Named):
    """One value that all clients and tasks of a cluster know by its name, and can replace.

    The value is a small thing that can be pickled, which the scheduler keeps, or futures at any
    depth, whose results are kept with it.  It outlives whoever set it.  See `Named` for clients,
    tasks and pickling.

    Args:
        name: those of one name are one variable; a new name if None.
        client: whom to ask; None: the one that is meant where it is used.
    """

    def __await__(self) -> Generator[Any, Any, Self]:
        """So that it may be made as what has to be awaited."""
        return Done(self).__await__()

    def set(self, value: Any, timeout: Any = "30 s", **kwargs: Any) -> Any:
        """Give it a value, in place of the one that it has.

        Args:
            timeout: seconds to wait until the scheduler has it, or a text; None: no limit.

        Raises:
            TimeoutError: the scheduler did not answer in time.
            ValueError: the value is too large to be kept by the scheduler.
            Exception: the value can't be pickled.
            OSError: the connection ended.
        """
        packed = Packed(f"variable {self.name!r}", value)
        return self._run(self._set, packed, seconds_of(timeout))

    def get(self, timeout: Any = None, **kwargs: Any) -> Any:
        """Its value; waits for the first one.

        Args:
            timeout: seconds to wait, or a text such as "10s"; None: no limit.

        Raises:
            TimeoutError: it was given none in time.
            OSError: the connection ended.
        """
        client = self._face
        work = self._look(client, seconds_of(timeout), calling_task())
        if client.asynchronous:
            return self._received(client, work)
        claim, held = client.sync(lambda: work)
        value = self._unpack(client, claim, held)
        if held.has_futures:
            client.sync(hear_of_futures, client.session)
        return value

    def delete(self) -> Any:
        """It has no value any more, and keeps no results."""
        return self._say(DeleteVariable(self._on_wire))

    async def _set(self, session: Any, packed: Packed, seconds: float | None) -> None:
        await session.call(
            lambda request: SetVariable(request, self._on_wire, packed.pieces, packed.keys),
            timeout_seconds=seconds,
        )

    async def _look(
        self, client: Any, seconds: float | None, task: RunningTask | None
    ) -> tuple[int, SharedValue]:
        """The claim, and what the variable holds."""
        session = await connected(client)
        claim = session.state_of(Claims).new()
        if seconds is not None:
            seconds = max(seconds, WAIT_SECONDS_MIN)

        def make(request: int) -> GetVariable:
            return GetVariable(request, self._on_wire, claim, key_of(task))

        try:
            return claim, await call_for(task, session, make, seconds)
        except CallTimeoutError:
            session.say(EndGet(self._on_wire, claim))
            assert seconds is not None
            raise NothingCame(f"value of the variable {self.name!r}", seconds) from None
        except asyncio.CancelledError:
            if session.is_open:
                session.say(EndGet(self._on_wire, claim))
            raise

    async def _received(self, client: Any, work: Any) -> Any:
        claim, held = await work
        value = self._unpack(client, claim, held)
        if held.has_futures:
            await hear_of_futures(client.session)
        return value

    def _unpack(self, client: Any, claim: int, held: SharedValue) -> Any:
        """The value; of its futures the scheduler is told that they are wanted here."""
        try:
            return unpack(client, held.value)
        finally:
            if held.has_futures:
                client.session.say(EndGet(self._on_wire, claim))
