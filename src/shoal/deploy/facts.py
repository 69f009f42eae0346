"""What the services of a cluster said of themselves, as the plain mapping that users know."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from shoal.observe.facts import FactsOfScheduler


def facts_of_processes(scheduler: Any, workers: Iterable[Any]) -> FactsOfScheduler:
    """From what processes said of themselves when they were ready."""
    return FactsOfScheduler.of(
        scheduler.words.get("id", ""),
        scheduler.address,
        scheduler.started_at,
        scheduler.words.get("services", {}),
        [{**worker.words, "pid": worker.pid} for worker in workers if worker.words],
    )
