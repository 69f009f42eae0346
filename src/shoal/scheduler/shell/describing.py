"""What the scheduler says of its workers when somebody asks who is there."""

from shoal.protocol.questions import WorkerIdentity
from shoal.scheduler.model.entities import Worker


def identity_of(worker: Worker) -> WorkerIdentity:
    """A worker as `scheduler_info()` shows it."""
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
    )
