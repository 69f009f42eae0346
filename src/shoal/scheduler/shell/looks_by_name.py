"""Looks at tasks and at what workers hold, for those who call them by name: a part at a time.

They say what the views say to code in the scheduler, which looks at everything at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, Final

from shoal.protocol.keys import from_canonical
from shoal.scheduler.model.entities import Task, Worker
from shoal.scheduler.shell.slices import in_slices

NTASKS: Final = 1_000
"""So many are looked at at once, in some 5 ms."""


class LooksByName:
    """The part of the service that is asked for them."""

    @property
    def _service(self) -> Any:
        return self

    async def look_at_who_has(self, keys: Iterable[Any] | None = None) -> dict[Any, list[str]]:
        """As `get_who_has`."""
        found: dict[Any, list[str]] = {}
        async for part in self._parts(keys):
            found |= self._service.get_who_has(part)
        return found

    async def look_at_task_status(self, keys: Iterable[Any]) -> dict[Any, str | None]:
        """As `get_task_status`."""
        found: dict[Any, str | None] = {}
        async for part in self._parts(keys):
            found |= self._service.get_task_status(part)
        return found

    async def look_at_nbytes(
        self, keys: Iterable[Any] | None = None, summary: bool = True
    ) -> dict[Any, int]:
        """As `get_nbytes`."""
        sizes: Counter[Any] = Counter()
        async for part in self._parts(keys):
            sizes.update(self._service.get_nbytes(part, summary))
        return dict(sizes)

    async def look_at_has_what(self, workers: Iterable[str] | None = None) -> dict[str, list[Any]]:
        """As `get_has_what`."""
        return await self._keys_of(workers, lambda worker: worker.has_what)

    async def look_at_processing(
        self, workers: Iterable[str] | None = None
    ) -> dict[str, list[Any]]:
        """As `get_processing`."""
        return await self._keys_of(workers, lambda worker: worker.processing)

    async def _parts(self, keys: Iterable[Any] | None) -> AsyncIterator[list[Any]]:
        """The keys; if none are named, those of all tasks that are there when their turn comes."""
        tasks = self._service.machine.state.tasks
        async for part in in_slices(tasks if keys is None else keys, NTASKS):
            yield part if keys is not None else [from_canonical(k) for k in part if k in tasks]

    async def _keys_of(
        self, workers: Iterable[str] | None, tasks_of: Callable[[Worker], Iterable[Task]]
    ) -> dict[str, list[Any]]:
        """Address -> keys of these tasks.  Raises KeyError: there is no such worker."""
        there = self._service.machine.state.workers
        asked = there if workers is None else {address: there[address] for address in workers}
        found: dict[str, list[Any]] = {}
        for address, worker in list(asked.items()):
            keys = found[address] = []
            async for part in in_slices(tasks_of(worker), NTASKS):
                keys += [from_canonical(task.key) for task in part]
        return found
