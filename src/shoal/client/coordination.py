"""What clients and tasks agree on by name: locks."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import count
from types import TracebackType
from typing import Any, Final, Self
from uuid import uuid4

from dask.utils import parse_timedelta

from shoal.client.current import default_client
from shoal.client.errors import LockNotAwaited, NotLocked
from shoal.comms import CallTimeoutError
from shoal.protocol.calls import AcquireLock, IsLocked
from shoal.protocol.messages import ReleaseLock

_claims: Final = count(1)


class Lock:
    """A lock that all clients and tasks of one cluster know by its name.

    It may be made before there is a client, and be pickled: whoever uses it asks the client of
    the task or context that it is used in.  Whoever holds it loses it with its connection, so a
    worker that dies leaves nothing locked.  `with` holds it for a block; with an asynchronous
    client methods return coroutines, and it is `async with`.

    Args:
        name: those of one name are one lock; a new name if None.
        scheduler_rpc, loop: not used.
        client: whom to ask; None: the one that is meant where it is used.
    """

    def __init__(
        self,
        name: str | None = None,
        scheduler_rpc: Any = None,
        loop: Any = None,
        *,
        client: Any = None,
    ) -> None:
        self.name = name or f"lock-{uuid4().hex}"
        self._client = client
        self._held: deque[tuple[Any, int]] = deque()  # (session, claim), the oldest first

    def acquire(self, blocking: bool = True, timeout: Any = None) -> Any:
        """Hold the lock; whether that came to be.

        Args:
            blocking: False: don't wait for whoever holds it.
            timeout: seconds to wait, or a text such as "10s"; None: no limit.

        Raises:
            ValueError: there is a timeout, but nothing to wait for; or there is no client.
            OSError: the connection ended.
        """
        if timeout is not None and not blocking:
            raise ValueError("blocking=False does not wait, so there is no use for a timeout")
        client = default_client(self._client)
        seconds = None if timeout is None else parse_timedelta(timeout)
        return client.sync(self._acquire, client.session, blocking, seconds)

    async def _acquire(self, session: Any, waits: bool, seconds: float | None) -> bool:
        claim = next(_claims)
        call: Callable[[int], AcquireLock] = partial(
            AcquireLock, name=self.name, claim=claim, waits=waits
        )
        try:
            granted: bool = await session.call(call, timeout_seconds=seconds)
        except CallTimeoutError:
            session.say(ReleaseLock(self.name, claim))
            return False
        except asyncio.CancelledError:
            if session.status == "running":
                session.say(ReleaseLock(self.name, claim))
            raise
        if granted:
            self._held.append((session, claim))
        return granted

    def release(self) -> Any:
        """Let go of the lock.

        Raises:
            NotLocked: this object does not hold it (a RuntimeError).
        """
        try:
            session, claim = self._held.popleft()
        except IndexError:
            raise NotLocked(self.name) from None
        if session.status == "running":  # else it was let go of as the connection ended
            session.say(ReleaseLock(self.name, claim))
        return _done() if default_client(self._client).asynchronous else None

    def locked(self) -> Any:
        """Whether somebody holds it."""
        client = default_client(self._client)
        call = partial(IsLocked, name=self.name)
        return client.sync(client.session.call, call)

    def __enter__(self) -> Self:
        if default_client(self._client).asynchronous:
            raise LockNotAwaited(self.name)
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
        client = default_client(self._client)
        if client.asynchronous:
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

    def __reduce__(self) -> tuple[Any, ...]:
        return Lock, (self.name,)

    def __dask_tokenize__(self) -> tuple[str, str]:
        return "Lock", self.name

    def __repr__(self) -> str:
        return f"<Lock: {self.name}>"


async def _done() -> None:
    """For whoever awaits what is done already."""
