"""What is held for a while and let go of, as a lock is: claims to it, and `with`."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, ClassVar, Self

from shoal.client.coordination.errors import NotAwaited, NotHeld
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
from shoal.errors import ShoalError
from shoal.observe.inside import RunningTask
from shoal.protocol.messages import Message


class Claimed(Named, ABC):
    """Whoever holds it loses it with its connection, so a worker that dies leaves nothing held.

    `with` holds it for a block; with an asynchronous client it is `async with`.
    """

    _not_held: ClassVar[type[ShoalError]] = NotHeld

    def __init__(self, name: Any = None, client: Any = None) -> None:
        super().__init__(name, client)
        self._held: list[tuple[Any, int, str]] = []  # (session, claim, for which task), in order

    @abstractmethod
    def acquire(self) -> Any:
        """Hold it, waiting for as long as need be."""

    @abstractmethod
    def _acquiring(self, session: Any, claim: int, waits: bool, by: str) -> Any:
        """From the number of a request, the call that `claim` begins with; its answer is whether
        it was granted."""

    def _whole(self) -> tuple[Any, ...]:
        """What `_acquiring` takes after its own, to hold all that there is."""
        return ()

    @abstractmethod
    def _releasing(self, claim: int) -> Message:
        """What ends `claim`, whether it was granted or not."""

    def _claim(
        self,
        *args: Any,
        waits: bool = True,
        timeout: Any = None,
        asynchronous: bool | None = None,
    ) -> Any:
        """Hold it; whether that came to be.

        Args:
            args: for `_acquiring`, after its own.
            timeout: seconds or a text; None: no limit.
            asynchronous: whether to return something to be awaited; None: as the client does.
        """
        seconds = seconds_of(timeout)
        if seconds is not None and seconds <= 0:
            waits, seconds = False, None
        task = calling_task()
        return self._run(self._acquire, waits, seconds, task, *args, asynchronous=asynchronous)

    async def _acquire(
        self, session: Any, waits: bool, seconds: float | None, task: RunningTask | None, *args: Any
    ) -> bool:
        claim = session.state_of(Claims).new()
        make = self._acquiring(session, claim, waits, key_of(task), *args)
        try:
            granted: bool = await call_for(task, session, make, seconds)
        except CallTimeoutError:
            session.say(self._releasing(claim))
            return False
        except asyncio.CancelledError:
            if session.is_open:
                session.say(self._releasing(claim))
            raise
        if granted:
            self._held.append((session, claim, key_of(task)))
        return granted

    def release(self) -> Any:
        """Let go of it; True.

        Tasks that share this object, as those of one `map` do, let go of their own claims.

        Raises:
            NotHeld: this object does not hold it, or not for this task (a RuntimeError).
        """
        held = self._held_here()
        if held is None:
            raise self._not_held(type(self).__name__, self.name)
        self._held.remove(held)
        session, claim, _ = held
        if session.is_open:  # else it was let go of as the connection ended
            session.say(self._releasing(claim))
        return Done(True) if self._face.asynchronous else True

    def _held_here(self) -> tuple[Any, int, str] | None:
        """The oldest claim that this object holds for the calling task, or outside of tasks."""
        by = key_of(calling_task())
        return next((held for held in self._held if held[2] == by), None)

    def __enter__(self) -> Self:
        if self._face.asynchronous:
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
        await self._claim(*self._whole(), asynchronous=True)  # a blocking client does it elsewhere
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        released = self.release()
        if isinstance(released, Done):
            await released
