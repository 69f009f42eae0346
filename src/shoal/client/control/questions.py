"""What the cluster knows, asked and answered in plain types."""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.client.control.keys import keys_in
from shoal.client.lifecycle import ClientBase
from shoal.client.options import worker_names
from shoal.protocol import questions
from shoal.protocol.keys import from_canonical


class Questions(ClientBase):
    """`who_has`, `nthreads`, `scheduler_info` and the like: nothing changes by them."""

    async def who_has(self, futures: Any = None, **kwargs: Any) -> dict[Any, list[str]]:
        """Key -> addresses of the workers that hold its result.

        Args:
            futures: futures or keys; None: all that are in memory.
        """
        keys = None if futures is None else keys_in(futures)
        found = await self.session.call(lambda request: questions.WhoHas(request, keys))
        return {from_canonical(key): list(holders) for key, holders in found.items()}

    async def has_what(self, workers: Any = None, **kwargs: Any) -> dict[str, list[Any]]:
        """Worker -> keys of the results that it holds."""
        names = None if workers is None else worker_names(workers)
        found = await self.session.call(lambda request: questions.HasWhat(request, names))
        return {worker: [from_canonical(key) for key in keys] for worker, keys in found.items()}

    async def nthreads(self, workers: Any = None, **kwargs: Any) -> dict[str, int]:
        """Worker -> its number of threads."""
        names = None if workers is None else worker_names(workers)
        found: dict[str, int] = await self.session.call(
            lambda request: questions.NThreads(request, names)
        )
        return found

    async def ncores(self, workers: Any = None, **kwargs: Any) -> dict[str, int]:
        """As `nthreads`."""
        return await self.nthreads(workers)

    async def scheduler_info(self, n_workers: int = -1, **kwargs: Any) -> dict[str, Any]:
        """What the scheduler and its workers are, in plain types.

        Args:
            n_workers: show so many of the workers; -1: all.
        """
        identity: questions.Identity = await self.session.call(questions.SchedulerIdentity)
        workers = {w.address: {"type": "Worker", **_fields(w)} for w in identity.workers}
        shown = list(workers)[: n_workers if n_workers >= 0 else None]
        return {
            "type": "Scheduler",
            "id": identity.id,
            "address": identity.address,
            "services": dict(identity.services),
            "started": identity.started_at,
            "n_workers": len(workers),
            "total_threads": sum(worker["nthreads"] for worker in workers.values()),
            "total_memory": sum(worker["memory_limit"] for worker in workers.values()),
            "workers": {address: workers[address] for address in shown},
        }

    async def story(self, *keys: Any, on_error: str = "raise") -> list[tuple[Any, ...]]:
        """What happened to tasks, oldest first: (key, start, finish, cause, seconds)."""
        canonical = keys_in(list(keys))
        found: list[questions.Transition] = await self.session.call(
            lambda request: questions.Story(request, canonical)
        )
        return [(from_canonical(t.key), t.start, t.finish, t.cause, t.at) for t in found]


def _fields(part: msgspec.Struct) -> dict[str, Any]:
    """A Struct as a plain dict."""
    return {name: getattr(part, name) for name in part.__struct_fields__}
