"""Who has been silent for too long?"""

from collections.abc import Iterable

from shoal.scheduler.model.entities import Worker


def sign_at(worker: Worker, listening_since: float) -> float:
    """When it last gave a sign of life, or its nanny for it (s); from when on silence counts.

    `listening_since`: before, nobody could be heard.
    """
    return max(worker.heard_at, worker.vouched_at, listening_since)


def silent_workers(
    workers: Iterable[Worker], ttl_seconds: float, now: float, listening_since: float = 0.0
) -> list[Worker]:
    """Workers that gave no sign of life for more than `ttl_seconds`.  Cost: O(workers)."""
    return [worker for worker in workers if now > sign_at(worker, listening_since) + ttl_seconds]


def suspects_among(
    workers: Iterable[Worker], suspect_seconds: float, now: float, listening_since: float
) -> list[Worker]:
    """Workers that gave none for so long, and are no suspects yet.  Cost: O(workers)."""
    return [
        worker
        for worker in workers
        if worker.silence is None and now >= sign_at(worker, listening_since) + suspect_seconds
    ]


def next_silence(
    workers: Iterable[Worker],
    ttl_seconds: float,
    suspect_seconds: float,
    now: float,
    listening_since: float,
) -> float:
    """Until when nobody else can have been silent for too long (s).  Cost: O(workers).

    By the same sums as above: at that time somebody has been, however they are rounded.
    """
    due_at = now + min(ttl_seconds + 1, suspect_seconds)
    for worker in workers:
        at = sign_at(worker, listening_since)
        due_at = min(due_at, at + ttl_seconds + 1)
        if worker.silence is None:
            due_at = min(due_at, at + suspect_seconds)
    return due_at


def has_stalled_runs(worker: Worker, after_seconds: float, now: float) -> bool:
    """Whether `worker` has runs that no thread can have begun, and has said nothing for a while."""
    return worker.nsent > worker.nbegun_max and worker.heard_at + after_seconds <= now
