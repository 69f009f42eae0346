"""What is told of a worker when somebody asks who is there."""

from shoal.protocol.questions import WorkerIdentity
from shoal.scheduler.model.entities import Worker


def identity_of(worker: Worker, seconds_ahead: float = 0.0) -> WorkerIdentity:
    """A worker as `scheduler_info()` shows it.

    Args:
        seconds_ahead: what makes the machine's time seconds since the epoch.
    """
    return WorkerIdentity(
        worker.address,
        worker.id,
        worker.name,
        worker.host,
        worker.nthreads,
        worker.memory_limit,
        worker.pid,
        worker.resources,
        status="closing_gracefully" if worker.is_leaving else "running",
        nprocessing=len(worker.processing),
        nbytes=worker.nbytes,
        nresults=len(worker.has_what),
        nsent=worker.nsent,
        memory_bytes=worker.memory_bytes,
        cpu_percent=worker.cpu_percent,
        received_bytes=worker.received_bytes,
        heard_at=worker.heard_at + seconds_ahead,
        local_directory=worker.local_directory,
        nanny=worker.nanny or (f"nanny+{worker.address}" if worker.has_nanny else ""),
        services=worker.services,
    )
