"""Work that nobody waits for: it runs to its end, whoever goes."""

from __future__ import annotations

from typing import Any

from shoal.client.future import futures_of
from shoal.protocol.detached import DetachTasks


def fire_and_forget(obj: Any) -> None:
    """Have tasks run to their end though their futures are dropped, or their client leaves.

    The scheduler keeps them under the name `fire-and-forget` until they have finished or failed.
    `Client.fire_and_forget_tasks` lists them, and `Client.cancel` takes their keys.

    Args:
        obj: a future, or futures in containers or persisted collections.

    Raises:
        ClientClosed: the client of a future is not connected.
    """
    by_session: dict[Any, list[Any]] = {}
    for future in futures_of(obj):
        record = future.record
        by_session.setdefault(future.face.session, []).append(record.number)
    for session, numbers in by_session.items():
        session.say(DetachTasks(numbers))
