"""A future as `concurrent.futures.wait` and `as_completed` look at it.

They take what has `_condition`, `_state` and `_waiters`, and tell waiters of what has ended.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from concurrent.futures._base import CANCELLED_AND_NOTIFIED, FINISHED, PENDING
from typing import Any

from shoal.client.machine import CANCELLED, ERROR, UNRESOLVED, Record


class ForeignFace:
    """The state of one future, and who waits for it in a way that is not ours."""

    def __init__(self, future: Any) -> None:
        self.condition = threading.Condition()
        self.waiters: list[Any] = []
        self.state = PENDING
        ended = _teller_of(weakref.ref(future), self)
        record = future.record
        if not future.face.session.watch(record, ended):
            ended(record)

    def end(self, future: Any, record: Record) -> None:
        """Tell all who wait; those who come later see the state."""
        with self.condition:
            if record.status in UNRESOLVED:
                return
            self.state = CANCELLED_AND_NOTIFIED if record.status == CANCELLED else FINISHED
            for waiter in self.waiters:
                if record.status == CANCELLED:
                    waiter.add_cancelled(future)
                elif record.status == ERROR:
                    waiter.add_exception(future)
                else:
                    waiter.add_result(future)
            self.condition.notify_all()


def _teller_of(reference: Callable[[], Any], face: ForeignFace) -> Callable[[Record], None]:
    """Tells of the end, as long as somebody else refers to the future."""

    def ended(record: Record) -> None:
        future = reference()
        if future is not None:
            face.end(future, record)

    return ended
