"""What is held for a while and let go of, as a lock is: claims to it, and `with`."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from itertools import count
from types import TracebackType
from typing import Any, ClassVar, Self

from dask.utils import parse_timedelta

from shoal.client.coordination.errors import NotAwaited, NotHeld
from shoal.client.coordination.named import Named, done
from shoal.comms import CallTimeoutError
from shoal.errors import ShoalError
from shoal.protocol.messages import Message


class Claims:
    """The numbers of a session's claims, to whatever it is; each is used once."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def new(self) -> int:
        """A number; from any thread."""
        return next(self._numbers)


class Claimed(Named, ABC):
    """Whoever holds it loses it with its connection, so a worker that dies leaves nothing held.

    `with` holds it for a block; with an asynchronous client it is `async with`.
    """

    _not_held: ClassVar[type[ShoalError]] = NotHeld

    def __init__(self, name: str | None = None, client: Any = None) -> None:
        super().__init__(name, client)
        self._held: deque[tuple[Any, int]] = deque()  # (session, claim), the oldest first

    @abstractmethod
    def acquire(self) -> Any:
        """Hold it, waiting for as long as need be."""

    @abstractmethod
    def _acquiring(self, request: int, claim: int, waits: bool) -> Message:
        """The call that `claim` begins with; its answer is whether it was granted."""

    @abstractmethod
    def _releasing(self, claim: int) -> Message:
        """What ends `claim`, whether it was granted or not."""

    def _claim(self, *, waits: bool = True, timeout: Any = None) -> Any:
        """Hold it; whether that came to be.  `timeout`: seconds or a text; None: no limit."""
        seconds = None if timeout is None else parse_timedelta(timeout)
        return self._run(self._acquire, waits, seconds)

    async def _acquire(self, session: Any, waits: bool, seconds: float | None) -> bool:
        claim = session.state_of(Claims).new()
        try:
            granted: bool = await session.call(
                lambda request: self._acquiring(request, claim, waits), timeout_seconds=seconds
            )
        except CallTimeoutError:
            session.say(self._releasing(claim))
            return False
        except asyncio.CancelledError:
            if session.status == "running":
                session.say(self._releasing(claim))
            raise
        if granted:
            self._held.append((session, claim))
        return granted

    def release(self) -> Any:
        """Let go of it.

        Raises:
            NotHeld: this object does not hold it (a RuntimeError).
        """
        try:
            session, claim = self._held.popleft()
        except IndexError:
            raise self._not_held(type(self).__name__, self.name) from None
        if session.status == "running":  # else it was let go of as the connection ended
            session.say(self._releasing(claim))
        return done() if self.client.asynchronous else None

    def __enter__(self) -> Self:
        if self.client.asynchronous:
            raise NotAwaited(type(self).__name__, self.name)
        self.acquire()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    async def __aenter__(self) -> Self:
        if self.client.asynchronous:
            await self.acquire()
        else:  # a blocking client serves a coroutine elsewhere
            await asyncio.to_thread(self.acquire)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        released = self.release()
        if released is not None:
            await released
