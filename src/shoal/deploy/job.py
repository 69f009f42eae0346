"""`ProcessInterface`: what a cluster made from a spec wants of its scheduler and its workers."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any, Self

from shoal.observe.status import Status


class ProcessInterface:
    """A scheduler or a worker that something else runs: a batch system, a container, a shell.

    Subclasses start it in `start` and end it in `close`, and call these of ours as well.  `await`
    starts it.
    """

    def __init__(self, scheduler: str | None = None, name: Any = None) -> None:
        """Nothing is started.  What is not given, and was set by a subclass before, is kept.

        Args:
            scheduler: the scheduler's address, for a worker.
            name: in the spec.
        """
        kept: dict[str, Any] = self.__dict__
        self.scheduler: str | None = kept.get("scheduler") if scheduler is None else scheduler
        self.name = kept.get("name") if name is None else name
        self.address: str | None = kept.get("address")
        self.external_address: str | None = None
        self.lock = asyncio.Lock()
        self.status = Status.created
        self._event_finished = asyncio.Event()

    def __await__(self) -> Generator[Any, None, Self]:
        return self._started().__await__()

    async def _started(self) -> Self:
        async with self.lock:
            if self.status == Status.created:
                await self.start()
        return self

    async def start(self) -> None:
        """Have it run, or be about to: workers need not be there yet, a scheduler must."""
        self.status = Status.running

    async def close(self) -> None:
        """End it, whatever it does."""
        self.status = Status.closed
        self._event_finished.set()

    async def finished(self) -> None:
        """Wait until it was closed."""
        await self._event_finished.wait()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: status={self.status}>"

    async def __aenter__(self) -> Self:
        return await self

    async def __aexit__(self, *args: object) -> None:
        await self.close()
