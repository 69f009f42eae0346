"""What a scheduler and its workers are, as the plain mapping that users know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from shoal.protocol.questions import Identity


class FactsOfScheduler(dict[str, Any]):
    """`{"type", "id", "address", "services", "started", "workers": {address: {...}}, ...}`."""

    @classmethod
    def of(
        cls,
        id: str,
        address: str,
        started_at: float,
        services: Mapping[str, int],
        workers: Iterable[dict[str, Any]],
    ) -> FactsOfScheduler:
        """`workers`: facts of each, its address among them."""
        by_address = {worker["address"]: {"type": "Worker", **worker} for worker in workers}
        return cls(
            type="Scheduler",
            id=id,
            address=address,
            services=dict(services),
            started=started_at,
            n_workers=len(by_address),
            total_threads=sum(worker["nthreads"] for worker in by_address.values()),
            total_memory=sum(worker["memory_limit"] for worker in by_address.values()),
            workers=by_address,
        )


def facts_of_identity(identity: Identity) -> FactsOfScheduler:
    """From what a scheduler says of itself."""
    workers = map(msgspec.structs.asdict, identity.workers)
    return FactsOfScheduler.of(
        identity.id, identity.address, identity.started_at, identity.services, workers
    )
