"""What a scheduler and its workers are, as the plain mappings that users know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from dask.utils import format_bytes

from shoal.comms.addresses import parse_address
from shoal.comms.errors import AddressError
from shoal.protocol.questions import Identity, WorkerIdentity


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

    def _repr_html_(self) -> str:
        return _table(
            ["Worker", "Name", "Threads", "Status", "Memory", "Limit", "Results", "Spilled"],
            [_row_of(address, worker) for address, worker in self["workers"].items()],
            f"Scheduler at {self['address']}: {self['n_workers']} workers, "
            f"{self['total_threads']} threads, {format_bytes(self['total_memory'])}",
        )


def _row_of(address: str, worker: Mapping[str, Any]) -> list[Any]:
    """One that has told nothing yet has no metrics."""
    metrics = worker.get("metrics", {})
    limit = worker["memory_limit"]
    return [
        address,
        worker["name"],
        worker["nthreads"],
        worker.get("status", ""),
        format_bytes(metrics.get("memory", 0)),
        format_bytes(limit) if limit else "none",
        format_bytes(metrics.get("managed_bytes", 0)),
        format_bytes(metrics.get("spilled_bytes", {}).get("memory", 0)),
    ]


class WhoHas(dict[Any, tuple[str, ...]]):
    """Key → addresses of the workers that hold its result."""

    def _repr_html_(self) -> str:
        rows = [[key, len(holders), ", ".join(holders)] for key, holders in self.items()]
        return _table(["Key", "Copies", "Workers"], rows)


class HasWhat(dict[str, tuple[Any, ...]]):
    """Address of a worker → keys of the results that it holds."""

    def _repr_html_(self) -> str:
        rows = [[address, len(keys), ", ".join(map(str, keys))] for address, keys in self.items()]
        return _table(["Worker", "Results", "Keys"], rows)


def facts_of_identity(identity: Identity) -> FactsOfScheduler:
    """From what a scheduler says of itself."""
    facts = FactsOfScheduler.of(
        identity.id,
        identity.address,
        identity.started_at,
        identity.services,
        map(facts_of_worker, identity.workers),
    )
    if identity.nworkers > len(identity.workers):  # not all of them are described
        facts["n_workers"] = identity.nworkers
        facts["total_threads"] = identity.total_nthreads
        facts["total_memory"] = identity.total_memory
    return facts


def facts_of_worker(worker: WorkerIdentity) -> dict[str, Any]:
    """A worker as users know it; `metrics` has what upstream measures, 0 of what we don't."""
    return {
        "address": worker.address,
        "id": worker.id,
        "name": worker.name,
        "host": shown_host(worker.address, worker.host),
        "nthreads": worker.nthreads,
        "memory_limit": worker.memory_limit,
        "pid": worker.pid,
        "resources": dict(worker.resources),
        "status": worker.status,
        "nprocessing": worker.nprocessing,
        "nbytes": worker.nbytes,
        "local_directory": worker.local_directory,
        "last_seen": worker.heard_at,
        "services": dict(worker.services),
        "nanny": worker.nanny or None,
        "metrics": _metrics_of(worker),
    }


def shown_host(address: str, name: str) -> str:
    """The host of a worker's address; its host's name, where the address has none."""
    try:
        return parse_address(address).host or name
    except AddressError:  # a third party's scheme
        return name


def _metrics_of(worker: WorkerIdentity) -> dict[str, Any]:
    counts = {
        "memory": worker.nresults,
        "executing": min(worker.nsent - worker.nlong_running, worker.nthreads),
        "long-running": worker.nlong_running,
        "ready": max(0, worker.nprocessing - worker.nlong_running - worker.nthreads),
    }
    return {
        "task_counts": {name: count for name, count in counts.items() if count},
        "managed_bytes": worker.nbytes - worker.spilled_bytes,
        "spilled_bytes": {"memory": worker.spilled_bytes, "disk": worker.spilled_disk_bytes},
        "transfer": {"incoming_bytes": worker.received_bytes, "incoming_count": 0},
        "cpu": worker.cpu_percent,
        "memory": worker.memory_bytes,
        "unmanaged_old_bytes": worker.unmanaged_old_bytes,
        "container": {"memory": worker.container_bytes, "limit": worker.container_limit_bytes},
        "time": worker.heard_at,
    }


def _table(columns: list[str], rows: list[list[Any]], title: str = "") -> str:
    """HTML for notebooks."""
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    caption = f"<caption>{escape(title)}</caption>" if title else ""
    return f"<table>{caption}<tr>{head}</tr>{body}</table>"
