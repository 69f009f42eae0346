"""Locks."""

from __future__ import annotations

from typing import Any

from shoal.client.coordination.claimed import Claimed
from shoal.protocol.coordination import AcquireLock, IsLocked, ReleaseLock


class Lock(Claimed):
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
        super().__init__(name, client)

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
        return self._claim(waits=blocking, timeout=timeout)

    def locked(self) -> Any:
        """Whether somebody holds it."""
        return self._ask(IsLocked)

    def _acquiring(self, request: int, claim: int, waits: bool) -> AcquireLock:
        return AcquireLock(request, self.name, claim, waits)

    def _releasing(self, claim: int) -> ReleaseLock:
        return ReleaseLock(self.name, claim)
