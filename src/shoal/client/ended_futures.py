"""The futures that have ended and were not given yet, as programs know that queue."""

from __future__ import annotations

import queue
import threading
from collections import deque
from typing import Any


class EndedFutures(deque[Any]):
    """Futures that have ended; with the methods by which programs empty such a queue."""

    def __init__(self, condition: threading.Condition) -> None:
        """`condition`: told of each that is added."""
        super().__init__()
        self._added = condition

    def empty(self) -> bool:
        """Whether there is none."""
        return not self

    def qsize(self) -> int:
        """How many there are."""
        return len(self)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Take the first.

        Args:
            block: wait for one, unless there is one; `timeout`: so many seconds.

        Raises:
            queue.Empty: there is none.
        """
        try:
            return self.popleft()  # somebody who empties it may hold the lock
        except IndexError:
            if not block:
                raise queue.Empty from None
        with self._added:
            if not self._added.wait_for(self.__len__, timeout):
                raise queue.Empty
            return self.popleft()
