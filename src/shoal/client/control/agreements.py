"""What clients and tasks agree on by name, seen from outside."""

from __future__ import annotations

from typing import Any

from shoal.client.lifecycle import ClientBase
from shoal.protocol.coordination import DescribeCoordination


class Agreements(ClientBase):
    """Who holds which lock, and who waits for what."""

    async def coordination_info(self) -> dict[str, dict[Any, dict[str, Any]]]:
        """All locks, events, queues, variables and channels that are known to the scheduler.

        Kind (`locks`, which has semaphores too, `multi_locks`, `events`, `queues`, `variables`,
        `channels`) -> name -> what is known of it.  Whoever holds or waits is a dict of `client`,
        `task`, `worker` and `seconds`: for how long.
        """
        from shoal.client.coordination.described import described  # few programs coordinate

        return described(await self.session.call(DescribeCoordination))
