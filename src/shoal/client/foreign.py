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
        self.watch(future, future.record)

    def watch(self, future: Any, record: Record) -> None:
        """Hear of the end, as long as somebody else refers to the future."""
        ended = _teller_of(weakref.ref(future), self)
        if not future.face.session.watch(record, ended):
            ended(record)

    def end(self, future: Any, record: Record) -> None:
        """Tell all who wait; those who come later see the state."""
        with self.condition:
            status = record.status  # which the loop may change meanwhile
            if status not in UNRESOLVED:
                self._tell(future, status)
                return
        self.watch(future, record)  # the result was lost before it was its turn

    def _tell(self, future: Any, status: str) -> None:
        self.state = CANCELLED_AND_NOTIFIED if status == CANCELLED else FINISHED
        for waiter in self.waiters:
            if status == CANCELLED:
                waiter.add_cancelled(future)
            elif status == ERROR:
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
