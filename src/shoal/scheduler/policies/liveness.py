"""Who has been silent for too long?"""

from collections.abc import Iterable

from shoal.scheduler.model.entities import Worker


def silent_workers(workers: Iterable[Worker], ttl_seconds: float, now: float) -> list[Worker]:
    """Workers that gave no sign of life for `ttl_seconds`.  Cost: O(workers)."""
    return [worker for worker in workers if now - worker.heard_at > ttl_seconds]


def has_stalled_runs(worker: Worker, after_seconds: float, now: float) -> bool:
    """Whether `worker` has runs that no thread can have begun, and has said nothing for a while."""
    return worker.nsent > worker.nbegun_max and worker.heard_at + after_seconds <= now
