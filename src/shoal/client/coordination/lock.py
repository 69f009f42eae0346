"""Locks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shoal.client.coordination.described import claimant_of
from shoal.client.coordination.semaphore import Semaphore
from shoal.protocol.coordination import (
    AcquireLease,
    DescribeCoordination,
    IsLocked,
    NamedDescription,
)
from shoal.protocol.messages import Message


class Lock(Semaphore):
    """A lock that all clients and tasks of one cluster know by its name.

    It may be made before there is a client, and be pickled: whoever uses it asks the client of the
    task or context that it is used in.  Whoever holds it loses it with its connection, so a
    worker that dies leaves nothing locked.  `with` holds it for a block; with an asynchronous
    client methods return coroutines, and it is `async with`.

    Args:
        name: those of one name are one lock; a new name if None.
        scheduler_rpc, loop: not used.
        client: whom to ask; None: the one that is meant where it is used.
    """

    def __init__(
        self,
        name: Any = None,
        scheduler_rpc: Any = None,
        loop: Any = None,
        *,
        client: Any = None,
    ) -> None:
        super().__init__(1, name, scheduler_rpc, loop, client=client)

    def acquire(  # type: ignore[override]  # the order that programs know
        self, blocking: bool = True, timeout: Any = None
    ) -> Any:
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

    def holder(self) -> Any:
        """Who holds it: a dict of client, task, worker and seconds; None: nobody."""
        return self._run(self._describe_holder)

    async def _describe_holder(self, session: Any) -> dict[str, Any] | None:
        found: list[NamedDescription] = await session.call(
            lambda request: DescribeCoordination(request, "lock", self._on_wire)
        )
        holders = [claimant_of(part) for lock in found for part in lock.holders]
        return holders[0] if holders else None

    def _acquiring(
        self, session: Any, claim: int, waits: bool, by: str
    ) -> Callable[[int], Message]:
        return lambda request: AcquireLease(request, self._on_wire, claim, 1, waits, by)

    def _arguments(self) -> tuple[Any, ...]:
        return (self.name,)
